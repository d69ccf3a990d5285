# SPDX-License-Identifier: MIT
"""Count system calls by thread and name, until the program ends."""

import collections

import perfscope

calls = collections.Counter()


def raw_syscalls__sys_enter(event):
    calls[event._comm, perfscope.syscall_name(event.id)] += 1


def __exit__(totals):
    for (comm, name), number in calls.most_common(5):
        print(f"{number:9}  {comm:<15}  {name}")
    run = totals["run"]
    print(f"task-clock {run.values['task-clock'] / 1e6:.1f} ms, page-faults {run.values['page-faults']}")
