# SPDX-License-Identifier: MIT
# Test programs, and each suite by its name. `make test` runs them all and sums up.

TEST_LIBS = $(CLI_LIBRARY) $(LIBRARY) $(LIBS)
TEST_CFLAGS = $(ALL_CFLAGS) $(if $(LTO),-fno-lto)
TEST_CPPFLAGS = $(ALL_CPPFLAGS) $(LIBPERF_CFLAGS)

# One program a tests/unit/test_*.c, on cmocka, without Python: what a test does not call of cli, and that would need
# Python, is collected as garbage.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
$(UNIT_TESTS): $(BUILD)/tests/%: tests/unit/%.c $(LIBRARY) $(CLI_LIBRARY) $(LIBPERF_TARGETS)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(TEST_CFLAGS) $(TEST_CPPFLAGS) -Itests/unit $(ALL_LDFLAGS) -Wl,--gc-sections -o $@ $< $(TEST_LIBS) -lcmocka

# One program a tests/fuzz/fuzz_*.c: fuzz_x SEED N.
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/%.c $(LIBRARY) $(CLI_LIBRARY) $(LIBPERF_TARGETS)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(TEST_CFLAGS) $(TEST_CPPFLAGS) $(ALL_LDFLAGS) -o $@ $< $(TEST_LIBS)

# One extension module a tests/python/*.c, with perfscope's own objects in it, so that tests reach what scripts do not.
TEST_MODULES := $(patsubst tests/python/%.c,$(BUILD)/tests/python/%$(PYTHON_SUFFIX),$(wildcard tests/python/*.c))
$(TEST_MODULES): $(BUILD)/tests/python/%$(PYTHON_SUFFIX): tests/python/%.c $(call rooms,python) $(LIBRARY) \
		$(LIBPERF_TARGETS) $(BUILD)/python-flags
	@mkdir -p $(@D)
	@rm -f $(@D)/$*.*.so
	$(call say,LINK)$(CC) -shared $(TEST_CFLAGS) $(TEST_CPPFLAGS) $(PYTHON_CFLAGS) -Wno-missing-prototypes \
		$(ALL_LDFLAGS) -o $@ $< $(call rooms,python) $(LIBRARY) $(LIBS)

.PHONY: load probed watched floor script-driver test-modules test-programs region-programs passes
test-modules: $(TEST_MODULES)
# Without sanitizers in a sanitizer's build: their shadow memory faults too. With frame pointers, for stacks.
load: $(BUILD)/tests/load ## Build the load of known size that live tests, demo and bench observe
$(BUILD)/tests/load: tests/live/load.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(TEST_CFLAGS) $(ALL_LDFLAGS)) \
		-fno-omit-frame-pointer -fno-optimize-sibling-calls -o $@ $< -lpthread

# Unoptimised across functions, so that each is where its name says.
probed: $(BUILD)/tests/probed
$(BUILD)/tests/probed: tests/live/probed.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 -O1 -g -fno-inline -Wall -Wextra -Werror -o $@ $<

# At fixed addresses, which breakpoints name.
watched: $(BUILD)/tests/watched
$(BUILD)/tests/watched: tests/live/watched.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 -O1 -fno-pie -no-pie -Wall -Wextra -Werror -o $@ $<

# Every function called by its name, and no page faults of lazy binding.
passes: $(BUILD)/tests/passes
$(BUILD)/tests/passes: tests/live/passes.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -Wall -Wextra -Werror -Wl,-z,now -o $@ $< -lpthread

floor: $(BUILD)/tests/floor
$(BUILD)/tests/floor: tests/bench/floor.c $(BUILD)/flags $(BUILD)/python-flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(TEST_CFLAGS) $(PYTHON_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(PYTHON_LIBS)

# Programs that know only what is installed: the header and the library.
REGION_PROGRAMS := $(BUILD)/tests/region_c $(BUILD)/tests/region_cpp $(BUILD)/tests/region_bench \
	$(BUILD)/tests/region_host $(BUILD)/tests/region_plugin.so $(BUILD)/tests/region_loop \
	$(BUILD)/tests/region_births
region-programs: $(REGION_PROGRAMS)
REGION_TEST_FLAGS = -O2 -g -Wall -Wextra -Werror -Iinclude $(filter -fsanitize%,$(CFLAGS))
$(BUILD)/tests/region_c: tests/live/region_c.c $(REGION_LIBRARY)
$(BUILD)/tests/region_bench: tests/bench/region.c $(REGION_LIBRARY)
$(BUILD)/tests/region_loop: tests/live/region_loop.c $(REGION_LIBRARY)
$(BUILD)/tests/region_births: tests/live/region_births.c $(REGION_LIBRARY)
$(BUILD)/tests/region_c $(BUILD)/tests/region_bench $(BUILD)/tests/region_loop $(BUILD)/tests/region_births:
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 $(REGION_TEST_FLAGS) -o $@ $^ -lpthread
$(BUILD)/tests/region_host: tests/live/region_host.c
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 $(REGION_TEST_FLAGS) -o $@ $^ -lpthread -ldl
$(BUILD)/tests/region_plugin.so: tests/live/region_plugin.c $(REGION_LIBRARY)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 $(REGION_TEST_FLAGS) -fPIC -shared -o $@ $^ -lpthread
# A test runs it with a table of its own.
$(BUILD)/tests/test_region_processes: $(BUILD)/tests/region_c
$(BUILD)/tests/region_cpp: tests/live/region_cpp.cpp $(REGION_LIBRARY)
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -std=c++11 $(REGION_TEST_FLAGS) -o $@ $^ -lpthread

# The room script, reached by its Python tests without events.
SCRIPT_DRIVER := $(BUILD)/tests/script_driver
script-driver: $(SCRIPT_DRIVER)
$(SCRIPT_DRIVER): tests/python/driver/script_driver.c $(call rooms,script python) $(LIBRARY) $(LIBPERF_TARGETS) \
		$(BUILD)/python-flags
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(TEST_CPPFLAGS) $(PYTHON_CFLAGS) $(ALL_LDFLAGS) -o $@ $< \
		$(call rooms,script python) $(LIBRARY) $(LIBS) $(PYTHON_LIBS)

test-programs: $(UNIT_TESTS) $(FUZZERS) $(TEST_MODULES) load probed watched floor script-driver region-programs passes

.PHONY: unit fuzz python-tests live checks
unit: $(UNIT_TESTS) ## Run the C unit tests
fuzz: $(FUZZERS) ## Run the fuzzers shortly; longer: build/fuzz/fuzz_spec SEED N
python-tests: all load test-modules script-driver ## Run the Python tests that need no privileges
live: all load probed watched region-programs passes ## Run the tests on real perf events
checks: ## Check includes, docs and the build scripts
unit fuzz live checks:
	@$(PYTHON) $(RUN_TESTS) $@
python-tests:
	@$(PYTHON) $(RUN_TESTS) python
