# SPDX-License-Identifier: MIT
"""Regions with hardware counters: instructions of known loops, what a pass costs by itself, reads without a system call.

Without the kernel nothing but the pass is counted, and the guest repeats itself to the instruction. With it, a timer's
interrupt may fall into a pass; and QEMU counts for a CPU what the other executes meanwhile, so programs are on CPU 0, which
has the other idle as a rule, and a few passes may count more than most.
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
import unittest

from livetest import BUILD, LiveTestCase

LOOP = os.path.join(BUILD, "tests", "region_loop")
PASSES = os.path.join(BUILD, "tests", "passes")
USER_ONLY, SUBTRACT = 1, 8
ROUNDS = 1000
NAMES = ("empty", "loop", "twice")
# A name elsewhere in memory or of another length is compared by another path of strncmp.
NAME = 8
# A call of counted() with its argument, and the name.
CALL = 12

KERNEL_IS_OLD = ("perfscope: instructions:u: this kernel reads no counters in samples of new threads (Linux 6.12 does), only the "
                 "program's first thread is observed\n")

# More than the PMU holds, which the same counters of the run fill: no two of a region find room at once.
MANY = [f"{name}:{side}" for name in ("instructions", "cycles", "r8", "r11") for side in ("u", "k", "uk")]
SPLIT = "the counters do not fit on the PMU together: they are counted in 12 groups, each read at a moment of its own"


@contextlib.contextmanager
def sysctl(name, value):
    path = os.path.join("/proc/sys/kernel", name)
    with open(path, encoding="ascii") as file:
        old = file.read()
    for text in str(value), old:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        if text is not old:
            yield


def user_reads(allowed=1):
    return sysctl("perf_user_access", allowed)


def instructions(rounds):
    return 2 * rounds + 2


def pin():
    os.sched_setaffinity(0, {0})


def usual(values):
    """What most of @values are; the others are more."""
    value = statistics.mode(values)
    if value != min(values) or list(values).count(value) * 2 < len(values):
        raise AssertionError(f"no usual value: {values}")
    return value


def run_loop(way, nr, rounds=ROUNDS, events="instructions", flags=USER_ONLY, **options):
    """What region_loop told: of each pass the values of all counters."""
    run = subprocess.run([LOOP, way, str(nr), str(rounds)], env=dict(os.environ, EVENTS=events, FLAGS=str(flags)),
                         capture_output=True, text=True, timeout=60, check=False, preexec_fn=pin, **options)
    if run.returncode or run.stderr:
        raise AssertionError(f"status {run.returncode}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)


class LoopTestCase(LiveTestCase):
    def assert_loops(self, told, rounds=ROUNDS, index=0, rest=0):
        """Passes alike, each what the loop executes beside @rest; None: the cost of an empty pass."""
        empty, once, twice = (usual([values[index] for values in told[name]]) for name in NAMES)
        self.assertAlmostEqual(empty, told["cost"][index] if rest is None else rest, delta=NAME)
        for counted, nr in (once, rounds), (twice, 2 * rounds):
            self.assertTrue(-NAME <= counted - empty - instructions(nr) <= CALL, told)


class TestLibrary(LoopTestCase):
    def test_passes_count_the_loop_and_always_the_same(self):
        self.assert_loops(run_loop("plain", 10), rest=None)
        # A thousandth of half a million is 500; these differ by none.
        self.assert_loops(run_loop("plain", 8, 250000), 250000, rest=None)

    def test_the_cost_of_a_pass_is_taken_off(self):
        for events in "instructions", "instructions,cycles", "instructions,page-faults":
            told = run_loop("plain", 10, events=events, flags=USER_ONLY | SUBTRACT)
            self.assert_loops(told)
            self.assertGreater(told["cost"][0], 50)

    def test_with_the_kernel_passes_differ_by_its_interrupts(self):
        told = run_loop("plain", 20, flags=SUBTRACT)
        self.assertLessEqual(statistics.median(value for [value] in told["empty"]), NAME)
        for name, nr in ("loop", ROUNDS), ("twice", 2 * ROUNDS):
            counted = statistics.median(value for [value] in told[name])
            self.assertTrue(-NAME <= counted - instructions(nr) <= CALL, counted)

    def test_cycles_are_of_the_same_moment(self):
        for kind in "empty", "loop", "twice":
            for instructions_told, cycles in run_loop("plain", 5, events="instructions,cycles", flags=0)[kind]:
                self.assertEqual(cycles, 4 * instructions_told)

    def test_the_script_gets_the_same_of_each_pass(self):
        source = """
