#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure perfscope against the floor and write the table of docs/benchmarks.md.

Speed is CPU time of the whole process per event delivered: a load calls getppid in a loop on one CPU, the observer is
pinned to another, its ring holds all events. Both take the time between enabling and the end from their own process
clock, so that start and end do not count. Runs of the two alternate, and the median counts.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "tests", "bench")
TABLE = os.path.join(ROOT, "docs", "benchmarks.md")
BEGIN, END = "<!-- table of make bench -->\n", "<!-- end of the table -->\n"

sys.path.insert(0, os.path.join(ROOT, "tests", "live"))
import livetest
from livetest import Observer, run_load

IDLE = os.path.join(ROOT, "tests", "bench", "idle.py")
EVENT = "raw_syscalls:sys_enter/id==110/"
LOAD_CPU, OBSERVER_CPU = 0, 1
NR_EVENTS = {"walk": 2_000_000, "count": 1_000_000, "fields": 1_000_000, "to_dict": 500_000}
# A handler that is slower than the load would do part of its work after the load has ended, and on processors whose two
# CPUs share a core that part is much faster: how large it is would decide the figure. So the load waits for it.
RATES = {"to_dict": 300_000}
WANTED_RATIO = 1.3
NR_STACKS, STACK_CALLS, STACK_RING_BYTES = 100_000, 20, 64 << 20
WANTED_STACK_NS = 3000
WANTED_STACK_RATIO = 1.1
BYTES_A_RECORD = 128
LOSS_RATE, LOSS_SECONDS = 500_000, 5
NR_STARTS = 15
WANTED_START_MS = 30
WANTED_RESIDENT_MB = 25
WANTED_REGION_RATIO = 1.15
WANTED_REGION_OFF_NS = 5
WANTED_OBSERVED_RATIO = 1.1
WANTED_OPENING_RATIO = 20
WANTED_REGION_MORE_NS = 400


def pin():
    os.sched_setaffinity(0, {OBSERVER_CPU})


def ring_pages(nr_events):
    pages = nr_events * BYTES_A_RECORD // os.sysconf("SC_PAGESIZE")
    return 1 << (pages - 1).bit_length()


