// SPDX-License-Identifier: MIT
#include "print_grammar.h"

#include <ctype.h>
#include <perfscope/cleanup.h>
#include <stdlib.h>
#include <string.h>

/*
 * expression: operand { operator operand } [ "?" expression ":" expression ]
 * operand:    { "-" | "!" | "~" } ( number | name | string | field | call | cast operand | "(" expression ")" )
 * field:      "REC->" name [ "[" number "]" ]
 * cast:       "(" name { name } { "*" } ")"
 */

// Parentheses, conditions and signs inside each other; libtraceevent recurses as this does.
#define MAX_DEPTH 64

struct grammar {
	struct ps_span rest;
	const struct ps_field *fields;
	size_t nr_fields;
	unsigned int depth;
};

static bool take_expression(struct grammar *grammar);
static bool take_operand(struct grammar *grammar);

static char next_char(const struct grammar *grammar)
{
	return grammar->rest.size ? grammar->rest.start[0] : '\0';
}

static void advance(struct grammar *grammar, size_t size)
{
	grammar->rest.start += size;
	grammar->rest.size -= size;
}

static void skip_space(struct grammar *grammar)
{
	while (next_char(grammar) == ' ')
		advance(grammar, 1);
}

static bool take(struct grammar *grammar, const char *token)
{
	skip_space(grammar);
	size_t length = strlen(token);
	if (grammar->rest.size < length || memcmp(grammar->rest.start, token, length))
		return false;
	advance(grammar, length);
	return true;
}

static bool take_word(struct grammar *grammar, struct ps_span *ret)
{
	skip_space(grammar);
	char c = next_char(grammar);
	if (!isalpha((unsigned char)c) && c != '_')
		return false;
	ret->start = grammar->rest.start;
	while (isalnum((unsigned char)next_char(grammar)) || next_char(grammar) == '_')
		advance(grammar, 1);
	ret->size = grammar->rest.start - ret->start;
	return true;
}

static bool word_is(struct ps_span word, const char *text)
{
	return word.size == strlen(text) && !memcmp(word.start, text, word.size);
}

/** Digits of base 8, 10 or 16 and a suffix. */
static bool take_number(struct grammar *grammar)
{
	skip_space(grammar);
	if (!isdigit((unsigned char)next_char(grammar)))
		return false;
	bool is_hex = take(grammar, "0x") || take(grammar, "0X");
	if (is_hex && !isxdigit((unsigned char)next_char(grammar)))
		return false;
	while (is_hex ? isxdigit((unsigned char)next_char(grammar))
		      : isdigit((unsigned char)next_char(grammar)))
		advance(grammar, 1);
	while (next_char(grammar) && strchr("uUlL", next_char(grammar)))
		advance(grammar, 1);
	return !isalnum((unsigned char)next_char(grammar)) && next_char(grammar) != '_';
}

/** A string, or several in a row, which are one. */
static bool take_string(struct grammar *grammar)
{
	bool is_taken = false;
	while (take(grammar, "\"")) {
		while (grammar->rest.size && next_char(grammar) != '"')
			advance(grammar,
				next_char(grammar) == '\\' && grammar->rest.size > 1 ? 2 : 1);
		is_taken = take(grammar, "\"");
		if (!is_taken)
			return false;
	}
	return is_taken;
}

static bool take_field_name(struct grammar *grammar)
{
	struct ps_span word;
	if (!take_word(grammar, &word))
		return false;
	for (size_t i = 0; i < grammar->nr_fields; i++) {
		if (word_is(word, grammar->fields[i].name))
			return true;
	}
	return false;
}

/** What follows "REC". */
static bool take_field(struct grammar *grammar)
{
	if (!take(grammar, "->") || !take_field_name(grammar))
		return false;
	return !take(grammar, "[") || (take_number(grammar) && take(grammar, "]"));
}

/** `{ number, "name" }, ...`; a list may end in `{ 0, ((void *)0) }`. */
static bool take_names(struct grammar *grammar)
{
	do {
		if (!take(grammar, "{") || !take_expression(grammar) || !take(grammar, ","))
			return false;
		if (!take_string(grammar) && !take_expression(grammar))
			return false;
		if (!take(grammar, "}"))
			return false;
	} while (take(grammar, ","));
	return true;
}

static bool take_flags(struct grammar *grammar)
{
	return take_expression(grammar) && take(grammar, ",") && take_string(grammar) &&
	       take(grammar, ",") && take_names(grammar);
}

static bool take_symbols(struct grammar *grammar)
{
	return take_expression(grammar) && take(grammar, ",") && take_names(grammar);
}

static bool take_hex(struct grammar *grammar)
{
	bool is_there =
		take(grammar, "__get_dynamic_array")
			? take(grammar, "(") && take_field_name(grammar) && take(grammar, ")")
			: take(grammar, "REC->") && take_field_name(grammar);
	return is_there && take(grammar, ",") && take_expression(grammar);
}

static bool take_likely(struct grammar *grammar)
{
	return take_expression(grammar) && take(grammar, ",") && take_expression(grammar);
}

static bool take_type(struct grammar *grammar)
{
	struct ps_span word;
	unsigned int nr_words = 0;
	while (take_word(grammar, &word))
		nr_words++;
	while (nr_words && take(grammar, "*"))
		;
	return nr_words;
}

