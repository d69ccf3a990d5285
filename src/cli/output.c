// SPDX-License-Identifier: MIT
#include <perfscope/output.h>

#include <errno.h>
#include <fcntl.h>
#include <perfscope/signals.h>
#include <string.h>

static struct ps_error *redirect(const char *path, int flags)
{
	_cleanup_close_ int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
	if (fd < 0)
		return ps_error_os(errno, "-o %s", path);
	if (dup2(fd, STDOUT_FILENO) < 0)
		return ps_error_os(errno, "-o %s", path);
	return NULL;
}

struct ps_error *ps_output_open(const char *path, struct ps_output *ret)
{
	struct ps_output output = { 0 };
	if (!path) {
		*ret = output;
		return NULL;
	}
	struct ps_error *error = redirect(path, O_TRUNC);
	if (error)
		return error;
	output.path = realpath(path, NULL);
	// A pipe behind /dev/stdout has no path of its own.
	if (!output.path && errno == ENOENT && *path == '/')
		output.path = strdup(path);
	if (!output.path)
		return ps_error_os(errno, "-o %s", path);
	*ret = output;
	return NULL;
}

struct ps_error *ps_output_reopen(const struct ps_output *output)
{
	return redirect(output->path, 0);
}

void ps_output_close(struct ps_output *output)
{
	free(output->path);
	output->path = NULL;
}

struct ps_error *ps_output_write(const char *text, size_t size, bool *ret)
{
	*ret = false;
	while (size) {
		ssize_t written = write(STDOUT_FILENO, text, size);
		// A reader that does not read must not keep us from stopping.
		if (written < 0 && errno == EINTR && !ps_signals_is_stopping())
			continue;
		if (written < 0 && errno != EPIPE && errno != EINTR)
			return ps_error_os(errno, "stdout");
		if (written <= 0)
			return NULL;
		text += written;
		size -= written;
	}
	*ret = true;
	return NULL;
}
