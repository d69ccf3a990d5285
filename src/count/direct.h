// SPDX-License-Identifier: MIT
/**
 * Reading a counter of the hardware in user space, by the page that its descriptor maps.
 *
 * The kernel changes the page when the counter moves or stops, and says so by its sequence number.
 */
#ifndef PERFSCOPE_COUNT_DIRECT_H
#define PERFSCOPE_COUNT_DIRECT_H

#include <linux/perf_event.h>
#include <perfscope/counter.h>

#define PS_DIRECT_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

// Tests put registers of their own in place of these.
#ifndef PS_DIRECT_REGISTERS
#if defined(__x86_64__) || defined(__i386__)
/** Nothing in user space tells: with 0 in the PMU's `rdpmc` while this runs, the next read is a SIGSEGV. */
static inline bool ps_direct_is_allowed(uint32_t number)
{
	return true;
}

static inline uint64_t ps_direct_register(uint32_t number)
{
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static inline uint64_t ps_direct_cycles(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define PS_EVENT_REGISTER(n, high, low)                                                            \
	case n:                                                                                    \
		__asm__ volatile("mrs %0, s3_3_c14_c" #high "_" #low : "=r"(value));               \
		break;
#define PS_EVENT_REGISTERS(first, high)                                                            \
	PS_EVENT_REGISTER(first, high, 0)                                                          \
	PS_EVENT_REGISTER(first + 1, high, 1)                                                      \
	PS_EVENT_REGISTER(first + 2, high, 2)                                                      \
	PS_EVENT_REGISTER(first + 3, high, 3)                                                      \
	PS_EVENT_REGISTER(first + 4, high, 4)                                                      \
	PS_EVENT_REGISTER(first + 5, high, 5)                                                      \
	PS_EVENT_REGISTER(first + 6, high, 6)

/**
 * Whether PMUSERENR_EL0 lets user space read the register: the kernel may have taken that back (kernel.perf_user_access=0)
 * without a word in the page, and a read would be a SIGILL.
 */
static inline bool ps_direct_is_allowed(uint32_t number)
{
	uint64_t enable;
	__asm__ volatile("mrs %0, pmuserenr_el0" : "=r"(enable));
	return enable & (number == 31 ? 1 << 0 | 1 << 2 : 1 << 0 | 1 << 3); // EN, CR; EN, ER
}

/** PMEVCNTR<n>_EL0, or PMCCNTR_EL0 where the kernel says 31. */
static inline uint64_t ps_direct_register(uint32_t number)
{
	uint64_t value = 0;
	__asm__ volatile("isb" : : : "memory");
	switch (number) {
		PS_EVENT_REGISTERS(0, 8)
		PS_EVENT_REGISTER(7, 8, 7)
		PS_EVENT_REGISTERS(8, 9)
		PS_EVENT_REGISTER(15, 9, 7)
		PS_EVENT_REGISTERS(16, 10)
		PS_EVENT_REGISTER(23, 10, 7)
		PS_EVENT_REGISTERS(24, 11)
	case 31:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
	}
	return value;
}

static inline uint64_t ps_direct_cycles(void)
{
	uint64_t value;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
}
#else
#define PS_DIRECT_IS_MISSING 1
static inline bool ps_direct_is_allowed(uint32_t number)
{
	return false;
}

static inline uint64_t ps_direct_register(uint32_t number)
{
	return 0;
}

static inline uint64_t ps_direct_cycles(void)
{
	return 0;
}
#endif
#endif

/** What the page means now: ns since the kernel last wrote its times. */
static inline uint64_t ps_direct_delta_ns(const volatile struct perf_event_mmap_page *page)
{
	uint64_t cycles = ps_direct_cycles();
	if (page->cap_user_time_short)
		cycles = page->time_cycles + ((cycles - page->time_cycles) & page->time_mask);
	uint64_t shift = page->time_shift, mult = page->time_mult;
	uint64_t whole = cycles >> shift, part = cycles & ((1ULL << shift) - 1);
	return page->time_offset + whole * mult + (part * mult >> shift);
}

static inline uint64_t ps_direct_extend(uint64_t value, unsigned int width)
{
	return (uint64_t)((int64_t)(value << (64 - width)) >> (64 - width));
}

/** Whether the page offers what a read needs, at this moment. */
static inline bool ps_direct_is_offered(const volatile struct perf_event_mmap_page *page)
{
#ifdef PS_DIRECT_IS_MISSING
	return false;
#endif
	return page->cap_user_rdpmc && page->cap_user_time && page->index && page->pmc_width &&
	       page->pmc_width <= 64 && ps_direct_is_allowed(page->index - 1);
}

/** Read the counter of @page; false: only the kernel can, since it is not on the hardware now. */
static inline bool ps_direct_read(const volatile struct perf_event_mmap_page *page,
				  struct ps_counter_reading *ret)
{
	uint32_t sequence;
	do {
		sequence = page->lock;
		PS_DIRECT_BARRIER();
		if (!ps_direct_is_offered(page))
			return false;
		uint64_t delta_ns = ps_direct_delta_ns(page);
		uint64_t counted = ps_direct_register(page->index - 1);
		ret->value = page->offset + ps_direct_extend(counted, page->pmc_width);
		ret->enabled_ns = page->time_enabled + delta_ns;
		ret->running_ns = page->time_running + delta_ns;
		PS_DIRECT_BARRIER();
	} while (page->lock != sequence);
	return true;
}

#endif
