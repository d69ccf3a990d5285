# SPDX-License-Identifier: MIT
"""Where the time of system calls goes: calls, errors, time in all, on average and at most, for each call.

    perfscope python syslat                    all processes, until Ctrl-C
    perfscope python -p 1234 syslat            one process, all its threads
    perfscope python -i 1000 syslat            once a second
    perfscope python syslat --top 20           so many lines (default 10)

A call that has not returned at the end is not counted. Times are wall time, so a call that waits counts its wait.

    $ perfscope python syslat --top 5 --run find /usr/share/doc -name copyright
    SYSCALL                   CALLS    ERRORS    TOTAL ms      AVG us      MAX us
    getdents64                 2044         0      94.674      46.318    3164.315
    newfstatat                 3094         0       7.676       2.481       9.518
    close                      4117         0       6.770       1.644      51.937
    fcntl                      5109         0       5.534       1.083      33.673
    openat                     1066        16       4.037       3.787      64.560
"""
import argparse

import perfscope

__options__ = "-e raw_syscalls:sys_enter,raw_syscalls:sys_exit"

MAX_ERRNO = 4095

entered = {}  # thread: when its call began, ns
calls = {}  # number of the call: [calls, errors, ns in all, ns at most]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="syslat", description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=10, metavar="N", help="lines to show (default 10)")
    return parser.parse_args()


def raw_syscalls__sys_enter(event):
    entered[event.common_pid] = event._time


def raw_syscalls__sys_exit(event):
    began = entered.pop(event.common_pid, None)
    if began is None:
        return  # it had begun before we did
    took = event._time - began
    call = calls.setdefault(event.id, [0, 0, 0, 0])
    call[0] += 1
    call[1] += -MAX_ERRNO <= event.ret < 0
    call[2] += took
    call[3] = max(call[3], took)


def show():
    print(f"{'SYSCALL':<20} {'CALLS':>10} {'ERRORS':>9} {'TOTAL ms':>11} {'AVG us':>11} {'MAX us':>11}")
    ordered = sorted(calls.items(), key=lambda item: item[1][2], reverse=True)
    for number, (count, errors, total, most) in ordered[:options.top]:
        name = perfscope.syscall_name(number) or f"#{number}"
        print(f"{name:<20} {count:>10} {errors:>9} {total / 1e6:>11.3f} {total / count / 1e3:>11.3f} {most / 1e3:>11.3f}")


def __interval__():
    show()
    print(flush=True)
    calls.clear()


def __lost__(lost_start, lost_end):
    # A lost exit would pair its enter with the next one's.
    entered.clear()


def __exit__():
    if calls:
        show()


options = parse_arguments()
