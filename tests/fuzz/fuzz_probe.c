// SPDX-License-Identifier: MIT
/**
 * fuzz_probe SEED N: cut and mutate a program with debug info N times; looking for places and variables in it must end in
 * some or in an error.
 */
#include <perfscope/probe.h>

#include "program.h"

static const char source[] =
	"struct item { struct item *next; int id; struct { int a; char b[8]; };\n"
	"	union { long l; unsigned i : 5; }; enum { X, Y } e; };\n"
	"struct wrap { struct item n; int v[4]; };\n"
	"typedef const struct wrap constant;\n"
	"__attribute__((noinline)) struct item *find(struct wrap w, constant *p, int n, double d)\n"
	"{ __asm__ volatile(\"\" :: \"r\"(p)); return p->n.next + n + w.n.id + (int)d; }\n"
	"static inline int inner(int q, struct item *k)\n"
	"{ int of = q * 3; __asm__ volatile(\"\" :: \"r\"(of)); return k->id + of; }\n"
	"int main(int argc, char **argv) { struct wrap w = { 0 }; w.n.next = &w.n;\n"
	"	return inner(argc, find(w, &w, argc, 1.0)); }\n";

static struct ps_error *visit(const struct ps_probe_name *name, void *argument)
{
	*(size_t *)argument += strlen(name->name) + (name->details ? strlen(name->details) : 0);
	return NULL;
}

static void list(const char *path)
{
	const char *const systems[] = { "uprobe", "uretprobe", "usdt" };
	size_t length = 0;
	for (size_t i = 0; i < PS_ARRAY_SIZE(systems); i++)
		ps_error_destroy(ps_probe_walk(path, systems[i], "*", true, visit, &length));
}

static void find(const char *event, const char *path)
{
	char text[256];
	struct ps_spec_list list = { 0 };
	struct ps_probe_places places;
	snprintf(text, sizeof(text), event, path);
	if (ps_spec_parse(text, &list))
		fail(text);
	struct ps_error *error = ps_probe_find(&list.specs[0], &places);
	if (!error)
		ps_probe_places_deinit(&places);
	ps_error_destroy(error);
	ps_spec_list_deinit(&list);
}

static void check(const char *path)
{
	list(path);
	find("uprobe:find@%s n p->n.id p->n.next->b w.n.id v=w.v p->n.i p->v[2]", path);
	find("uprobe:find@%s p->nothing", path);
	find("uretprobe:find@%s $retval $retval->id $retval->next->next->a", path);
	find("uprobe:inner@%s q k->l k->e of", path);
}

int main(int argc, char **argv)
{
	return fuzz(argc, argv, source, check);
}
