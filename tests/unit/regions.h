// SPDX-License-Identifier: MIT
/** What tests of regions share: counters, and pages to touch. */
#ifndef PERFSCOPE_TEST_REGIONS_H
#define PERFSCOPE_TEST_REGIONS_H

#include "test.h"

#include <dirent.h>
#include <perfscope/regions.h>
#include <sys/mman.h>

#define PAGE 4096

static struct ps_counter counters[PS_MAX_COUNTERS];
static size_t nr_counters;
static struct ps_regions_reading reading; // the last one

static inline void configure(const char *events, unsigned int flags)
{
	memset(counters, 0, sizeof(counters));
	ASSERT_OK(ps_counters_parse(events, counters, &nr_counters));
	ASSERT_OK(ps_regions_configure(counters, nr_counters, flags, false));
}

static inline struct ps_region *find(const char *name)
{
	struct ps_region *region;
	ASSERT_OK(ps_region_find(name, &region));
	return region;
}

static inline const struct ps_regions_reading *read_anew(void)
{
	ps_regions_reading_release(&reading);
	ASSERT_OK(ps_regions_read(false, &reading));
	return &reading;
}

/** The sums of @name; NULL: it has none. */
static inline const struct ps_region_sums *sums_of(const char *name)
{
	read_anew();
	for (size_t i = 0; i < reading.nr; i++) {
		if (!strcmp(reading.totals[i].name, name))
			return &reading.totals[i].sums;
	}
	return NULL;
}

/** Touch @nr_pages that were never touched before. */
// A sanitizer would fault in its shadow of the pages too.
__attribute__((no_sanitize("address"))) static inline void fault(size_t nr_pages)
{
	static __thread char *memory;
	static __thread size_t nr_left;
	if (nr_left < nr_pages) {
		nr_left = nr_pages > 20000 ? nr_pages : 20000;
		memory = mmap(NULL, nr_left * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		madvise(memory, nr_left * PAGE, MADV_NOHUGEPAGE);
	}
	for (size_t i = 0; i < nr_pages; i++, memory += PAGE)
		*(volatile char *)memory = 1;
	nr_left -= nr_pages;
}

/** One pass first, so that what code and stack fault in once is behind us. */
static inline struct ps_region *warm(const char *name)
{
	struct ps_region *region = find(name);
	ps_region_enter(region);
	fault(1);
	ps_region_leave(region);
	ASSERT_OK(ps_regions_reset());
	return region;
}

/**
 * Whether so many pages were @counted as @touched. A sanitizer now and then faults in its own code and the shadow of what
 * is called: there it may be more.
 */
static inline bool are_faults(uint64_t counted, uint64_t touched)
{
#ifdef __SANITIZE_ADDRESS__
	return counted >= touched && counted <= touched + 64;
#else
	return counted == touched;
#endif
}

#define ASSERT_FAULTS(counted, touched)                                                            \
	do {                                                                                       \
		if (!are_faults(counted, touched))                                                 \
			ASSERT_EQ(counted, touched);                                               \
	} while (0)

static inline void assert_faults(const char *name, uint64_t calls, uint64_t faults)
{
	const struct ps_region_sums *sums = sums_of(name);
	ASSERT_NOT_NULL(sums);
	ASSERT_EQ(sums->calls, calls);
	ASSERT_FAULTS(sums->counted[0].value, faults);
	ASSERT_EQ(sums->invalid, 0);
}

/** Of this process, with the one that counts them. */
static inline int count_descriptors(void)
{
	int nr = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (readdir(folder))
		nr++;
	closedir(folder);
	return nr;
}

#endif
