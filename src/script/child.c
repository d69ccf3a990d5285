// SPDX-License-Identifier: MIT
#include <perfscope/child.h>

#include <perfscope/script.h>
#include <pthread.h>
#include <unistd.h>

static bool is_child;
static volatile sig_atomic_t *stop_flag;

static void after_fork_in_child(void)
{
	is_child = true;
	if (stop_flag)
		*stop_flag = true;
}

struct ps_error *ps_child_watch(volatile sig_atomic_t *flag)
{
	static bool is_registered;
	if (!is_registered && pthread_atfork(NULL, NULL, after_fork_in_child))
		return &ps_enomem;
	is_registered = true;
	stop_flag = flag;
	return NULL;
}

bool ps_child_is_here(void)
{
	return is_child;
}

void ps_child_end(int status)
{
	int finish_status = ps_interp_finish();
	_exit(status ? status : finish_status);
}