import json
def __exit__(totals): print(json.dumps({name: [t.calls, *t.values.values()] for name, t in totals.items()}))
"""
        runs = []
        for _ in range(5):
            run = self.run_script(source, "instructions:u", args=("--run", LOOP, "plain", 20, ROUNDS))
            self.assertEqual([run.status, run.stderr], [0, ""])
            runs.append(run.json[0])
            self.assertEqual([runs[-1][name][0] for name in NAMES], [20] * 3)
        # What QEMU counts for the other CPU only adds. Nothing was configured, so the first pass of all looks for libc's
        # functions, once.
        cost, once, twice = (min(totals[name][1] for totals in runs) / 20 for name in NAMES)
        self.assertTrue(200 < cost < 400)
        for counted, nr in (once, ROUNDS), (twice, 2 * ROUNDS):
            self.assertTrue(-50 <= counted - cost - instructions(nr) <= CALL, runs)


class TestDirect(LoopTestCase):
    """PMEVCNTR and PMCCNTR read by the program, where kernel.perf_user_access lets it."""

    def nr_reads(self, events, way="plain"):
        """System calls of read() that 30 passes and those of configure make."""
        source = "def __exit__(totals): print([totals['run'].values['syscalls:sys_enter_read']])\n"
        nrs = []
        for nr in 1, 11:
            run = self.run_script(source, "syscalls:sys_enter_read", args=("--run", LOOP, way, nr, 10),
                                  env=dict(os.environ, EVENTS=events, FLAGS=str(USER_ONLY)))
            self.assertEqual([run.status, run.stderr], [0, ""])
            nrs += [value[0] for value in run.json if isinstance(value, list)]
        return nrs[1] - nrs[0]

    def test_passes_make_no_system_call_where_the_kernel_allows_it(self):
        with user_reads():
            self.assertEqual([self.nr_reads("instructions"), self.nr_reads("instructions,cycles")], [0, 0])
            self.assertEqual(self.nr_reads("instructions", "migrate"), 0)
            # A counter of software is in the kernel alone.
            self.assertEqual(self.nr_reads("instructions,page-faults"), 60)
        self.assertEqual(self.nr_reads("instructions"), 60)

    def test_both_ways_count_the_same(self):
        for events in "instructions", "cycles,instructions":
            index = events.split(",").index("instructions")
            for allowed in 0, 1:
                with user_reads(allowed):
                    told = run_loop("plain", 5, events=events, flags=USER_ONLY | SUBTRACT)
                    self.assert_loops(told, index=index)

    def test_a_pass_is_shorter_by_the_kernels_part(self):
        """Of all instructions, the kernel's too. Times mean nothing here: each instruction takes 4 ns."""
        [called] = run_loop("plain", 1, flags=0)["cost"]
        with user_reads():
            [direct] = run_loop("plain", 1, flags=0)["cost"]
        # 2597 and 287 with Linux 6.1: the ends' other work is in both.
        self.assertLess(direct * 5, called)
        self.assertLess(direct, 400)

    def test_a_thread_that_migrates_or_sleeps_loses_nothing(self):
        for allowed in 0, 1:
            with user_reads(allowed):
                for way in "migrate", "sleep":
                    told = run_loop(way, 6, flags=USER_ONLY | SUBTRACT)
                    # The first calls of libc's functions look for them.
                    call = usual([value for [value] in told["empty"]])
                    self.assertLess(call, 150)
                    for name, nr in ("loop", ROUNDS), ("twice", 2 * ROUNDS):
                        counted = usual([value for [value] in told[name]])
                        self.assertTrue(-NAME <= counted - call - instructions(nr) <= CALL, told)

    def test_passes_go_on_when_it_is_forbidden_meanwhile(self):
        environment = dict(os.environ, EVENTS="instructions", FLAGS=str(USER_ONLY))
        with user_reads():
            process = subprocess.Popen([LOOP, "plain", "40", "300000"], env=environment, stdout=subprocess.PIPE, text=True)
            time.sleep(0.15)
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        told = json.loads(stdout)
        # On another way than the one whose cost was measured.
        for name, nr in ("loop", 300000), ("twice", 600000):
            counted = min(value for [value] in told[name])
            self.assertTrue(-50 <= counted - told["cost"][0] - instructions(nr) <= 50, told)

    def test_a_counter_that_takes_turns_is_read_by_the_kernel(self):
        """Others fill the PMU: a pass is whole and exact, or known to be in part."""
        source = """
import json
def __exit__(totals):
    print(json.dumps([[part["instructions:u"] for part in (totals[name].values, totals[name].scaled, totals[name].coverage)]
                      for name in ("loop", "twice")]))
"""
        rounds = 4000000
        with user_reads():
            run = self.run_script(source, MANY, args=("--run", LOOP, "plain", 2, rounds),
                                  env=dict(os.environ, EVENTS="instructions", FLAGS=str(USER_ONLY)))
        self.assertEqual([run.status, run.stderr], [0, f"perfscope: regions: {SPLIT}\n"])
        told, (loop, twice) = run.json[0], run.json[1]
        for (value, scaled, coverage), nr in (loop, 2 * rounds), (twice, 4 * rounds):
            self.assertEqual(value, None)
            self.assertTrue(0 < coverage < 0.9, run.json)
            self.assertAlmostEqual(scaled, 2 * instructions(nr) / 2, delta=nr * 0.4)
        for name, nr in ("loop", rounds), ("twice", 2 * rounds):
            for [value] in told[name]:
                self.assertTrue(value is None or -NAME <= value - told["cost"][0] - instructions(nr) <= CALL, told)


