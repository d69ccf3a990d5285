// SPDX-License-Identifier: MIT
/**
 * Doctor: what this machine and this user can do.
 */
#ifndef PERFSCOPE_DOCTOR_H
#define PERFSCOPE_DOCTOR_H

/**
 * `perfscope doctor`: try each ability and print a line for it on stdout: its name, yes or no, the detail and, for a
 * no, the one knob to turn. Nothing it tries stays behind.
 *
 * @argv[0] is "doctor". The exit status: 0 where tracepoints can be sampled, 1 where not, 2 for wrong usage.
 */
int ps_cli_doctor(int argc, char **argv);

#endif
