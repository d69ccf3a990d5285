# SPDX-License-Identifier: MIT
# The doors: what a user of this tree types. Each works alone, on a bare machine too.

RUN_TESTS = scripts/build/run_tests.py --build $(BUILD) --python $(PYTHON)
SUBMAKE = $(MAKE) --no-print-directory

ASAN_BUILD := build-asan
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all
TSAN_BUILD := build-tsan

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile scripts/build/*.mk
	@echo
	@echo "  PYTHON=$(PYTHON)  CC=$(CC)  BUILD=$(BUILD)  CFLAGS  LDFLAGS  LTO  V=1  JOBS=$(JOBS)"
	@echo "  prefix=$(prefix)  DESTDIR=$(DESTDIR)  PYTHONS=\"/path/to/python3 ...\" (for check-pythons)"

.PHONY: deps
deps: ## Install the Debian packages that are missing (as root; else print the command)
	@scripts/build/deps.sh "$(PYTHON)"

.PHONY: demo
demo: deps ## Build, then run a real script on real kernel events of a known load
	+@$(SUBMAKE) all load
	@scripts/build/demo.sh $(BUILD)

SUITES ?= unit fuzz checks python live

.PHONY: test
test: deps ## Build and run every test; the last line is `N passed, N failed, N skipped`
	+@$(SUBMAKE) all test-programs
	@$(PYTHON) $(RUN_TESTS) $(SUITES)

.PHONY: check-asan
check-asan: deps ## Run the unit, fuzz and Python tests under ASan and UBSan, built in build-asan
	+@$(SUBMAKE) BUILD=$(ASAN_BUILD) CFLAGS="-O1 -g -fno-omit-frame-pointer $(ASAN_FLAGS)" LTO= \
		LDFLAGS="$(ASAN_FLAGS)" all test-programs
	@$(PYTHON) scripts/build/run_tests.py --build $(ASAN_BUILD) --python $(PYTHON) --asan unit fuzz python

.PHONY: check-tsan
check-tsan: deps ## Run the tests of threads in regions under ThreadSanitizer, built in build-tsan
	+@$(SUBMAKE) BUILD=$(TSAN_BUILD) CFLAGS="-O1 -g -fno-omit-frame-pointer -Wno-maybe-uninitialized -fsanitize=thread" \
		LTO= LDFLAGS=-fsanitize=thread $(TSAN_BUILD)/tests/test_region_threads
	@TSAN_OPTIONS=suppressions=$(CURDIR)/scripts/build/tsan.supp $(PYTHON) $(RUN_TESTS) --build $(TSAN_BUILD) unit

.PHONY: check-pythons
check-pythons: ## Build for each Python 3.9 to 3.13 on PATH and in PYTHONS, and run the Python tests
	@scripts/build/deps.sh "$(PYTHON)" python3-exceptiongroup
	+@$(PYTHON) scripts/build/check_pythons.py $(PYTHONS)

.PHONY: bench
bench: deps ## Measure speed, start-up, memory and loss; writes the table of docs/benchmarks.md
	+@$(SUBMAKE) all load floor region-programs test-modules
	@PS_TEST_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/bench.py --python $(PYTHON)

.PHONY: clean
clean: ## Remove all that was built
	rm -rf $(BUILD) $(ASAN_BUILD) $(TSAN_BUILD)

.PHONY: format
format: ## Apply clang-format to all C files
	clang-format -i $(wildcard include/perfscope/*.h src/*/*.[ch] tests/*/*.[ch])