# Machine code of a loop, since Python has no extension module here but perfscope's.
PYTHON = """
import ctypes, json, mmap, struct, sys
import perfscope

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(struct.pack("<4I", 0xaa0003e1, 0xf1000421, 0x54ffffe1, 0xd65f03c0))  # as in region_loop.c
counted = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

def in_c(nr):
    counted(nr)

def in_python(nr):
    for i in range(nr):
        rest = i & 7  # an int that is there: new ones cost more when their pool is full

def nothing(nr):
    pass

def value(name):
    return perfscope.regions()[name].values["instructions"]

def passes(name, function, nr):
    told = [0]
    for _ in range(30):
        with perfscope.region(name):
            function(nr)
        told.append(value(name))
    # The interpreter adapts its code to the first.
    return [after - before for before, after in zip(told, told[1:])][10:]

def empty():
    told = [0]
    for _ in range(30):
        with perfscope.region("empty"):
            pass
        told.append(value("empty"))
    return [after - before for before, after in zip(told, told[1:])][10:]

perfscope.configure(["instructions"], user_only=True, subtract=SUBTRACT)
json.dump({"empty": empty(), "once": passes("once", in_c, 1000), "twice": passes("twice", in_c, 2000),
           "python": passes("python", in_python, 250), "reported": perfscope.report(sys.stderr, format="json")}, sys.stdout)
"""


class TestPython(LoopTestCase):
    def run_python(self, subtract):
        program = self.write("program.py", PYTHON.replace("SUBTRACT", str(subtract)))
        run = subprocess.run([sys.executable, program], env=dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python")),
                             capture_output=True, text=True, timeout=60, check=True, preexec_fn=pin)
        return json.loads(run.stdout), json.loads(run.stderr)["overhead"]["instructions"]

    def check(self, told, empty):
        self.assertAlmostEqual(usual(told["empty"]), empty, delta=NAME)
        self.assertEqual(min(told["twice"]) - min(told["once"]), 2000)
        self.assertGreater(usual(told["python"]), 250 * 20)

    def test_passes_count_the_loop_and_always_the_same(self):
        for allowed in 0, 1:
            with user_reads(allowed):
                told, cost = self.run_python(False)
                self.check(told, cost)
                self.assertTrue(200 < cost < 2000, cost)
                told, again = self.run_python(True)
                self.check(told, 0)
                self.assertAlmostEqual(again, cost, delta=NAME)


class TestBoundaries(LoopTestCase):
    KEEP = """
import json
kept = []
def region__seen(region): kept.append(list(region.values.values()))
def __exit__(totals): print(json.dumps({"kept": kept, "calls": totals["seen"].calls, "incomplete": totals["seen"].incomplete}))
"""

    def run_seen(self, region, *args, events="instructions:u"):
        run = self.run_script(self.KEEP, events, "-r", f"seen={region}", args=("--run", *args), preexec_fn=pin)
        self.assertEqual([run.status, run.stderr], [0, KERNEL_IS_OLD.replace("instructions:u", events.split(",")[0])])
        told = next(value for value in run.json if "kept" in value)
        self.assertEqual([len(told["kept"]), told["incomplete"]], [told["calls"], 0])
        return told["kept"]

    def test_a_function_counts_its_instructions(self):
        kept = self.run_seen(f"func:counted@{LOOP}", LOOP, "plain", 10, ROUNDS)
        once, twice = kept[:10], kept[10:]
        self.assertEqual([len(once), len(twice)], [10, 10])
        once, twice = (usual([value for [value] in passes]) for passes in (once, twice))
        self.assertEqual(twice - once, 2 * ROUNDS)
        # The probe of the return is an instruction more.
        self.assertTrue(instructions(ROUNDS) <= once <= instructions(ROUNDS) + 2, once)

    def test_system_calls_bound_passes_of_the_same_size(self):
        region = "syscalls:sys_enter_getppid..syscalls:sys_enter_getpid"
        kept = self.run_seen(region, PASSES, "plain", 10, 0, 0)
        self.assertEqual(len(kept), 10)
        self.assertLess(usual([value for [value] in kept]), 1000)
        kept = self.run_seen(region, PASSES, "plain", 10, 0, 0, events="cycles,instructions")
        for cycles, counted in kept:
            self.assertEqual(cycles, 4 * counted)