/** The call of @function, whose name is taken. */
static bool take_call(struct grammar *grammar, struct ps_span function)
{
	static const struct {
		const char *name;
		bool (*take_arguments)(struct grammar *grammar);
	} functions[] = {
		{ "__print_flags", take_flags },
		{ "__print_symbolic", take_symbols },
		{ "__print_hex", take_hex },
		{ "__print_hex_str", take_hex },
		{ "__get_str", take_field_name },
		{ "__get_rel_str", take_field_name },
		{ "__get_bitmask", take_field_name },
		{ "__get_rel_bitmask", take_field_name },
		{ "__get_cpumask", take_field_name },
		{ "__get_rel_cpumask", take_field_name },
		{ "__get_dynamic_array_len", take_field_name },
		{ "__get_rel_dynamic_array_len", take_field_name },
		{ "__builtin_expect", take_likely },
		{ "sizeof", take_type },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(functions); i++) {
		if (word_is(function, functions[i].name))
			return take(grammar, "(") && functions[i].take_arguments(grammar) &&
			       take(grammar, ")");
	}
	return false;
}

/** Whether an operand that no sign stands before starts here. */
static bool is_operand_next(struct grammar *grammar)
{
	skip_space(grammar);
	char c = next_char(grammar);
	return c && (isalnum((unsigned char)c) || strchr("_(\"", c));
}

static bool take_cast(struct grammar *grammar)
{
	struct grammar before = *grammar;
	if (take(grammar, "(") && take_type(grammar) && take(grammar, ")") &&
	    is_operand_next(grammar))
		return true;
	*grammar = before;
	return false;
}

static bool take_plain_operand(struct grammar *grammar)
{
	struct ps_span word;
	if (take_cast(grammar))
		return take_operand(grammar);
	if (take(grammar, "("))
		return take_expression(grammar) && take(grammar, ")");
	if (take_number(grammar))
		return true;
	if (next_char(grammar) == '"')
		return take_string(grammar);
	if (!take_word(grammar, &word))
		return false;
	if (word_is(word, "REC"))
		return take_field(grammar);
	skip_space(grammar);
	return next_char(grammar) == '(' ? take_call(grammar, word) : true;
}

static bool take_operand(struct grammar *grammar)
{
	unsigned int depth = grammar->depth;
	do {
		if (grammar->depth++ == MAX_DEPTH)
			return false;
	} while (take(grammar, "-") || take(grammar, "!") || take(grammar, "~"));
	bool is_taken = take_plain_operand(grammar);
	grammar->depth = depth;
	return is_taken;
}

/** Division is by a number, and not by 0: libtraceevent divides constants while it parses. */
static bool take_divisor(struct grammar *grammar)
{
	skip_space(grammar);
	if (take(grammar, "sizeof"))
		return take(grammar, "(") && take_type(grammar) && take(grammar, ")");
	const char *start = grammar->rest.start;
	return take_number(grammar) && strtoull(start, NULL, 0);
}

// How tight operators bind: * + << < == & | && ||.
#define NR_LEVELS 9

/** Take an operator: its level and its first letter. */
static bool take_operator(struct grammar *grammar, unsigned int *ret_level, char *ret_letter)
{
	static const struct {
		const char *token;
		unsigned int level;
	} operators[] = {
		{ "<<", 2 }, { ">>", 2 }, { "<=", 3 }, { ">=", 3 }, { "==", 4 }, { "!=", 4 },
		{ "&&", 7 }, { "||", 8 }, { "<", 3 },  { ">", 3 },  { "&", 5 },	 { "|", 6 },
		{ "+", 1 },  { "-", 1 },  { "*", 0 },  { "/", 0 },  { "%", 0 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(operators); i++) {
		if (take(grammar, operators[i].token)) {
			*ret_level = operators[i].level;
			*ret_letter = operators[i].token[0];
			return true;
		}
	}
	return false;
}

/**
 * Whether `a FIRST (b NEXT c)` is `(a FIRST b) NEXT c`: libtraceevent takes operators of one level from the right.
 */
static bool is_associative(unsigned int level, char first, char next)
{
	switch (level) {
	case 0:
		return first == '*' && next == '*';
	case 1:
		return first == '+';
	default:
		return level >= 5;
	}
}

static bool take_expression(struct grammar *grammar)
{
	unsigned int depth = grammar->depth, level;
	char seen[NR_LEVELS] = { 0 }, letter;
	if (grammar->depth++ == MAX_DEPTH)
		return false;
	bool is_taken = take_operand(grammar);
	while (is_taken && take_operator(grammar, &level, &letter)) {
		is_taken = (!seen[level] || is_associative(level, seen[level], letter)) &&
			   (strchr("/%", letter) ? take_divisor(grammar) : take_operand(grammar));
		// Looser than what stands before: that is whole, on its left.
		memset(seen, 0, level);
		// A minus stays the first of its level: what follows it is taken from it.
		if (seen[level] != '-')
			seen[level] = letter;
	}
	if (is_taken && take(grammar, "?"))
		is_taken =
			take_expression(grammar) && take(grammar, ":") && take_expression(grammar);
	grammar->depth = depth;
	return is_taken;
}

bool ps_print_argument_check(struct ps_span argument, const struct ps_field *fields,
			     size_t nr_fields)
{
	struct grammar grammar = { argument, fields, nr_fields, 0 };
	if (!take_expression(&grammar))
		return false;
	skip_space(&grammar);
	return !grammar.rest.size;
}
