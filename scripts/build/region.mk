# SPDX-License-Identifier: MIT
# The library for C and C++ programs: one object in an archive, plain code without LTO, for whatever compiler links it.

REGION_LIBRARY := $(BUILD)/libperfscope-region.a
REGION_ROOMS := base count
REGION_OBJECTS := $(patsubst src/%.c,$(BUILD)/region/%.o,$(wildcard $(REGION_ROOMS:%=src/%/*.c)))

REGION_PKGCONFIG := $(BUILD)/perfscope-region.pc

all: $(REGION_LIBRARY) $(REGION_PKGCONFIG)

$(BUILD)/region/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(if $(LTO),-fno-lto) $(ALL_CPPFLAGS) -c -o $@ $<

# Names of ours that are not for programs become local: theirs may be the same.
$(BUILD)/region/perfscope-region.o: $(REGION_OBJECTS)
	$(call say,LINK)$(LD) -r -o $@ $^ && $(OBJCOPY) --localize-hidden $@

$(REGION_LIBRARY): $(BUILD)/region/perfscope-region.o
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $<

$(REGION_PKGCONFIG): src/count/perfscope-region.pc.in include/perfscope/version.h $(BUILD)/region-folders
	$(call say,GEN)sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|' \
		-e "s|@version@|$$(sed -n 's/.*PS_VERSION "\(.*\)"/\1/p' include/perfscope/version.h)|" $< >$@

-include $(REGION_OBJECTS:.o=.d)
