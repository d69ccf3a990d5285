# SPDX-License-Identifier: MIT
"""How long threads that could run waited for a CPU, as a histogram for each program.

    perfscope python runqlat                   all programs, until Ctrl-C
    perfscope python -i 5000 runqlat           every five seconds
    perfscope python runqlat --comm make       one program

The wait runs from the wakeup of a thread, or from the moment it was taken off a CPU while it could still run, until it
gets a CPU again.

    $ perfscope python runqlat --comm gzip
    gzip
                  usecs : count    distribution
           0 -> 0       : 0        |                                        |
           1 -> 1       : 0        |                                        |
           2 -> 3       : 23       |                                        |
           4 -> 7       : 5562     |****************************************|
           8 -> 15      : 1564     |***********                             |
          16 -> 31      : 52       |                                        |
          32 -> 63      : 74       |                                        |
          64 -> 127     : 195      |*                                       |
         128 -> 255     : 38       |                                        |
         256 -> 511     : 43       |                                        |
         512 -> 1023    : 22       |                                        |
        1024 -> 2047    : 89       |                                        |
        2048 -> 4095    : 172      |*                                       |
        4096 -> 8191    : 67       |                                        |
        8192 -> 16383   : 11       |                                        |
"""
import argparse
import collections

__options__ = "-e sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch"

BAR_WIDTH = 40
STATE_MASK = 0xff  # the bits of prev_state that say what a thread waits for; none: it can run

since = {}  # thread: when it began to wait, ns
histograms = collections.defaultdict(collections.Counter)  # program: {power of two: how often}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="runqlat", description=__doc__.splitlines()[0])
    parser.add_argument("--comm", help="show this program alone")
    return parser.parse_args()


def sched__sched_wakeup(event):
    # A second wakeup before it runs does not start the wait anew.
    since.setdefault(event.pid, event._time)


sched__sched_wakeup_new = sched__sched_wakeup


def sched__sched_switch(event):
    now = event._time
    began = since.pop(event.next_pid, None)
    if began is not None and event.next_pid != 0:
        waited_us = (now - began) // 1000
        histograms[event.next_comm][waited_us.bit_length()] += 1
    if event.prev_pid != 0 and not event.prev_state & STATE_MASK:
        since[event.prev_pid] = now


def bounds(bucket):
    """The microseconds that fall into @bucket."""
    return (0, 0) if bucket == 0 else (1 << bucket - 1, (1 << bucket) - 1)


def show_histogram(comm, histogram):
    print(f"{comm}\n{'usecs':>19} : {'count':<8} distribution")
    most = max(histogram.values())
    for bucket in range(max(histogram) + 1):
        count = histogram[bucket]
        low, high = bounds(bucket)
        bar = "*" * (count * BAR_WIDTH // most)
        print(f"{low:>8} -> {high:<7} : {count:<8} |{bar:<{BAR_WIDTH}}|")


def show():
    for comm, histogram in sorted(histograms.items()):
        if options.comm in (None, comm):
            show_histogram(comm, histogram)
            print(flush=True)


def __interval__():
    show()
    histograms.clear()


def __exit__():
    show()


options = parse_arguments()
