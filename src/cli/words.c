// SPDX-License-Identifier: MIT
#include <perfscope/options.h>

#include <string.h>

/** Unquotes one word after the other into a buffer as large as the text. */
struct splitter {
	const char *at;
	char *out;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/** Copy what stands in quotes; false where the closing one is missing. */
static bool copy_quoted(struct splitter *splitter)
{
	char quote = *splitter->at++;
	while (*splitter->at && *splitter->at != quote) {
		// In "..." a backslash quotes only what would end or start something.
		if (quote == '"' && *splitter->at == '\\' && splitter->at[1] &&
		    strchr("\"\\$`", splitter->at[1]))
			splitter->at++;
		*splitter->out++ = *splitter->at++;
	}
	return *splitter->at++ == quote;
}

/** Copy one word, which starts here, and end it with NUL. */
static bool copy_word(struct splitter *splitter)
{
	while (*splitter->at && !is_blank(*splitter->at)) {
		if (*splitter->at == '\'' || *splitter->at == '"') {
			if (!copy_quoted(splitter))
				return false;
			continue;
		}
		if (*splitter->at == '\\' && splitter->at[1])
			splitter->at++;
		*splitter->out++ = *splitter->at++;
	}
	*splitter->out++ = 0;
	return true;
}

struct ps_error *ps_words_split(const char *text, char ***ret)
{
	// Words and blanks alternate, so there are at most half as many words as bytes.
	size_t size = strlen(text) + 1;
	size_t nr_max = size / 2 + 2;
	char **words = calloc(1, nr_max * sizeof(*words) + size + 1);
	if (!words)
		return &ps_enomem;
	struct splitter splitter = { .at = text, .out = (char *)(words + nr_max) };
	for (size_t nr = 0;; nr++) {
		while (is_blank(*splitter.at))
			splitter.at++;
		if (!*splitter.at)
			break;
		words[nr] = splitter.out;
		if (!copy_word(&splitter)) {
			free(words);
			return ps_error_format(PS_ERROR_USAGE, "a quote is not closed");
		}
	}
	*ret = words;
	return NULL;
}

void ps_words_destroy(char **words)
{
	free(words); // words and their text are one block
}
