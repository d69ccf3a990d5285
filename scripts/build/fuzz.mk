# SPDX-License-Identifier: MIT
# One program a tests/fuzz/fuzz_*.c; each takes SEED and N, and ends with abort() on what must not be.

FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SEED ?= 1
FUZZ_ROUNDS ?= 20000

$(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/libperfscope.a $(LIBPERF_TARGETS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/libperfscope.a $(LIBS)

.PHONY: fuzz
fuzz: $(FUZZ_PROGRAMS)
	@for program in $^; do echo "== $$program $(FUZZ_SEED) $(FUZZ_ROUNDS)"; $$program $(FUZZ_SEED) $(FUZZ_ROUNDS) || exit 1; done
