// SPDX-License-Identifier: MIT
#include <perfscope/options.h>

#include <perfscope/nearest.h>
#include <string.h>

/** Reads words one by one: the command line, or the script's defaults. */
struct parser {
	struct ps_options *options;
	char **words;	  // at the next one
	bool is_open;	  // options may still be ours
	uint32_t skipped; // bits of groups that were given above these words
};

static const struct ps_option *find_letter(char letter)
{
	for (const struct ps_option *option = ps_option_table; option->letter || option->name;
	     option++) {
		if (option->letter && option->letter == letter)
			return option;
	}
	return NULL;
}

/** The option called @name, of @length bytes. */
static const struct ps_option *find_name(const char *name, size_t length)
{
	for (const struct ps_option *option = ps_option_table; option->letter || option->name;
	     option++) {
		if (option->name && strlen(option->name) == length &&
		    !memcmp(option->name, name, length))
			return option;
	}
	return NULL;
}

static char *next_word(struct parser *parser)
{
	return *parser->words ? *parser->words++ : NULL;
}

/** The command starts at @first, in the word just read, and takes all words that follow. */
static void take_run(struct parser *parser, char *first, bool is_skipped)
{
	parser->words[-1] = first;
	if (!is_skipped)
		parser->options->run = parser->words - 1;
	while (*parser->words)
		parser->words++;
}

static struct ps_error *apply(struct parser *parser, const struct ps_option *option, char *value)
{
	char title[64];
	ps_option_title(option, title, sizeof(title));
	if (option->kind == PS_OPTION_LATER)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: not in this version (to give it to the script, put -- "
				       "before SCRIPT)",
				       title);
	if (option->argument && !value)
		return ps_error_format(PS_ERROR_USAGE, "%s needs %s", title, option->argument);
	bool is_skipped = parser->skipped & 1U << option->group;
	parser->options->given |= 1U << option->group;
	if (option->kind == PS_OPTION_RUN)
		take_run(parser, value, is_skipped);
	else if (!is_skipped)
		return ps_option_store(option, value, parser->options);
	return NULL;
}

/** Options by letter: "v", "vv", "ax", "i1000". */
static struct ps_error *parse_letters(struct parser *parser, char *letters)
{
	while (*letters) {
		const struct ps_option *option = find_letter(*letters++);
		char *value = NULL;
		if (option->argument) {
			value = *letters ? letters : next_word(parser);
			letters += strlen(letters);
		}
		struct ps_error *error = apply(parser, option, value);
		if (error)
			return error;
	}
	return NULL;
}

/** An option by name: "interval", "interval=1000". */
static struct ps_error *parse_name(struct parser *parser, const struct ps_option *option,
				   char *text)
{
	char *value = strchr(text, '=');
	if (option->kind == PS_OPTION_LATER)
		return apply(parser, option, NULL);
	if (option->kind == PS_OPTION_STACK)
		return apply(parser, option, value ? value + 1 : NULL);
	if (!option->argument && value)
		return ps_error_format(PS_ERROR_USAGE, "--%s takes no value", option->name);
	if (!option->argument)
		return apply(parser, option, NULL);
	return apply(parser, option, value ? value + 1 : next_word(parser));
}

/** Whether all letters are options, up to one that takes the rest as its value. */
static bool are_options(const char *letters)
{
	for (; *letters; letters++) {
		const struct ps_option *option = find_letter(*letters);
		if (!option)
			return false;
		if (option->argument)
			return true;
	}
	return true;
}

static struct ps_error *unknown_option(const char *word)
{
	char *end = strchrnul(word, '=');
	_cleanup_free_ char *name = strndup(word, end - word);
	if (!name)
		return &ps_enomem;
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	for (const struct ps_option *option = ps_option_table; option->letter || option->name;
	     option++) {
		char dashed[64];
		if (!option->name || option->kind == PS_OPTION_LATER || name[1] != '-')
			continue;
		snprintf(dashed, sizeof(dashed), "--%s", option->name);
		ps_nearest_add(&nearest, dashed);
	}
	_cleanup_free_ char *hint = ps_nearest_text(&nearest);
	struct ps_error *error =
		ps_error_format(PS_ERROR_USAGE, "%s: no such option%s", name,
				hint && *hint ? hint : "; perfscope python -h lists them");
	ps_nearest_deinit(&nearest);
	return error;
}

/** Parse @word where it is one of our options; else leave *ret_is_ours false. */
static struct ps_error *parse_option(struct parser *parser, char *word, bool *ret_is_ours)
{
	bool is_name = word[1] == '-';
	const struct ps_option *option =
		is_name ? find_name(word + 2, strcspn(word + 2, "=")) : NULL;
	*ret_is_ours = option || (!is_name && are_options(word + 1));
	if (!*ret_is_ours)
		return NULL;
	return is_name ? parse_name(parser, option, word + 2) : parse_letters(parser, word + 1);
}

/** SCRIPT, or one of its arguments. */
static void add_script_word(struct ps_options *options, char *word)
{
	if (!options->nr_script && !strcmp(word, "help"))
		options->wants_help = true;
	options->script[options->nr_script++] = word;
}

