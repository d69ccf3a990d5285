// SPDX-License-Identifier: MIT
/*
 * Mutate format texts and records: fuzz_format SEED N [FOLDER]
 *
 * Each of N rounds takes a format of the folder of tracefs (or one that is built in), changes it in a few places, and
 * does all that can be done with what is parsed. It must end, with nothing read or written outside (run it under
 * ASan or valgrind). The same seed does the same again.
 */
#include <perfscope/schema.h>
#include <perfscope/tracepoint.h>

#include <inttypes.h>
#include <string.h>

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return below ? random_state % below : 0;
}

struct text {
	char *data;
	size_t size;
};

static struct text *texts;
static size_t nr_texts;

static const char builtin_text[] =
	"name: built_in\nID: 7\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc u8[] data;\toffset:28;\tsize:4;\tsigned:0;\n"
	"\tfield:long state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:unsigned long args[3];\toffset:40;\tsize:24;\tsigned:0;\n\n"
	"print fmt: \"comm=%s name=%.*s %s%s %lx %p\", REC->comm, 3, __get_str(name), "
	"(REC->state & 3) ? __print_flags(REC->state & 3, \"|\", { 1, \"S\" }, { 2, \"D\" }) : "
	"\"R\", "
	"REC->state > 3 ? \"+\" : \"\", REC->args[2], (void *)REC->args[0]\n";

static struct ps_error *keep_text(const char *system, const char *name, void *tracefs)
{
	struct text *bigger = realloc(texts, (nr_texts + 1) * sizeof(*texts));
	if (!bigger)
		return &ps_enomem;
	texts = bigger;
	struct ps_error *error = ps_tracepoint_read_format(
		tracefs, system, name, &texts[nr_texts].data, &texts[nr_texts].size);
	if (!error)
		nr_texts++;
	return error;
}

static void load_texts(const char *folder)
{
	struct ps_error *error = folder ? NULL : ps_tracefs_path(&folder);
	if (!error)
		error = ps_tracepoint_glob(folder, "*", "*", keep_text, (void *)folder);
	ps_error_destroy(error);
	if (nr_texts)
		return;
	static struct text builtin;
	builtin = (struct text){ strdup(builtin_text), sizeof(builtin_text) - 1 };
	texts = malloc(sizeof(builtin));
	texts[nr_texts++] = builtin;
}

/** Where to change: in the fields or in the print format, which is much longer, equally often. */
static size_t choose_place(const char *data, size_t size)
{
	const char *print = memmem(data, size, "print fmt", strlen("print fmt"));
	size_t head = print ? (size_t)(print - data) : size;
	if (next_random(2) && head < size)
		return head + next_random(size - head);
	return next_random(head);
}

// What print formats are made of.
static const char *const pieces[] = { "REC->",
				      "(",
				      ")",
				      "{",
				      "}",
				      "[",
				      "]",
				      ",",
				      "\"",
				      "'",
				      "\\",
				      "%s",
				      "%d",
				      "%.*s",
				      "%pS",
				      "%pI4",
				      "%pUb",
				      "->",
				      "?",
				      ":",
				      "!",
				      "~",
				      "-1",
				      "<<",
				      "/ 0",
				      "&&",
				      "||",
				      "==",
				      "\n",
				      "\t",
				      ";",
				      "0",
				      "99999",
				      "sizeof(",
				      "field:",
				      "__get_str(",
				      "__print_symbolic(",
				      "__print_flags(",
				      "__print_hex(",
				      "__get_dynamic_array(",
				      "__data_loc ",
				      "__get_dynamic_array_len(",
				      "__get_bitmask(",
				      "__print_array(",
				      "__rel_loc ",
				      "char[] ",
				      "size:",
				      "(unsigned long)" };

