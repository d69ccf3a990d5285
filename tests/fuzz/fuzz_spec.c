// SPDX-License-Identifier: MIT
/**
 * fuzz_spec SEED N: mutate valid event texts N times; each must end in an event list or one usage
 * error with a caret.
 */
#include <linux/perf_event.h>
#include <perfscope/spec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 4096

static const char *const corpus[] = {
	"cycles,sched:sched_switch",
	"{cycles:u,instructions,LLC-loads}:k,page-faults",
	"sched:sched_switch/prev_pid>0 && comm~\"ba*\"/alias=x,stack/:u",
	"sched:sched_switch//stack/alias=a/cpus=0-3,8/",
	"cpu/event=0x3c,umask=0,name=x,edge/u",
	"cpu-clock/freq=997,stack,max-stack=12/:ppp",
	"r1a8,r0x1c2/period=1000,ip,addr,regs,weight/",
	"mem:0x1000/8:rw/alias=y/:u",
	"uprobe:f+0x10@\"/usr/bin/a b\" name=+0(%di):ustring n=%si:b4@0/32/n>1/stack/",
	"{uretprobe:main@./prog,usdt:python:gc__start@/usr/bin/python3}",
	"kprobe:vfs_read+4 s=\\\"x/y\",kretprobe:vfs_read",
	"profile/-F 997 -g --max-stack=3/",
	" msr/tsc/ ,\n\tsyscalls:sys_enter_*/fd == 3 || (fd > 5)/ \n cs",
};

static const char pieces[] = ",/:{}\"'@+=*?-. \n\tukhGHp0x9arsm\\()&|~%$\x01\x7f\x80\xff";

static uint64_t state;

/** xorshift64*: the same sequence everywhere. */
static uint32_t next_random(uint32_t bound)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % bound;
}

static void insert(char *text, size_t at, const char *piece, size_t size)
{
	size_t length = strlen(text);
	if (length + size > MAX_TEXT)
		return;
	memmove(text + at + size, text + at, length - at + 1);
	memcpy(text + at, piece, size);
}

static void mutate(char *text)
{
	size_t length = strlen(text);
	size_t at = next_random(length + 1);
	const char *other = corpus[next_random(sizeof(corpus) / sizeof(corpus[0]))];
	size_t from = next_random(strlen(other));
	switch (next_random(6)) {
	case 0:
		text[at] = '\0';
		break;
	case 1:
		if (at < length)
			memmove(text + at, text + at + 1, length - at);
		break;
	case 2:
		if (at < length)
			text[at] = pieces[next_random(sizeof(pieces) - 1)];
		break;
	case 3:
		insert(text, at, pieces + next_random(sizeof(pieces) - 1), 1);
		break;
	case 4:
		insert(text, at, other + from, next_random(strlen(other) - from) + 1);
		break;
	default:
		insert(text, length, ",", 1);
		insert(text, strlen(text), other, strlen(other));
	}
}

static void fail(const char *text, const char *why)
{
	fprintf(stderr, "fuzz_spec: %s: %s\n", why, text);
	abort();
}

/** What a list promises to those who read it. */
static void check_list(const char *text, const struct ps_spec_list *list)
{
	if (!list->nr_specs)
		fail(text, "neither event nor error");
	for (size_t i = 0; i < list->nr_specs; i++) {
		const struct ps_spec *spec = &list->specs[i];
		if (strncmp(text + spec->column, spec->text, strlen(spec->text)))
			fail(text, "the text of an event is not where its column says");
		if (!spec->name && !spec->system && spec->kind != PS_SPEC_BREAKPOINT)
			fail(text, "an event without a name");
		if (spec->group > list->nr_groups)
			fail(text, "a group that is not there");
	}
}

static void check_error(const char *text, const struct ps_error *error,
			const struct ps_spec_list *list)
{
	if (error->kind != PS_ERROR_USAGE)
		fail(text, "an error that is no usage error");
	if (!error->detail || !strchr(error->detail, '^'))
		fail(text, "an error without a caret");
	if (list->nr_specs || list->specs)
		fail(text, "an error and a list");
}

static void check(const char *text)
{
	struct ps_spec_list list = {};
	struct ps_error *error = ps_spec_parse(text, &list);
	if (error)
		check_error(text, error, &list);
	else
		check_list(text, &list);
	ps_error_destroy(error);
	ps_spec_list_deinit(&list);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_spec SEED N\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	unsigned long nr = strtoul(argv[2], NULL, 0);
	for (unsigned long i = 0; i < nr; i++) {
		char text[MAX_TEXT + 1];
		strcpy(text, corpus[i % (sizeof(corpus) / sizeof(corpus[0]))]);
		if (i < sizeof(corpus) / sizeof(corpus[0])) {
			struct ps_spec_list list = {};
			if (ps_spec_parse(text, &list))
				fail(text, "a valid text is refused");
			ps_spec_list_deinit(&list);
		}
		for (uint32_t rounds = next_random(1 << next_random(8)) + 1; rounds; rounds--)
			mutate(text);
		check(text);
	}
	return 0;
}
