# SPDX-License-Identifier: MIT
"""What an empty region of Python costs beside its floor, and beside counters that are opened for each pass.

All take turns in one thread, so that they meet the same machine; JSON tells CPU times, of the turn below which a twentieth of
many short ones lie: in the others something else ran beside it on the processor.
"""

import json
import statistics
import time

import perfscope
import regionfloor

EVENTS = "task-clock,page-faults,context-switches"
NR_TURNS, NR_PASSES = 1500, 100
OPENED = {1: "task-clock", 4: EVENTS + ",cpu-clock"}
NR_OPENED_TURNS, NR_OPENED_PASSES = 100, 10


def quiet(times):
    return statistics.quantiles(times, n=20)[0]


def each_ns(loop, nr=NR_PASSES):
    start = time.thread_time_ns()
    loop(nr)
    return (time.thread_time_ns() - start) / nr


def nothing(nr):
    for _ in range(nr):
        pass


def region(nr):
    for _ in range(nr):
        with perfscope.region("bench"):
            pass


def in_function(nr):
    """As most regions are: one in each call."""
    def work():
        with perfscope.region("bench"):
            pass
    for _ in range(nr):
        work()


async def in_coroutine():
    """ns for each, timed inside: to start a coroutine is no part of it."""
    start = time.thread_time_ns()
    for _ in range(NR_PASSES):
        with perfscope.region("bench"):
            pass
    return (time.thread_time_ns() - start) / NR_PASSES


def coroutine_ns():
    try:
        in_coroutine().send(None)
    except StopIteration as end:
        return end.value


def opened(events, nr):
    for _ in range(nr):
        with perfscope.PerfEventGroup(events) as group:
            group.start()
            group.stop()


def opened_ns(events):
    """ns of a pass that opens its counters. Where nothing else of the thread is counted, as in a program that does so."""
    return quiet(each_ns(lambda nr: opened(events, nr), NR_OPENED_PASSES) for _ in range(NR_OPENED_TURNS))


def counted_ns(events):
    perfscope.configure(events)
    return quiet(each_ns(region) for _ in range(NR_OPENED_TURNS))


def main():
    idle = quiet(each_ns(nothing) for _ in range(NR_TURNS))
    off = quiet(each_ns(region) for _ in range(NR_TURNS)) - idle
    openings = {nr: opened_ns(events) for nr, events in OPENED.items()}
    group = perfscope.PerfEventGroup(EVENTS)
    group.start()
    perfscope.configure(EVENTS)
    kinds = (lambda: regionfloor.pass_ns(group.fds[0], NR_PASSES), lambda: each_ns(region) - idle,
             lambda: each_ns(in_function) - idle, lambda: coroutine_ns() - idle)
    turns = [[measure() for measure in kinds] for _ in range(NR_TURNS)]
    floor, our, called, tied = map(quiet, zip(*turns))
    print(json.dumps({"off_ns": off, "floor_ns": floor, "region_ns": our, "called_ns": called, "tied_ns": tied,
                      "opened": {nr: (openings[nr], counted_ns(OPENED[nr])) for nr in OPENED}}))


if __name__ == "__main__":
    main()
