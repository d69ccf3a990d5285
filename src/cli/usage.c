// SPDX-License-Identifier: MIT
#include <perfscope/summary.h>

#include <inttypes.h>
#include <perfscope/deadline.h>
#include <perfscope/log.h>

static uint64_t resident_bytes(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	uint64_t total, resident;
	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident) != 2)
		return 0;
	return resident * sysconf(_SC_PAGESIZE);
}

struct ps_usage ps_usage_now(void)
{
	return (struct ps_usage){
		.time_ns = ps_monotonic_ns(),
		.cpu_ns = ps_clock_gettime_ns(CLOCK_PROCESS_CPUTIME_ID),
		.resident_bytes = resident_bytes(),
	};
}

char *ps_usage_text(const struct ps_usage *last, const struct ps_usage *now,
		    const struct ps_dispatch_counts *counts)
{
	double share = 0;
	if (now->time_ns > last->time_ns)
		share = 100.0 * (now->cpu_ns - last->cpu_ns) / (now->time_ns - last->time_ns);
	char throttled[64] = "";
	if (counts->nr_throttled)
		snprintf(throttled, sizeof(throttled), ", %" PRIu64 " times held back",
			 counts->nr_throttled);
	char *text;
	if (asprintf(&text, "cpu %.1f%%, memory %.1f MB, %" PRIu64 " events, %" PRIu64 " lost%s",
		     share, now->resident_bytes / 1e6, counts->nr_events, counts->nr_lost,
		     throttled) < 0)
		return NULL;
	return text;
}

void ps_usage_print(void *argument)
{
	struct ps_usage_meter *meter = argument;
	struct ps_usage now = ps_usage_now();
	struct ps_dispatch_counts counts = ps_dispatch_counts(meter->dispatch);
	_cleanup_free_ char *text = ps_usage_text(&meter->last, &now, &counts);
	meter->last = now;
	if (text)
		ps_log(PS_LOG_ERROR, "%s", text);
}