static size_t mutate_once(char *data, size_t size, size_t capacity)
{
	size_t at = choose_place(data, size), length, end;
	const char *piece;
	switch (next_random(6)) {
	case 0: // another byte
		data[at] = next_random(8) ? ' ' + next_random(95) : next_random(256);
		return size;
	case 1: // cut
		return next_random(8) ? size : at;
	case 2: // remove
		length = next_random(next_random(4) ? 8 : 200);
		end = at + length < size ? at + length : size;
		memmove(data + at, data + end, size - end);
		return size - (end - at);
	case 3: // insert a piece
		piece = pieces[next_random(PS_ARRAY_SIZE(pieces))];
		length = strlen(piece);
		if (size + length > capacity)
			return size;
		memmove(data + at + length, data + at, size - at);
		memcpy(data + at, piece, length);
		return size + length;
	case 4: // say again
		length = next_random(64);
		if (at + length > size || size + length > capacity)
			return size;
		memmove(data + at + length, data + at, size - at);
		return size + length;
	default: // another digit
		while (at < size && (data[at] < '0' || data[at] > '9'))
			at++;
		if (at < size)
			data[at] = '0' + next_random(10);
		return size;
	}
}

/** All that can be done with one format and one record. */
static void use_schema(const struct ps_schema *schema, struct ps_bytes raw)
{
	for (size_t i = 0; i < schema->nr_fields; i++) {
		struct ps_value value;
		if (ps_field_decode(&schema->fields[i], raw, &value) &&
		    value.kind != PS_FIELD_INT) {
			uint8_t sum = 0;
			for (size_t at = 0; at < value.bytes.size; at++)
				sum += value.bytes.data[at];
			__asm__ volatile("" : : "r"(sum));
		}
		free(ps_format_symbolic(schema->format, schema->fields[i].name, raw));
	}
	free(ps_format_print(schema->format, raw));
}

/** A record of bytes that mean something now and then: small numbers, locations inside. */
static struct ps_bytes make_record(uint8_t *data, size_t capacity)
{
	size_t size = next_random(capacity + 1);
	bool is_wild = !next_random(4);
	for (size_t i = 0; i < size; i++)
		data[i] = is_wild ? next_random(256) : next_random(3) ? 0 : next_random(64);
	return (struct ps_bytes){ data, size };
}

static bool run_round(void)
{
	const struct text *text = &texts[next_random(nr_texts)];
	size_t capacity = text->size + 1024, size = text->size;
	_cleanup_free_ char *data = malloc(capacity);
	memcpy(data, text->data, size);
	for (uint64_t nr = next_random(8); nr && size; nr--)
		size = mutate_once(data, size, capacity);
	_cleanup_schema_ struct ps_schema *schema = NULL;
	// A copy of exactly this size: one byte beyond it is seen by ASan.
	_cleanup_free_ char *exact = malloc(size ? size : 1);
	memcpy(exact, data, size);
	_cleanup_error_ struct ps_error *error =
		ps_schema_create_tracepoint("fuzz", exact, size, &schema);
	if (error)
		return false;
	uint8_t raw[600];
	_cleanup_free_ uint8_t *record = malloc(sizeof(raw));
	for (int i = 0; i < 3; i++) {
		struct ps_bytes made = make_record(raw, i ? sizeof(raw) : 120);
		memcpy(record, made.data, made.size);
		use_schema(schema, (struct ps_bytes){ record, made.size });
	}
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: fuzz_format SEED N [FOLDER]\n");
		return 2;
	}
	uint64_t seed = strtoull(argv[1], NULL, 10), nr = strtoull(argv[2], NULL, 10),
		 nr_parsed = 0;
	load_texts(argv[3]);
	for (uint64_t i = 0; i < nr; i++) {
		// Each round stands alone: `fuzz_format SEED+i 1` is round i.
		random_state = (seed + i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		next_random(0);
		nr_parsed += run_round();
	}
	printf("fuzz_format: %" PRIu64 " rounds, %" PRIu64 " texts were formats\n", nr, nr_parsed);
	for (size_t i = 0; i < nr_texts; i++)
		free(texts[i].data);
	free(texts);
	return 0;
}
