// SPDX-License-Identifier: MIT
/**
 * The error policy: what an exception of script code does to the run. For src/script/ alone.
 */
#ifndef PERFSCOPE_POLICY_H
#define PERFSCOPE_POLICY_H

#include <perfscope/python.h>

struct ps_policy {
	bool stop_on_error;
	bool is_over;	     // the run is to end
	bool is_interrupted; // by KeyboardInterrupt, which a signal raises in stuck code
	bool is_exit;	     // SystemExit was raised
	int exit_status;     // SystemExit's
	uint64_t nr_raised;  // exceptions, SystemExit and KeyboardInterrupt not among them
	uint64_t nr_quiet;   // of those, counted without a traceback
	PyObject *seen;	     // dict: (function, file, line) to count; owned
};

bool ps_policy_init(struct ps_policy *policy, bool stop_on_error);
void ps_policy_deinit(struct ps_policy *policy);

/**
 * Take the current exception where it ends the run cleanly: SystemExit, KeyboardInterrupt, a broken stdout.
 *
 * False, and the exception stays, where it is another. @policy may be all zero.
 */
bool ps_policy_take_end(struct ps_policy *policy);

/**
 * Take the current exception of the script's function @name.
 *
 * SystemExit, KeyboardInterrupt and a broken stdout end the run; others are printed the first time for each function
 * and line, and counted.
 */
void ps_policy_take(struct ps_policy *policy, const char *name);

/** Flush sys.stdout; a reader that has gone ends the run. */
void ps_policy_flush(struct ps_policy *policy);

/** Tell how many exceptions there were. */
void ps_policy_report(const struct ps_policy *policy);

#endif
