# SPDX-License-Identifier: MIT
"""What an empty region of Python costs beside its floor, in turns in one thread; JSON tells the medians, in CPU time."""

import asyncio
import json
import statistics
import time

import perfscope
import regionfloor

EVENTS = "task-clock,page-faults,context-switches"
NR_TURNS, NR_PASSES = 300, 1000


def each_ns(loop):
    start = time.thread_time_ns()
    loop(NR_PASSES)
    return (time.thread_time_ns() - start) / NR_PASSES


def nothing(nr):
    for _ in range(nr):
        pass


def region(nr):
    for _ in range(nr):
        with perfscope.region("bench"):
            pass


def in_coroutine(nr):
    async def work():
        region = perfscope.region
        for _ in range(nr):
            with region("bench"):
                pass
    asyncio.run(work())


def main():
    off = statistics.median(each_ns(region) - each_ns(nothing) for _ in range(NR_TURNS))
    group = perfscope.PerfEventGroup(EVENTS)
    group.start()
    perfscope.configure(EVENTS)
    turns = [(regionfloor.pass_ns(group.fds[0], NR_PASSES), each_ns(region) - each_ns(nothing)) for _ in range(NR_TURNS)]
    floor, our = map(statistics.median, zip(*turns))
    more = statistics.median(our - floor for floor, our in turns)
    tied = [(regionfloor.pass_ns(group.fds[0], NR_PASSES), each_ns(in_coroutine)) for _ in range(NR_TURNS // 10)]
    print(json.dumps({"off_ns": off, "floor_ns": floor, "region_ns": our, "more_ns": more,
                      "tied_more_ns": statistics.median(our - floor for floor, our in tied)}))


if __name__ == "__main__":
    main()
