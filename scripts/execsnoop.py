# SPDX-License-Identifier: MIT
"""Show each program that is executed, and by whom.

    perfscope python execsnoop                 all processes, until Ctrl-C
    perfscope python execsnoop --comm make     those that programs called make start
    perfscope python --inherit execsnoop --run make
                                               those below one command

Times are seconds since the first. The parent is "-" where nothing tells it any more. With --inherit the kernel makes each
start of a process slower, by tens of milliseconds: without it, and with --comm, it is not.

    $ perfscope python --inherit execsnoop --run sh -c 'ls /proc/self | wc -l; true | /bin/true'
        SECONDS      PID     PPID  PARENT           PROGRAM
       0.000000    28722    28721  perfscope        /usr/bin/sh
       0.058593    28724    28722  sh               /usr/bin/ls
    54
       0.114638    28725    28722  sh               /usr/bin/wc
       0.146771    28727    28722  sh               /bin/true
"""
import argparse

import perfscope

__options__ = "-e sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit"

parents = {}  # process: (its parent, the parent's name)
first = None


def parse_arguments():
    parser = argparse.ArgumentParser(prog="execsnoop", description=__doc__.splitlines()[0])
    parser.add_argument("--comm", help="show only what this program starts")
    return parser.parse_args()


def sched__sched_process_fork(event):
    parents[event.child_pid] = event._pid, event.parent_comm


def sched__sched_process_exit(event):
    parents.pop(event.pid, None)


def read_parent(pid):
    """The parent of a process that began before we did."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return "-", "-"
    return parent, perfscope.comm(parent) or "-"


def sched__sched_process_exec(event):
    global first
    parent, comm = parents.get(event.pid) or read_parent(event.pid)
    if options.comm not in (None, comm):
        return
    if first is None:
        first = event._time
        print(f"{'SECONDS':>11} {'PID':>8} {'PPID':>8}  {'PARENT':<15}  PROGRAM")
    print(f"{(event._time - first) / 1e9:>11.6f} {event.pid:>8} {parent:>8}  {comm:<15}  {event.filename}", flush=True)


options = parse_arguments()
