// SPDX-License-Identifier: MIT
#include <perfscope/log.h>

#include <errno.h>
#include <stdarg.h>
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

/** Write "perfscope: @text" as one line in one write, control characters as \xNN. */
static void write_line(const char *text)
{
	char *line = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&line, &size);
	if (!stream)
		return;
	fputs("perfscope: ", stream);
	for (; *text; text++) {
		unsigned char c = *text;
		if (c < 0x20 || c == 0x7f)
			fprintf(stream, "\\x%02x", c);
		else
			putc(c, stream);
	}
	putc('\n', stream);
	if (!fclose(stream))
		write_all(line, size);
	free(line);
}

void ps_log(enum ps_log_level level, const char *format, ...)
{
	if (level > shown_level)
		return;
	_cleanup_free_ char *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		text = NULL;
		return;
	}
	write_line(text);
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
