# SPDX-License-Identifier: MIT
# perfscope. `make help` lists what there is to make.

PYTHON ?= /usr/bin/python3
CC ?= gcc
BUILD ?= build
prefix ?= /usr/local

include scripts/build/python.mk
include scripts/build/libperf.mk

WARNINGS := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) $(CFLAGS) -MMD -MP
CPPFLAGS += -Iinclude -I$(BUILD)/generated
LIBS = $(LIBPERF_LIBS) $(shell pkg-config --libs libtraceevent) -lpfm -lseccomp -lpthread

ROOMS := base event stream decode task count python script cli
PYTHON_ROOMS := python script cli
sources = $(wildcard src/$(1)/*.c)
objects = $(patsubst src/%.c,$(BUILD)/obj/%.o,$(call sources,$(1)))

LIBRARY_OBJECTS := $(foreach room,$(filter-out $(PYTHON_ROOMS),$(ROOMS)),$(call objects,$(room)))
COMMAND_OBJECTS := $(foreach room,$(PYTHON_ROOMS),$(call objects,$(room)))

.PHONY: all
all: $(BUILD)/perfscope

$(BUILD)/libperfscope.a: $(LIBRARY_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/perfscope: $(COMMAND_OBJECTS) $(BUILD)/libperfscope.a $(LIBPERF_TARGETS)
	$(CC) $(LDFLAGS) -rdynamic -o $@ $(COMMAND_OBJECTS) $(BUILD)/libperfscope.a $(LIBS) $(PYTHON_LIBS)

$(foreach room,$(PYTHON_ROOMS),$(call objects,$(room))): CPPFLAGS += $(PYTHON_CFLAGS)
$(foreach room,stream count,$(call objects,$(room))): CPPFLAGS += $(LIBPERF_CFLAGS)
$(foreach room,stream count,$(call objects,$(room))): $(LIBPERF_TARGETS)

$(BUILD)/generated/perfscope/docstrings.h: src/python/perfscope.pyi scripts/build/docstrings.py
	@mkdir -p $(@D)
	$(PYTHON) scripts/build/docstrings.py $< >$@
$(call objects,python): $(BUILD)/generated/perfscope/docstrings.h

$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -c -o $@ $<

# One program a tests/unit/*.c, on cmocka, without Python.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/libperfscope.a $(LIBPERF_TARGETS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LIBPERF_CFLAGS) -Itests/unit $(LDFLAGS) -o $@ $< $(BUILD)/libperfscope.a $(LIBS) -lcmocka

.PHONY: unit
unit: $(UNIT_TESTS)
	@for test in $^; do echo "== $$test"; $$test || exit 1; done

include scripts/build/fuzz.mk

.PHONY: clean
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
