# SPDX-License-Identifier: MIT
# What compiles, and for which machine: this one, or another by
#   CROSS_COMPILE=aarch64-linux-gnu-  the prefix of its compiler's name
#   SYSROOT=FOLDER                    a tree with its headers, libraries and Python

ifeq ($(origin AR),default)
AR := $(CROSS_COMPILE)ar
endif
ifeq ($(origin LD),default)
LD := $(CROSS_COMPILE)ld
endif
OBJCOPY ?= $(CROSS_COMPILE)objcopy
ifneq ($(SYSROOT),)
override CC := $(CC) --sysroot=$(SYSROOT)
endif
MACHINE := $(shell $(CC) -dumpmachine)
MACHINE_CPU := $(firstword $(subst -, ,$(MACHINE)))

ifneq ($(SYSROOT),)
sysroot_folders := $(SYSROOT)/usr/lib/$(MACHINE)/pkgconfig:$(SYSROOT)/usr/lib/pkgconfig:$(SYSROOT)/usr/share/pkgconfig
PKG_CONFIG ?= env PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(sysroot_folders) pkg-config
else
PKG_CONFIG ?= pkg-config
endif