class TestBoundariesThatWait(LoopTestCase):
    """Four counters and the six of a region do not fit on the PMU together, and take turns."""
    TELL = """
import json
seen = []
def region__seen(region): seen.append(region.values["i0"])
def __exit__(totals):
    total = totals["seen"]
    print(json.dumps({"seen": seen, "calls": total.calls, "incomplete": total.incomplete, "values": total.values["i0"],
                      "scaled": total.scaled["i0"], "coverage": total.coverage["i0"], "others": totals["run"].coverage["x0"]}))
"""
    EVENTS = "{" + ",".join(f"instructions/alias=x{i}/u" for i in range(4)) + "},instructions/alias=i0/u,instructions/alias=i1/u"
    TOLD = re.compile(r"perfscope: -r: the counters had the PMU for ([0-9.]+)% of the time, and passes are seen in that time alone \(count fewer, "
                      r"here and elsewhere\)")

    def test_passes_that_are_seen_are_whole_and_the_rest_is_told(self):
        region = "seen=syscalls:sys_enter_getppid..syscalls:sys_enter_getpid"
        run = self.run_script(self.TELL, self.EVENTS, "-r", region, args=("--run", PASSES, "plain", 20000, 10, 10), preexec_fn=pin)
        told = next(value for value in run.json if "calls" in value)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertAlmostEqual(told["coverage"], 0.5, delta=0.1)
        self.assertAlmostEqual(told["coverage"] + told["others"], 1, delta=0.01)
        share = float(self.TOLD.fullmatch(run.errors[-1])[1])
        self.assertAlmostEqual(share, told["coverage"] * 100, delta=0.06)
        # A turn is 20 passes: one of them is cut.
        self.assertAlmostEqual(told["calls"], 20000 * told["coverage"], delta=2000)
        self.assertAlmostEqual(told["incomplete"], 900, delta=300)
        # None is of a begin and the end of another pass, which would be twice as large or more.
        self.assertEqual(len(told["seen"]), told["calls"])
        of_one = statistics.mode(told["seen"])
        self.assertLess(max(told["seen"]), 1.5 * of_one)
        self.assertGreater(told["seen"].count(of_one), 0.95 * len(told["seen"]))
        self.assertIsNone(told["values"])
        self.assertAlmostEqual(told["scaled"] * told["coverage"], sum(told["seen"]), delta=1)


class TestSplit(LoopTestCase):
    def test_groups_that_are_too_large_are_split_with_a_word(self):
        source = "import perfscope\ndef __exit__(totals): perfscope.report()\n"
        for events, errors, notes in (MANY, [f"perfscope: regions: {SPLIT}"], [SPLIT]), (MANY[:3], [], []):
            run = self.run_script(source, events, args=("--run", LOOP, "plain", 1, ROUNDS))
            self.assertEqual([run.status, run.errors], [0, errors])
            self.assertEqual([line for line in run.lines if "groups" in line], notes)


class TestSides(LoopTestCase):
    """What is left out is never a 0 that was not counted."""

    def test_switches_are_counted_though_the_kernel_is_left_out(self):
        told = run_loop("sleep", 3, events="instructions,context-switches")
        for name in NAMES:
            for counted, switches in told[name]:
                self.assertGreater(counted, 50)
                self.assertGreaterEqual(switches, 1)

    def test_another_user_gets_values_or_reasons(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        with sysctl("perf_event_paranoid", 2):
            told = run_loop("sleep", 3, events="instructions,context-switches", **nobody)
            self.assertTrue(all(counted > 50 and switches is None for counted, switches in told["loop"]), told)
            run = subprocess.run([LOOP, "plain", "1", "1"], env=dict(os.environ, EVENTS="instructions"), capture_output=True,
                                 text=True, check=False, **nobody)
            self.assertIn("instructions: permission denied (perf_event_paranoid is 2; needs CAP_PERFMON or root, or sysctl "
                          "kernel.perf_event_paranoid=1, or to count without the kernel)", run.stdout)


class TestUnits(unittest.TestCase):
    def test_counters_pass_their_own_tests_with_a_pmu(self):
        with sysctl("perf_event_paranoid", 2):
            run = subprocess.run([os.path.join(BUILD, "tests", "test_counter")], capture_output=True, text=True, check=False,
                                 env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
        bad = [line.split(" - ")[-1] for line in run.stdout.splitlines() if line.startswith("not ok")]
        self.assertEqual(bad, ["not ok 7 # SKIP counter: a_missing_pmu_is_told_with_what_stands_in_for_it"], run.stdout)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == "__main__":
    unittest.main()
