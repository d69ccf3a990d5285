# SPDX-License-Identifier: MIT
# perfscope. `make help` lists what there is to make.

PYTHON ?= /usr/bin/python3
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
BUILD ?= build
prefix ?= /usr/local

# As many jobs as there are CPUs, unless make was told (-j) or JOBS is set.
JOBS ?= $(shell nproc)
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif

.PHONY: all
all: ## Build the command, the extension module and the library (the default)

# These start other makes, or need nothing that `make deps` brings: they are read on a bare machine too.
DOORS := help deps demo test test-vm vm-root vm-programs check-asan check-tsan check-pythons bench clean format
GOALS := $(or $(MAKECMDGOALS),all)

include scripts/build/doors.mk
include scripts/build/vm.mk
ifneq ($(filter-out $(DOORS) $(BUILD)/vm/%,$(GOALS)),)
include scripts/build/toolchain.mk
include scripts/build/python.mk
include scripts/build/libperf.mk
include scripts/build/compile.mk
include scripts/build/region.mk
include scripts/build/test.mk
include scripts/build/install.mk
endif
