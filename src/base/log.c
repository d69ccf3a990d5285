// SPDX-License-Identifier: MIT
#include <perfscope/log.h>

#include <errno.h>
#include <perfscope/text.h>
#include <string.h>

static enum ps_log_level shown_level = PS_LOG_WARNING;

void ps_log_set_level(enum ps_log_level level)
{
	shown_level = level;
}

enum ps_log_level ps_log_level(void)
{
	return shown_level;
}

static void write_all(const char *text, size_t size)
{
	while (size) {
		ssize_t written = write(STDERR_FILENO, text, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; // there is nowhere left to tell it
		text += written;
		size -= written;
	}
}

/** A line that is put together without memory of the heap: what it tells may be that there is none. */
struct line {
	char bytes[4096];
	size_t size;
};

static void line_flush(struct line *line)
{
	write_all(line->bytes, line->size);
	line->size = 0;
}

static void line_add(struct line *line, const char *text)
{
	size_t length = strlen(text);
	if (length > sizeof(line->bytes) - line->size)
		line_flush(line);
	memcpy(line->bytes + line->size, text, length);
	line->size += length;
}

/** Write "perfscope: @text" as one line, in one write unless it is very long, control characters as \xNN. */
static void write_line(const char *text)
{
	struct line line;
	line.size = 0;
	line_add(&line, "perfscope: ");
	for (; *text; text++) {
		unsigned char c = *text;
		char shown[sizeof("\\x00")] = { c };
		if (c < 0x20 || c == 0x7f)
			snprintf(shown, sizeof(shown), "\\x%02x", c);
		line_add(&line, shown);
	}
	line_add(&line, "\n");
	line_flush(&line);
}

void ps_log(enum ps_log_level level, const char *format, ...)
{
	if (level > shown_level)
		return;
	char start[512]; // of the message, for when there is no memory for all of it
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	_cleanup_free_ char *text = ps_text_format(format, arguments);
	if (!text)
		vsnprintf(start, sizeof(start), format, again);
	va_end(again);
	va_end(arguments);
	write_line(text ? text : start);
}

void ps_log_error(enum ps_log_level level, const struct ps_error *error)
{
	if (level > shown_level)
		return;
	write_line(error->message);
	if (!error->detail)
		return;
	write_all(error->detail, strlen(error->detail));
	size_t length = strlen(error->detail);
	if (!length || error->detail[length - 1] != '\n')
		write_all("\n", 1);
}
