// SPDX-License-Identifier: MIT
#include <perfscope/options.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/** Read the digits of @text; false where there are others, none or too many. *ret_end is behind them. */
static bool read_digits(const char *text, uint64_t *ret, const char **ret_end)
{
	if (!isdigit((unsigned char)*text))
		return false;
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	*ret_end = end;
	return errno == 0;
}

static struct ps_error *store_number(const struct ps_option *option, const char *title,
				     const char *value, uint64_t *ret)
{
	uint64_t number;
	const char *end;
	if (read_digits(value, &number, &end) && !*end && number >= option->min &&
	    number <= option->max) {
		*ret = number;
		return NULL;
	}
	if (option->max == UINT64_MAX)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: '%s' is not a whole number of %" PRIu64 " or more",
				       title, value, option->min);
	return ps_error_format(PS_ERROR_USAGE,
			       "%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64, title,
			       value, option->min, option->max);
}

static struct ps_error *store_signed(const char *title, const char *value, int64_t *ret)
{
	const char *digits = value + (*value == '-' || *value == '+');
	char *end;
	errno = 0;
	int64_t number = strtoll(value, &end, 10);
	if (!isdigit((unsigned char)*digits) || *end || errno)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: '%s' is not a whole number of nanoseconds", title,
				       value);
	*ret = number;
	return NULL;
}

#define MAX_SECONDS 1e9

static struct ps_error *store_seconds(const char *title, const char *value, uint64_t *ret)
{
	char *end;
	double seconds = strtod(value, &end);
	bool is_number = isdigit((unsigned char)*value) || *value == '.';
	if (!is_number || *end || !(seconds * 1e9 >= 1) || seconds > MAX_SECONDS)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: '%s' is not a number of seconds above 0, like 1.5",
				       title, value);
	*ret = seconds * 1e9 + 0.5;
	return NULL;
}

/** Bytes that one unit of the suffix @end stands for; 0: not a suffix. */
static uint64_t unit_bytes(const char *end)
{
	static const char suffixes[] = "BKMG";
	if (!*end)
		return sysconf(_SC_PAGESIZE);
	const char *suffix = strchr(suffixes, toupper((unsigned char)*end));
	if (!suffix || end[1])
		return 0;
	return 1ULL << 10 * (suffix - suffixes);
}

static struct ps_error *store_size(const char *title, const char *value, struct ps_options *options)
{
	uint64_t number, unit = 0;
	const char *end;
	if (read_digits(value, &number, &end))
		unit = unit_bytes(end);
	if (!unit || !number)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: '%s' is not a size: pages, or bytes like 512K or 4M",
				       title, value);
	if (number > PS_RING_MAX_BYTES / unit)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: %s is too large, a ring has at most 1G (%llu pages): "
				       "the kernel keeps the list of its pages in one block",
				       title, value, PS_RING_MAX_BYTES / sysconf(_SC_PAGESIZE));
	uint64_t bytes = sysconf(_SC_PAGESIZE);
	while (bytes < number * unit)
		bytes *= 2;
	options->ring_bytes = bytes;
	options->is_ring_rounded = bytes != number * unit;
	return NULL;
}

static struct ps_error *store_on_error(const char *title, const char *value, bool *ret)
{
	bool is_stop = !strcmp(value, "stop");
	if (!is_stop && strcmp(value, "continue"))
		return ps_error_format(PS_ERROR_USAGE, "%s: '%s' is neither continue nor stop",
				       title, value);
	*ret = is_stop;
	return NULL;
}

// What perf_event_attr.sample_stack_user may be: a record's length has 16 bits (perf_copy_attr() in
// kernel/events/core.c).
#define MAX_STACK_BYTES 65528

static struct ps_error *store_stack_bytes(const char *title, const char *value, uint32_t *ret)
{
	uint64_t number;
	const char *end;
	if (!read_digits(value, &number, &end) || *end || !number || number % 8 ||
	    number > MAX_STACK_BYTES)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: '%s' is not a size of a stack's copy: bytes, a "
				       "multiple of 8, at most %d, which is what a record can hold",
				       title, value, MAX_STACK_BYTES);
	*ret = number;
	return NULL;
}

static struct ps_error *store_stack(const char *title, const char *value,
				    struct ps_options *options)
{
	static const char *const names[] = {
		[PS_STACK_FP] = "fp",
		[PS_STACK_DWARF] = "dwarf",
		[PS_STACK_LBR] = "lbr",
	};
	if (!value)
		value = names[PS_STACK_FP];
	size_t length = strcspn(value, ",");
	for (size_t i = PS_STACK_FP; i < PS_ARRAY_SIZE(names); i++) {
		if (strlen(names[i]) != length || strncmp(value, names[i], length))
			continue;
		options->stack = i;
		options->stack_bytes = 0;
		if (!value[length])
			return NULL;
		if (i == PS_STACK_DWARF)
			return store_stack_bytes(title, value + length + 1, &options->stack_bytes);
		return ps_error_format(PS_ERROR_USAGE, "%s: %s takes no size, dwarf does", title,
				       names[i]);
	}
	return ps_error_format(PS_ERROR_USAGE, "%s: '%s' is none of fp, dwarf, dwarf,SIZE, lbr",
			       title, value);
}

static struct ps_error *store_text(const char *title, const char *value, const char **ret)
{
	if (!*value)
		return ps_error_format(PS_ERROR_USAGE, "%s: its value is empty", title);
	*ret = value;
	return NULL;
}

struct ps_error *ps_option_store(const struct ps_option *option, const char *value,
				 struct ps_options *options)
{
	char title[64];
	ps_option_title(option, title, sizeof(title));
	void *target = (char *)options + option->offset;
	switch (option->kind) {
	case PS_OPTION_FLAG:
	case PS_OPTION_FLAG_OFF:
		*(bool *)target = option->kind == PS_OPTION_FLAG;
		return NULL;
	case PS_OPTION_COUNT:
		*(uint64_t *)target += 1;
		return NULL;
	case PS_OPTION_TEXT:
		return store_text(title, value, target);
	case PS_OPTION_EVENT:
		return store_text(title, value, &options->events[options->nr_events++]);
	case PS_OPTION_REGION:
		return store_text(title, value, &options->regions[options->nr_regions++]);
	case PS_OPTION_NUMBER:
		return store_number(option, title, value, target);
	case PS_OPTION_SIGNED:
		return store_signed(title, value, target);
	case PS_OPTION_SECONDS:
		return store_seconds(title, value, target);
	case PS_OPTION_SIZE:
		return store_size(title, value, options);
	case PS_OPTION_CLOCK:
		return ps_error_context(ps_clock_parse(value, target), "%s", title);
	case PS_OPTION_ON_ERROR:
		return store_on_error(title, value, target);
	case PS_OPTION_STACK:
		return store_stack(title, value, options);
	case PS_OPTION_RUN:
	case PS_OPTION_LATER:
		break; // the parser keeps them
	}
	return NULL;
}
