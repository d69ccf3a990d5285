# SPDX-License-Identifier: MIT
"""Count system calls by program and name.

    perfscope python syscount                  all processes, until Ctrl-C
    perfscope python -i 1000 syscount          once a second
    perfscope python syscount --top 20         so many lines (default 10)

    $ perfscope python syscount --top 5 --run ls -R /usr/share/doc
    COMM             SYSCALL                   CALLS
    ls               getdents64                 2044
    ls               openat                     1055
    ls               close                      1044
    ls               newfstatat                 1043
    ls               statx                      1023
    (others)                                      95
"""
import argparse
import collections

import perfscope

__options__ = "-e raw_syscalls:sys_enter"

counts = collections.Counter()


def parse_arguments():
    parser = argparse.ArgumentParser(prog="syscount", description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=10, metavar="N", help="lines to show (default 10)")
    return parser.parse_args()


def raw_syscalls__sys_enter(event):
    counts[event._comm, event.id] += 1


def show():
    print(f"{'COMM':<16} {'SYSCALL':<20} {'CALLS':>10}")
    for (comm, number), calls in counts.most_common(options.top):
        name = perfscope.syscall_name(number) or f"#{number}"
        print(f"{comm:<16} {name:<20} {calls:>10}")
    rest = sum(counts.values()) - sum(calls for _, calls in counts.most_common(options.top))
    if rest:
        print(f"{'(others)':<37} {rest:>10}")


def __interval__():
    show()
    print(flush=True)
    counts.clear()


def __exit__():
    if counts:
        show()


options = parse_arguments()
