// SPDX-License-Identifier: MIT
/**
 * The room script for its tests, with sources that are made up: no kernel, no events.
 *
 *     script_driver options SCRIPT             what `__options__` says
 *     script_driver bind HANDLERS SCRIPT ARG.. load and bind; HANDLERS by commas, a `-` in front: counts only
 *     script_driver call HANDLERS SCRIPT ARG.. the same, then call all that is bound, callbacks first
 *     script_driver interrupt MS SCRIPT        load, and ps_interp_interrupt from a signal handler after so long
 *     script_driver template                   a template for the sources on stdin, lines of fields by tabs:
 *                                              NAME HANDLER, then below it, for each field, "" FIELD TYPE KIND
 */
#include <perfscope/binding.h>
#include <perfscope/log.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#define MAX_SOURCES 4096

static struct ps_source sources[MAX_SOURCES];
static struct ps_source *pointers[MAX_SOURCES];
static struct ps_source_list list = { .sources = pointers };
static struct ps_schema *schema; // of the source last read

static int fail(struct ps_error *error)
{
	ps_log_error(PS_LOG_ERROR, error);
	ps_error_destroy(error);
	return 1;
}

static void add_source(char *name, char *handler, bool is_sampling, struct ps_schema *of)
{
	if (list.nr_sources == MAX_SOURCES)
		abort();
	struct ps_source *source = &sources[list.nr_sources];
	*source = (struct ps_source){ .index = list.nr_sources,
				      .name = name,
				      .label = name,
				      .handler = handler,
				      .is_sampling = is_sampling,
				      .schema = of };
	pointers[list.nr_sources++] = source;
}

static int print_options(const char *name)
{
	char *options = NULL;
	struct ps_error *error = ps_script_find_options(name, &options);
	if (error)
		return fail(error);
	if (options)
		printf("[%s]\n", options);
	else
		puts("none");
	free(options);
	return 0;
}

static void print_binding(const struct ps_script *script)
{
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++) {
		if (script->callbacks[i])
			PySys_FormatStdout("%s %u\n", ps_callbacks[i].name, script->nr_args[i]);
	}
	for (size_t i = 0; i < script->nr_handlers; i++) {
		PyObject *handler = script->handlers[i];
		bool is_sample = handler && handler == script->callbacks[PS_CALLBACK_SAMPLE];
		PySys_FormatStdout("%s: %s\n", sources[i].handler,
				   is_sample ? "__sample__"
				   : handler ? "own"
					     : "none");
	}
}

static PyObject *call(PyObject *callable, unsigned int nr_args)
{
	PyObject *arguments = PyTuple_New(nr_args);
	for (unsigned int i = 0; i < nr_args; i++)
		PyTuple_SET_ITEM(arguments, i, PyDict_New());
	PyObject *result = PyObject_Call(callable, arguments, NULL);
	Py_DECREF(arguments);
	return result;
}

static void call_all(const struct ps_script *script)
{
	for (size_t i = 0; i < PS_NR_CALLBACKS + script->nr_handlers; i++) {
		bool is_callback = i < PS_NR_CALLBACKS;
		PyObject *callable =
			is_callback ? script->callbacks[i] : script->handlers[i - PS_NR_CALLBACKS];
		if (!callable)
			continue;
		PyObject *result = call(callable, is_callback ? script->nr_args[i] : 1);
		if (!result)
			PyErr_Print();
		Py_XDECREF(result);
	}
}

static int run(bool wants_call, char *handlers, int nr, char **arguments)
{
	char *handler;
	while ((handler = strsep(&handlers, ","))) {
		bool counts = *handler == '-';
		if (handler[counts])
			add_source(handler + counts, handler + counts, !counts, NULL);
	}
	struct ps_error *error = ps_interp_start(nr, arguments);
	if (error)
		return fail(error);
	struct ps_script *script;
	int status = 0;
	error = ps_script_load(arguments[0], &script, &status);
	if (!error && script)
		error = ps_script_bind(script, &list, false);
	if (error) {
		status = fail(error);
	} else if (script) {
		if (wants_call)
			call_all(script);
		else
			print_binding(script);
	}
	ps_script_destroy(script);
	int finish_status = ps_interp_finish();
	return status ? status : finish_status;
}

static void interrupt(int signal)
{
	ps_interp_interrupt();
}

/** Without SA_RESTART, so that a script that sleeps is woken. */
static void interrupt_after(long ms)
{
	struct sigaction action = { .sa_handler = interrupt };
	sigaction(SIGALRM, &action, NULL);
	struct itimerval timer = { .it_value = { ms / 1000, ms % 1000 * 1000 } };
	setitimer(ITIMER_REAL, &timer, NULL);
}

static enum ps_field_kind kind_of(const char *name)
{
	static const char *const names[] = { "int", "str", "bytes", "ints", "cpumask" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name))
			return (enum ps_field_kind)i;
	}
	abort();
}

static void add_field(const char *name, const char *type_name, const char *kind)
{
	size_t size = (schema->nr_fields + 1) * sizeof(*schema->fields);
	schema->fields = realloc(schema->fields, size);
	schema->fields[schema->nr_fields++] = (struct ps_field){ .name = strdup(name),
								 .type_name = strdup(type_name),
								 .kind = kind_of(kind) };
}

static void add_line(char *line)
{
	line[strcspn(line, "\n")] = 0;
	char *columns[4] = { NULL };
	for (size_t i = 0; i < PS_ARRAY_SIZE(columns); i++)
		columns[i] = strsep(&line, "\t");
	if (*columns[0]) {
		schema = calloc(1, sizeof(*schema));
		add_source(strdup(columns[0]), strdup(columns[1]), true, schema);
	} else {
		add_field(columns[1], columns[2], columns[3]);
	}
}

static int print_template(void)
{
	char *line = NULL;
	size_t size = 0;
	while (getline(&line, &size, stdin) > 0)
		add_line(line);
	free(line);
	struct ps_error *error = ps_template_write(&list, "", stdout);
	for (size_t i = 0; i < list.nr_sources; i++) {
		ps_fields_destroy(sources[i].schema->fields, sources[i].schema->nr_fields);
		free(sources[i].schema);
		free(sources[i].name);
		free(sources[i].handler);
	}
	return error ? fail(error) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "template"))
		return print_template();
	if (argc == 3 && !strcmp(argv[1], "options"))
		return print_options(argv[2]);
	if (argc >= 4 && (!strcmp(argv[1], "bind") || !strcmp(argv[1], "call")))
		return run(!strcmp(argv[1], "call"), argv[2], argc - 3, argv + 3);
	if (argc == 4 && !strcmp(argv[1], "interrupt")) {
		interrupt_after(atol(argv[2]));
		return run(false, NULL, 1, argv + 3);
	}
	return 2;
}
