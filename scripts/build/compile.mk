# SPDX-License-Identifier: MIT
# From sources to the products. Sources are found by room: a new file needs no line here.

ifneq ($(shell $(PKG_CONFIG) --exists libtraceevent && echo yes),yes)
$(error perfscope: libtraceevent or pkg-config is missing; run: make deps)
endif

# gcc-ar knows the objects of -flto.
LIBRARIAN := $(if $(LTO),$(CROSS_COMPILE)gcc-ar,$(AR))
WARNINGS := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter
CFLAGS ?= -O2 -g
# Over the files of a room and from room to room, gcc's whole-program optimisation saves a tenth of what an event costs.
# Objects hold plain code too, which the tests link, quicker.
LTO ?= $(if $(findstring gcc,$(CC)),-flto=auto -ffat-lto-objects)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ffunction-sections $(WARNINGS) $(CFLAGS) $(LTO) -MMD -MP
ALL_CPPFLAGS = -Iinclude -I$(BUILD)/generated $(CPPFLAGS)
ALL_LDFLAGS = $(CFLAGS) $(LDFLAGS)
LIBS := $(LIBPERF_LIBS) $(shell $(PKG_CONFIG) --libs libtraceevent) -lpfm -ldw -lelf -liberty -ldl -lpthread
scripts_dir := $(prefix)/share/perfscope/scripts

PYTHON_ROOMS := python script cli
PURE_ROOMS := base event stream decode task symbol recording count
objects = $(patsubst src/%.c,$(BUILD)/obj/%.o,$(wildcard src/$(1)/*.c))
rooms = $(foreach room,$(1),$(call objects,$(room)))

LIBRARY := $(BUILD)/libperfscope.a
COMMAND := $(BUILD)/perfscope
MODULE := $(BUILD)/python/perfscope$(PYTHON_SUFFIX)

# One short line a product; the whole commands with V=1.
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@;)

all: $(COMMAND) $(MODULE) $(LIBRARY)

# Objects are made anew when the flags, the Python or the prefix change: these files change only when they differ.
.PHONY: FORCE
STAMPS := $(addprefix $(BUILD)/,flags python-flags python-place prefix region-folders)
$(BUILD)/flags: export CONTENT := $(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) $(LDFLAGS) $(LIBS)
$(BUILD)/python-flags: export CONTENT := $(PYTHON_CFLAGS) $(PYTHON_LIBS) $(PYTHON_SUFFIX)
$(BUILD)/python-place: export CONTENT := $(PYTHON_PLACE)
$(BUILD)/prefix: export CONTENT := $(scripts_dir)
$(BUILD)/region-folders: export CONTENT = $(prefix) $(libdir) $(includedir)
$(STAMPS): FORCE
	@mkdir -p $(@D)
	@printenv CONTENT | cmp -s - $@ || printenv CONTENT >$@

$(call rooms,$(PYTHON_ROOMS)): ALL_CPPFLAGS += $(PYTHON_CFLAGS)
$(call rooms,$(PYTHON_ROOMS)): $(BUILD)/python-flags
$(call rooms,script): ALL_CPPFLAGS += $(PYTHON_PLACE) -DPS_SCRIPTS_DIR='"$(scripts_dir)"'
$(call rooms,script): $(BUILD)/python-place $(BUILD)/prefix
$(call rooms,stream count): ALL_CPPFLAGS += $(LIBPERF_CFLAGS)
$(call rooms,stream count): | $(LIBPERF_TARGETS)

$(BUILD)/obj/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -c -o $@ $<

$(BUILD)/obj/event/syscalls.o: $(BUILD)/generated/syscall_table.h
$(BUILD)/generated/syscall_table.h: scripts/build/syscall_table.sh $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,GEN)CC="$(CC)" scripts/build/syscall_table.sh >$@.new && mv $@.new $@

# The stub that editors read is also where docstrings come from.
$(call rooms,python): $(BUILD)/generated/perfscope/docstrings.h
$(BUILD)/generated/perfscope/docstrings.h: src/python/perfscope.pyi scripts/build/docstrings.py
	@mkdir -p $(@D)
	$(call say,GEN)$(PYTHON) scripts/build/docstrings.py $< >$@.new && mv $@.new $@

$(call objects,python): $(BUILD)/generated/perfscope/region_tools.h
$(BUILD)/generated/perfscope/region_tools.h: src/python/region_tools.py scripts/build/embed.py scripts/build/docstrings.py
	@mkdir -p $(@D)
	$(call say,GEN)$(PYTHON) scripts/build/embed.py $< PS_REGION_TOOLS >$@.new && mv $@.new $@

$(LIBRARY): $(call rooms,$(PURE_ROOMS))
	@rm -f $@
	$(call say,AR)$(LIBRARIAN) rcs $@ $^

# cli is Python's guest only through script.h: its parts, without main, are what unit tests take from it.
CLI_LIBRARY := $(BUILD)/libperfscope-cli.a
$(CLI_LIBRARY): $(filter-out %/main.o,$(call rooms,cli))
	@rm -f $@
	$(call say,AR)$(LIBRARIAN) rcs $@ $^

$(COMMAND): $(call rooms,$(PYTHON_ROOMS)) $(LIBRARY) $(LIBPERF_TARGETS) $(BUILD)/python-flags
	$(call say,LINK)$(CC) $(LTO) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBRARY) $(LIBS) $(PYTHON_LIBS)

# The same PyInit as the command's. Python's own symbols come from the interpreter that imports it.
$(MODULE): $(call rooms,python) $(LIBRARY) $(LIBPERF_TARGETS) $(BUILD)/python-flags
	@mkdir -p $(@D)
	@rm -f $(@D)/perfscope.*.so
	$(call say,LINK)$(CC) -shared $(LTO) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBRARY) $(LIBS)

-include $(shell find $(BUILD)/obj $(BUILD)/tests $(BUILD)/fuzz -name '*.d' 2>/dev/null)
