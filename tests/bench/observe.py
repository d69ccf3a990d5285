# SPDX-License-Identifier: MIT
"""What perfscope runs in bench.py: a handler of handlers.py on every event, and at the end a line of JSON.

observe.py HANDLER, one of handlers.py's, or `start`: the clock at the first event. SIGUSR2 begins the measure anew.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import handlers

mode = sys.argv[1]
lost = 0
start_ns = 0
first = None


def note_first(event):
    global first
    if first is None:
        first = {"event_ns": event._time, "handler_ns": time.monotonic_ns()}


__sample__ = note_first if mode == "start" else getattr(handlers, mode)


def read_resident_kb():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def __init__():
    global start_ns
    start_ns = time.process_time_ns()


def __print_stat__(indent):
    handlers.n = 0
    __init__()


def __lost__(lost_start, lost_end, lost_number):
    global lost
    lost += lost_number


def __exit__():
    cpu_ns = time.process_time_ns() - start_ns
    print(json.dumps({"n": handlers.n, "lost": lost, "cpu_ns": cpu_ns, "resident_kb": read_resident_kb(), "first": first}))
