# SPDX-License-Identifier: MIT
# libperf: from pkg-config where the distribution ships it, else built from its kernel source package.

ifeq ($(shell $(PKG_CONFIG) --exists libperf && echo yes),yes)
LIBPERF_CFLAGS := $(shell $(PKG_CONFIG) --cflags libperf)
LIBPERF_LIBS := $(shell $(PKG_CONFIG) --libs libperf)
LIBPERF_TARGETS :=
else
LINUX_SOURCE ?= $(lastword $(sort $(wildcard /usr/src/linux-source-*.tar.xz)))
# One for all builds of this tree: $(BUILD) may be another.
LIBPERF_DIR ?= build/linux
LIBPERF_TOOLS := $(LIBPERF_DIR)/tools
LIBPERF_CFLAGS := -isystem $(LIBPERF_TOOLS)/lib/perf/include
# libperf offers descriptors and groups only in its internal headers, which need the kernel's own <linux/list.h> and the like.
LIBPERF_INTERNAL_CFLAGS := -isystem $(LIBPERF_TOOLS)/include \
	$(if $(filter x86_64 i%86,$(MACHINE_CPU)),-isystem $(LIBPERF_TOOLS)/arch/x86/include)
LIBPERF_OBJ := $(LIBPERF_DIR)$(if $(CROSS_COMPILE),/$(MACHINE))
LIBPERF_LIBS := $(LIBPERF_OBJ)/libperf/libperf.a $(LIBPERF_OBJ)/libapi/libapi.a
LIBPERF_TARGETS := $(LIBPERF_LIBS)

$(BUILD)/obj/stream/session_stream.o: CPPFLAGS += $(LIBPERF_INTERNAL_CFLAGS)

$(LIBPERF_DIR)/unpacked: $(LINUX_SOURCE) scripts/build/libperf.mk
	@test -n "$(LINUX_SOURCE)" || { echo "perfscope: no kernel source for libperf; run: make deps"; exit 1; }
	@mkdir -p $(LIBPERF_DIR)
	$(if $(V),,@echo "  TAR  $(LINUX_SOURCE)";)name=$$(basename $(LINUX_SOURCE) .tar.xz) && tar -xJf $< -C $(LIBPERF_DIR) --strip-components=1 \
		--wildcards $$name/tools/lib $$name/tools/include $$name/tools/build $$name/tools/scripts \
		'linux-source-*/tools/arch/*/include'
	@touch $@

# The kernel's own makefiles; our flags are not theirs.
libperf_make = env -u CFLAGS -u LDFLAGS -u CPPFLAGS MAKEFLAGS= $(MAKE) -C $(LIBPERF_TOOLS)/lib/$(1) O=$(abspath $(LIBPERF_OBJ)/lib$(1)) \
	$(if $(CROSS_COMPILE),CROSS_COMPILE=$(CROSS_COMPILE) ARCH=$(MACHINE_CPU:aarch64=arm64)) CC="$(CC)" EXTRA_CFLAGS="-fPIC -O2"

$(LIBPERF_OBJ)/lib%/lib.stamp: $(LIBPERF_DIR)/unpacked
	@mkdir -p $(@D)
	+$(if $(V),,@printf '  LIB  lib%s (of the kernel)\n' $*;)$(call libperf_make,$*) >$(@D)/log 2>&1 || { tail -20 $(@D)/log; exit 1; }
	@touch $@

$(LIBPERF_OBJ)/libperf/libperf.a: $(LIBPERF_OBJ)/libperf/lib.stamp ;
$(LIBPERF_OBJ)/libapi/libapi.a: $(LIBPERF_OBJ)/libapi/lib.stamp ;
endif