class Bench:
    def __init__(self, python, nr_runs):
        self.floor_program = os.path.join(livetest.BUILD, "tests", "floor")
        self.python = python
        self.nr_runs = nr_runs
        self.nr_items = None

    def floor(self, mode, nr_events):
        """ns per event of the floor."""
        options = ["--pages", ring_pages(nr_events), "--items", self.nr_items or 17]
        return self.run_floor(mode, options, self.load(mode, nr_events), nr_events)

    def run_floor(self, mode, options, load, nr_events):
        command = [self.floor_program, mode, "--cpu", LOAD_CPU, "--handlers", BENCH, *options]
        with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, preexec_fn=pin) as process:
            process.stdout.readline()
            run_load(*load)
            process.send_signal(signal.SIGINT)
            return self.take(json.loads(process.communicate(timeout=60)[0]), nr_events)

    @staticmethod
    def load(mode, nr_events):
        """Arguments of the load: as fast as it can where the observer keeps up, else in bursts of 50 calls."""
        pace = [RATES[mode], 50] if mode in RATES else []
        return ["--cpu", LOAD_CPU, "getppid", nr_events, *pace]

    def perfscope(self, mode, nr_events):
        """ns per event of perfscope."""
        run = self.observe(mode, ["-m", ring_pages(nr_events)], self.load(mode, nr_events))
        return self.take(run, nr_events)

    @staticmethod
    def start(mode, options):
        observer = Observer(["python", "-e", EVENT, *options, os.path.join(BENCH, "observe.py"), mode], preexec_fn=pin)
        observer.wait_until_ready()
        return observer

    def observe(self, mode, options, load):
        """What observe.py tells after @load."""
        observer = self.start(mode, options)
        try:
            run_load(*load)
            return observer.stop().json[-1]
        finally:
            observer.close()

    @staticmethod
    def take(told, nr_events):
        # Other processes may call getppid too: more than the load's calls is no fault.
        if told["n"] < nr_events or told["lost"]:
            raise SystemExit(f"bench: {told['n']} of {nr_events} events arrived, {told['lost']} lost: no measure")
        return told["cpu_ns"] / told["n"]

    @staticmethod
    def count(script, options, load):
        """The number that @script prints of the first event of @load."""
        observer = Observer(["python", "-e", EVENT, *options, os.path.join(BENCH, script), "--run", livetest.LOAD,
                             *map(str, load)])
        try:
            return next(int(line) for line in observer.wait().lines if line.isdigit())
        finally:
            observer.close()

    def compare(self, mode):
        """Medians of floor and perfscope in ns per event, and of the ratio of each pair of runs."""
        pairs = [(self.floor(mode, NR_EVENTS[mode]), self.perfscope(mode, NR_EVENTS[mode])) for _ in range(self.nr_runs)]
        floors, ours = zip(*pairs)
        return (statistics.median(floors), statistics.median(ours),
                statistics.median(our / floor for floor, our in pairs))

    def speed_rows(self):
        walk = statistics.median(self.floor("walk", NR_EVENTS["walk"]) for _ in range(self.nr_runs))
        yield "walk the ring, ns an event", f"{walk:.0f}", "", "", "", True
        # The floor then fills a dict of as many.
        self.nr_items = self.count("count_items.py", [], ["getppid", 1])
        names = {"count": "handler that counts", "fields": "handler that reads two fields",
                 "to_dict": f"`to_dict()` of {self.nr_items} items"}
        for mode, name in names.items():
            floor, our, ratio = self.compare(mode)
            yield (f"{name}, ns an event", f"{floor:.0f}", f"{our:.0f}", f"{ratio:.2f}", f"≤ {WANTED_RATIO}",
                   ratio <= WANTED_RATIO)

    def floor_stack(self, has_stack):
        """ns per event of the floor on the load of stack()."""
        options = ["--pages", STACK_RING_BYTES // os.sysconf("SC_PAGESIZE"), "--stack", has_stack]
        return self.run_floor("count", options, ["--cpu", LOAD_CPU, "deep", STACK_CALLS, NR_STACKS], NR_STACKS)

    def stack(self, mode, options):
        """ns per event of @mode on a load of known depth, once all addresses are known."""
        load = ["--cpu", LOAD_CPU, "deep", STACK_CALLS]
        observer = self.start(mode, [*options, "-C", LOAD_CPU, "-m", f"{STACK_RING_BYTES >> 20}M"])
        try:
            run_load(*load, 1000)
            time.sleep(0.3)
            observer.send_signal(signal.SIGUSR2)
            time.sleep(0.1)
            run_load(*load, NR_STACKS)
            return self.take(observer.stop().json[-1], NR_STACKS)
        finally:
            observer.close()

    def stack_rows(self):
        nr_frames = self.count("count_frames.py", ["-g"], ["deep", STACK_CALLS, 1])
        runs = [(self.stack("count", []), self.stack("count", ["-g"]), self.stack("callchain", ["-g"]),
                 self.floor_stack(0), self.floor_stack(1)) for _ in range(self.nr_runs)]
        plain, _, read, *_ = (statistics.median(column) for column in zip(*runs))
        # That the records are three times as long and so come from farther away costs the floor too.
        floor_more = statistics.median(run[4] - run[3] for run in runs)
        more = statistics.median(run[1] - run[0] for run in runs)
        ratio = (plain + more - floor_more) / plain
        yield (f"what a stack of {nr_frames} frames that no handler reads adds to an event, ns", f"{floor_more:+.0f}", f"{more:+.0f}",
               f"{ratio:.2f}", f"≤ {WANTED_STACK_RATIO}", ratio <= WANTED_STACK_RATIO)
        ratio = statistics.median(run[2] / run[0] for run in runs)
        yield (f"handler that reads `_callchain` of {nr_frames} frames, ns an event; beside it the event without",
               f"{plain:.0f}", f"{read:.0f}", f"{ratio:.2f}", f"≤ {WANTED_STACK_NS} ns", read <= WANTED_STACK_NS)

    def time_python_ms(self):
        start_ns = time.monotonic_ns()
        subprocess.run([self.python, "-c", "pass"], check=True)
        return (time.monotonic_ns() - start_ns) / 1e6

    def time_first_event_ms(self):
        """From the start of the process to the first event that it sees, of a load that makes one each 20 us."""
        start_ns = time.monotonic_ns()
        observer = Observer(["python", "-e", EVENT, "--exit-n", "1", os.path.join(BENCH, "observe.py"), "start"],
                            preexec_fn=pin)
        try:
            return (observer.wait().json[-1]["first"]["event_ns"] - start_ns) / 1e6
        finally:
            observer.close()

    def start_row(self):
        load = subprocess.Popen([livetest.LOAD, "--cpu", str(LOAD_CPU), "getppid", "1000000000", "50000"],
                                stdout=subprocess.DEVNULL)
        try:
            pairs = [(self.time_python_ms(), self.time_first_event_ms()) for _ in range(NR_STARTS)]
        finally:
            load.kill()
            load.wait()
        pythons, ours = (statistics.median(times) for times in zip(*pairs))
        return ("start to the first event, ms; beside it `python3 -c pass`", f"{pythons:.0f}", f"{ours:.0f}",
                f"{ours - pythons:+.0f} ms", f"≤ +{WANTED_START_MS} ms", ours - pythons <= WANTED_START_MS)

    def memory_row(self):
        told = self.observe("count", ["-m", 1], ["--cpu", LOAD_CPU, "getppid", 1000])
        megabytes = told["resident_kb"] / 1024
        return ("resident memory without rings, MB", "", f"{megabytes:.1f}", "", f"< {WANTED_RESIDENT_MB}",
                megabytes < WANTED_RESIDENT_MB)

    def loss_row(self):
        nr_events = LOSS_RATE * LOSS_SECONDS
        told = self.observe("count", [], ["--cpu", LOAD_CPU, "getppid", nr_events, LOSS_RATE, 50])
        lost = max(told["lost"], nr_events - told["n"])
        return (f"lost of {nr_events:,} events at {LOSS_RATE:,} a second, default ring", "", f"{lost:,}", "", "0",
                lost == 0)


    def region_rows(self):
        """An empty region of C beside one read() of the same group at each end, in turns, in CPU time."""
        program = os.path.join(livetest.BUILD, "tests", "region_bench")
        runs = [json.loads(subprocess.run([program], stdout=subprocess.PIPE, preexec_fn=pin, check=True).stdout)
                for _ in range(self.nr_runs)]
        floor, our, ratio, off, opening = (statistics.median(run[name] for run in runs) for name in (
            "floor_ns", "region_ns", "ratio", "off_ns", "opening_ns"))
        yield ("empty region of C, three counters, ns", f"{floor:.0f}", f"{our:.0f}", f"{ratio:.2f}",
               f"≤ {WANTED_REGION_RATIO}", ratio <= WANTED_REGION_RATIO)
        command = [livetest.COMMAND, "python", "-e", "task-clock,page-faults,context-switches", IDLE,
                   "--run", program, "observed"]
        runs = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=pin, check=True).stdout)
                for _ in range(self.nr_runs)]
        observed, observed_ratio = (statistics.median(run[name] for run in runs) for name in ("region_ns", "ratio"))
        yield ("the same under --run; beside it one that is configured, ns", f"{our:.0f}", f"{observed:.0f}",
               f"{observed_ratio / ratio:.2f}", f"≤ {WANTED_OBSERVED_RATIO}", observed_ratio <= ratio * WANTED_OBSERVED_RATIO)
        yield ("region that nobody looks at, ns", "", f"{off:.1f}", "", f"< {WANTED_REGION_OFF_NS}",
               off < WANTED_REGION_OFF_NS)
        yield ("region; beside it one that opens its counters each time, ns", f"{opening:.0f}", f"{our:.0f}",
               f"1/{opening / our:.0f}", f"≤ 1/{WANTED_OPENING_RATIO}", our * WANTED_OPENING_RATIO <= opening)

    def python_region_rows(self):
        """An empty region of Python beside the same floor, in one process."""
        environment = {**os.environ, "PYTHONPATH": f"{livetest.BUILD}/python:{livetest.BUILD}/tests/python"}
        runs = [json.loads(subprocess.run([self.python, os.path.join(BENCH, "region.py")], stdout=subprocess.PIPE,
                                          preexec_fn=pin, check=True, env=environment).stdout) for _ in range(self.nr_runs)]
        floor, our, called, tied, off = (statistics.median(run[name] for run in runs) for name in (
            "floor_ns", "region_ns", "called_ns", "tied_ns", "off_ns"))
        more = statistics.median(run["region_ns"] - run["floor_ns"] for run in runs)
        yield ("empty region of Python, three counters, ns", f"{floor:.0f}", f"{our:.0f}", f"{more:+.0f} ns",
               f"≤ +{WANTED_REGION_MORE_NS} ns", more <= WANTED_REGION_MORE_NS)
        for name, time_ns in (("the same and the call of a function around it", called), ("the same in a coroutine", tied)):
            yield f"{name}, ns", f"{floor:.0f}", f"{time_ns:.0f}", f"{time_ns - floor:+.0f} ns", "", True
        yield "region of Python that nobody looks at, ns", "", f"{off:.0f}", "", "", True
        for nr in runs[0]["opened"]:
            opening, our = (statistics.median(run["opened"][nr][i] for run in runs) for i in range(2))
            yield (f"region of Python, events: {nr}; beside it a `PerfEventGroup` that is opened each time, ns", f"{opening:.0f}",
                   f"{our:.0f}", f"1/{opening / our:.0f}", f"≤ 1/{WANTED_OPENING_RATIO}", our * WANTED_OPENING_RATIO <= opening)


def describe_machine(python):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}, {version}"


def write_table(text):
    with open(TABLE, encoding="utf-8") as file:
        page = file.read()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + text + END + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("bench: needs two CPUs, one for the load and one for the observer")

    bench = Bench(options.python, options.runs)
    table = f"\n{describe_machine(options.python)}; median of {options.runs}.\n\n"
    table += "| measure | floor | perfscope | ratio | wanted | met |\n|---|---:|---:|---:|---:|---|\n"
    print(table, end="", flush=True)
    rows = [*bench.speed_rows(), *bench.stack_rows(), bench.start_row(), bench.memory_row(), bench.loss_row(),
            *bench.region_rows(), *bench.python_region_rows()]
    for *cells, is_met in rows:
        line = f"| {' | '.join(cells)} | {'yes' if is_met else 'no'} |\n"
        print(line, end="", flush=True)
        table += line
    write_table(table + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