static struct ps_error *parse_word(struct parser *parser, char *word)
{
	struct ps_options *options = parser->options;
	bool is_dashed = word[0] == '-' && word[1];
	if (!parser->is_open || !is_dashed) {
		add_script_word(options, word);
		return NULL;
	}
	if (!strcmp(word, "--")) {
		parser->is_open = false;
		return NULL;
	}
	bool is_ours;
	struct ps_error *error = parse_option(parser, word, &is_ours);
	if (error || is_ours)
		return error;
	if (!options->nr_script)
		return unknown_option(word);
	add_script_word(options, word);
	return NULL;
}

struct ps_error *ps_options_parse(char **argv, struct ps_options *ret)
{
	size_t nr = 0;
	while (argv[nr])
		nr++;
	struct ps_options options = {
		.latency_ms = 100,
		.is_ordered = true,
		.with_user_stack = true,
		.with_kernel_stack = true,
		.script = calloc(nr + 1, sizeof(*options.script)),
		.events = calloc(nr + 1, sizeof(*options.events)),
		.regions = calloc(nr + 1, sizeof(*options.regions)),
	};
	bool has_memory = options.script && options.events && options.regions;
	struct ps_error *error = has_memory ? NULL : &ps_enomem;
	struct parser parser = { .options = &options, .words = argv, .is_open = true };
	while (!error && *parser.words)
		error = parse_word(&parser, next_word(&parser));
	if (error)
		ps_options_deinit(&options);
	else
		*ret = options;
	return error;
}

/** Parse the words of `__options__`, among which no SCRIPT may stand. */
static struct ps_error *parse_defaults(struct parser *parser)
{
	while (*parser->words) {
		char *word = next_word(parser);
		bool is_ours = false;
		struct ps_error *error = NULL;
		if (word[0] == '-' && word[1])
			error = parse_option(parser, word, &is_ours);
		if (error)
			return error;
		if (!is_ours && word[0] == '-')
			return unknown_option(word);
		if (!is_ours)
			return ps_error_format(PS_ERROR_USAGE, "%s: not an option", word);
	}
	return NULL;
}

/** Let @texts have room for @nr; false: no memory. */
static bool make_room(const char ***texts, size_t nr)
{
	const char **bigger = reallocarray(*texts, nr, sizeof(*bigger));
	if (bigger)
		*texts = bigger;
	return bigger;
}

struct ps_error *ps_options_add_defaults(struct ps_options *options, const char *text,
					 const char *script)
{
	char **words;
	struct ps_error *error = ps_words_split(text, &words);
	if (error)
		return ps_error_context(error, "__options__ of %s", script);
	size_t nr = 0;
	while (words[nr])
		nr++;
	if (!make_room(&options->events, options->nr_events + nr + 1) ||
	    !make_room(&options->regions, options->nr_regions + nr + 1)) {
		ps_words_destroy(words);
		return &ps_enomem;
	}
	options->defaults = words;
	struct parser parser = {
		.options = options,
		.words = words,
		.skipped = options->given & ~(1U << PS_GROUP_NONE),
	};
	return ps_error_context(parse_defaults(&parser), "__options__ of %s", script);
}

/** The targets given, as words for a message, in @ret; their number is returned. */
static unsigned int list_targets(const struct ps_options *options, const char *ret[2])
{
	const struct {
		bool is_given;
		const char *name;
	} targets[] = {
		{ options->is_all_cpus, "-a" },
		{ options->pids || options->tids, options->pids ? "-p" : "-t" },
		{ options->cgroup, "--cgroup" },
		{ options->run, "--run" },
	};
	unsigned int nr = 0;
	for (size_t i = 0; i < PS_ARRAY_SIZE(targets); i++) {
		if (!targets[i].is_given)
			continue;
		if (nr < 2)
			ret[nr] = targets[i].name;
		nr++;
	}
	return nr;
}

struct ps_error *ps_options_check(struct ps_options *options)
{
	const char *targets[2];
	if (list_targets(options, targets) > 1)
		return ps_error_format(PS_ERROR_USAGE, "%s and %s exclude each other: give one",
				       targets[0], targets[1]);
	if (options->freq && options->period)
		return ps_error_format(PS_ERROR_USAGE, "-F and -c exclude each other: give one");
	// The default may have been replaced only by the clock that it needs.
	if (options->is_tsc && options->clock != PS_CLOCK_MONOTONIC &&
	    options->clock != PS_CLOCK_PERF)
		return ps_error_format(PS_ERROR_USAGE,
				       "--tsc needs the clock perf: leave --clock away");
	if (options->is_tsc)
		options->clock = PS_CLOCK_PERF;
	if (!options->nr_script)
		return ps_error_format(PS_ERROR_USAGE, "no SCRIPT%s; perfscope python -h shows how",
				       options->run ? " before --run, which takes all that follows"
						    : "");
	if (!options->nr_events && !options->nr_regions)
		return ps_error_format(PS_ERROR_USAGE,
				       "no event: give -e EVENT, or __options__ in the script "
				       "(perfscope list shows events)");
	return NULL;
}

void ps_options_deinit(struct ps_options *options)
{
	free(options->events);
	free(options->regions);
	free(options->script);
	ps_words_destroy(options->defaults);
	*options = (struct ps_options){ 0 };
}
