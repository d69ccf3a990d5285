# SPDX-License-Identifier: MIT
"""Regions between two events: what each pass counts is exact, alone, beside others on one CPU, and from CPU to CPU."""

import json
import os
import shutil
import statistics
import subprocess
import unittest

from livetest import BUILD, COMMAND, TIMEOUT_S, LiveTestCase, skip_unless_root, skip_unless_tracepoints, skip_unless_two_cpus

PASSES = os.path.join(BUILD, "tests", "passes")
ONE = "one=syscalls:sys_enter_getppid..syscalls:sys_enter_getpid"
TWO = "two=syscalls:sys_enter_getuid..syscalls:sys_enter_getgid"
COUNTERS = "page-faults,task-clock"
TOTALS = """
import json
def show(total):
    return {name: getattr(total, name) for name in ('calls', 'incomplete', 'values', 'scaled', 'coverage', 'seconds')}
passes, intervals = [], []
def __interval__(totals):
    intervals.append({name: show(total) for name, total in totals.items()})
def __exit__(totals):
    print(json.dumps({'totals': {name: show(total) for name, total in totals.items()}, 'intervals': intervals,
                      'passes': [[p.name, p.pid, p.tid, p.comm, p.cpu, p.begin, p.end, p.seconds, p.calls, p.values]
                                 for p in passes]}), flush=True)
"""
EACH = TOTALS + """
def region__one(region):
    if region.comm == 'passes': passes.append(region)
"""
BOTH = EACH + "region__two = region__one\n"


@skip_unless_tracepoints
@skip_unless_root
class RegionTestCase(LiveTestCase):
    def run_passes(self, *words, options=("-r", ONE), events=COUNTERS, source=EACH):
        """Run the program of passes under the command; the script's object, with the program's as `load`."""
        arguments = self.script_arguments(source, events, options, ["--run", PASSES, *words])
        run = self.run_command(*arguments)
        self.assertEqual([run.status, run.stderr], [0, ""])
        told = {key: value for line in run.json for key, value in line.items()}
        return told

    def observe_passes(self, *words, options=("-r", ONE, "-r", TWO), events=COUNTERS, source=BOTH):
        """The same while the command observes the whole machine."""
        observer = self.start_script(source, events, *options)
        load = subprocess.run([PASSES, *map(str, words)], capture_output=True, timeout=TIMEOUT_S, check=True)
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return {**run.json[0], **json.loads(load.stdout)}

    def faults(self, told, name):
        return [p[-1]["page-faults"] for p in told["passes"] if p[0] == name]

    def assert_clock(self, told, name):
        """The task-clock of passes is the thread's own CPU time, within 2 %: but for those in which a hypervisor took the CPU
        away, which task-clock counts and the thread's clock does not."""
        clocks = [p[-1]["task-clock"] for p in told["passes"] if p[0] == name]
        self.assertEqual(len(clocks), len(told["cpu_ns"]))
        ratios = [clock / cpu_ns for clock, cpu_ns in zip(clocks, told["cpu_ns"])]
        self.assertGreater(statistics.median(ratios), 0.98)
        self.assertLess(statistics.quantiles(ratios, n=4)[0], 1.02)


class TestProgram(RegionTestCase):
    def test_each_pass_counts_its_own_page_faults(self):
        told = self.run_passes("plain", 20, 7, 3000)
        one = told["totals"]["one"]
        self.assertEqual(self.faults(told, "one"), [7] * 20)
        self.assertEqual([one["calls"], one["incomplete"], one["values"]["page-faults"]], [20, 0, 140])
        self.assertEqual(one["scaled"]["page-faults"], 140.0)
        self.assert_clock(told, "one")

    def test_region_tells_whose_pass_it_was_and_when(self):
        told = self.run_passes("plain", 2, 1, 100)
        (name, pid, tid, comm, cpu, begin, end, seconds, calls, _), second = told["passes"]
        self.assertEqual([name, pid, comm, calls], ["one", tid, "passes", 1])
        self.assertIn(cpu, range(os.cpu_count()))
        self.assertEqual(seconds, (end - begin) / 1e9)
        self.assertLess(end, second[5])
        self.assertAlmostEqual(told["totals"]["one"]["seconds"], seconds + second[7])

    @skip_unless_two_cpus
    def test_pass_goes_from_cpu_to_cpu(self):
        told = self.run_passes("migrate", 20, 5, 2000)
        self.assertEqual(self.faults(told, "one"), [15] * 20)
        self.assert_clock(told, "one")
        coverage = told["totals"]["one"]["coverage"]["page-faults"]
        self.assertTrue(0.99 < coverage <= 1, coverage)

    def test_threads_of_a_process(self):
        told = self.run_passes("pair", 50, 40, 7, options=("-r", ONE, "-r", TWO), source=BOTH)
        self.assertEqual(self.faults(told, "one"), [40] * 50)
        self.assertEqual(self.faults(told, "two"), [7] * 50)

    def test_children_are_followed(self):
        told = self.run_passes("forks", 10, 9, options=("-r", ONE, "--inherit"))
        self.assertEqual(self.faults(told, "one"), [9] * 10)
        self.assertEqual(len({p[2] for p in told["passes"]}), 10)

    def test_begins_and_ends_alone_are_incomplete(self):
        one = self.run_passes("odd", 5)["totals"]["one"]
        self.assertEqual([one["calls"], one["incomplete"], one["values"]["page-faults"]], [1, 7, 0])

    def test_begins_without_an_end_are_open_until_the_run_ends(self):
        source = """
def __interval__(totals): print(*(getattr(totals["one"], name) for name in ("calls", "incomplete", "open")), flush=True)
__exit__ = __interval__
"""
        load = self.hold_load("wait", "+", "getppid", 3, "+", "wait")
        observer = self.start_script(source, COUNTERS, "-r", ONE, "-i", "50", "-p", load.pid)
        load.go()
        lines = (observer.process.stdout.readline() for _ in range(100))
        self.assertEqual(next(line for line in lines if line != "0 0 0\n"), "0 0 3\n")
        *others, last = observer.stop().stdout.splitlines()
        self.assertEqual([set(others) - {"0 0 3"}, last], [set(), "0 3 0"])

    def test_function_with_recursion_counts_once(self):
        told = self.run_passes("nested", 6, 9, 3, options=("-r", f"one=func:nested@{PASSES}"))
        # The first uprobe of a process makes a page for it.
        self.assertEqual(self.faults(told, "one")[1:], [27] * 5)
        self.assertEqual([p[-2] for p in told["passes"]], [9] * 6)
        self.assertEqual([told["totals"]["one"][key] for key in ("calls", "incomplete")], [54, 0])

    def test_intervals_add_up_to_the_whole(self):
        told = self.run_passes("plain", 100, 3, 2000, options=("-r", ONE, "-i", "20"))
        self.assertGreater(len(told["intervals"]), 3)
        rest = told["totals"]["one"]["calls"] - sum(i["one"]["calls"] for i in told["intervals"])
        self.assertIn(rest, range(101))
        for interval in told["intervals"]:
            self.assertEqual(interval["one"]["values"]["page-faults"], 3 * interval["one"]["calls"])
        self.assertEqual(told["totals"]["one"]["values"]["page-faults"], 300)

    def test_counters_of_a_group_and_missing_ones(self):
        arguments = self.script_arguments(EACH, "{faults,task-clock},page-faults,cycles:u", ["-r", ONE],
                                          ["--run", PASSES, "plain", 3, 4])
        run = self.run_command(*arguments)
        one = run.json[0]["totals"]["one"] if "totals" in run.json[0] else run.json[1]["totals"]["one"]
        self.assertEqual(list(one["values"]), ["faults", "task-clock", "page-faults", "cycles:u"])
        self.assertEqual([one["values"][name] for name in ("faults", "page-faults")], [12, 12])
        self.assertEqual(one["values"]["cycles:u"] is None, "no hardware PMU" in run.stderr)
        self.assertEqual(run.stderr.count("cycles"), one["values"]["cycles:u"] is None)

    def test_without_counters_passes_are_timed(self):
        arguments = ["python", "-r", ONE, self.write("script.py", EACH), "--run", PASSES, "plain", 3, 0, 1000]
        run = self.run_command(*arguments)
        self.assertEqual([run.status, run.stderr], [0, ""])
        one = run.json[-1]["totals"]["one"] if "totals" in run.json[-1] else run.json[0]["totals"]["one"]
        self.assertEqual([one["calls"], one["values"]], [3, {}])
        self.assertGreaterEqual(one["seconds"], 0.003)

    def test_events_of_regions_have_no_handlers_of_their_own(self):
        source = EACH + "got = []\ndef __sample__(event): passes.append(1 / 0)\n"
        told = self.run_passes("plain", 3, 1, source=source)
        self.assertEqual(self.faults(told, "one"), [1] * 3)
        self.assertEqual(list(told["totals"]["run"]["values"]), ["page-faults", "task-clock"])

    def test_event_given_by_e_too_is_handled(self):
        source = EACH + "def syscalls__sys_enter_getpid(event): intervals.append(event._event)\n"
        told = self.run_passes("plain", 3, 1, source=source, events=f"{COUNTERS},syscalls:sys_enter_getpid")
        self.assertEqual(told["totals"]["run"]["values"]["syscalls:sys_enter_getpid"], 3)
        self.assertEqual(told["intervals"], ["syscalls:sys_enter_getpid"] * 3)
        self.assertEqual(self.faults(told, "one"), [1] * 3)


class TestMachine(RegionTestCase):
    def test_threads_on_one_cpu_count_each_its_own(self):
        told = self.observe_passes("pair", 50, 40, 7)
        self.check(told, "one", 50, 40)
        self.check(told, "two", 50, 7)

    def test_clock_is_the_threads_own(self):
        told = self.observe_passes("plain", 10, 100, 10000)
        if self.check(told, "one", 10, 100):
            self.assert_clock(told, "one")

    def has_silent_threads(self):
        """Whether there are threads that leave a CPU without a record, as the idle thread of one that was offline once."""
        source = "came, untold = {}, []\n" \
                 "def sched__sched_switch(event):\n" \
                 "    if came.get(event._cpu, event.prev_pid) != event.prev_pid: untold.append(came[event._cpu])\n" \
                 "    came[event._cpu] = event.next_pid\n" \
                 "def __exit__(): print([len(untold)])\n"
        return self.run_script(source, "sched:sched_switch", "--duration", "2").json[0][0] > 0

    def check(self, told, name, nr, nr_faults):
        """All @nr passes count exactly; with silent threads, those that are complete do. Whether all are."""
        faults = self.faults(told, name)
        self.assertEqual(faults, [nr_faults] * len(faults))
        if len(faults) < nr:
            self.assertTrue(self.has_silent_threads())
            self.assertGreaterEqual(told["totals"][name]["incomplete"], nr - len(faults))
        return len(faults) == nr

    @skip_unless_two_cpus
    def test_pass_goes_from_cpu_to_cpu(self):
        told = self.observe_passes("migrate", 20, 5, 2000)
        if self.check(told, "one", 20, 15):
            self.assert_clock(told, "one")

    @unittest.skipUnless(shutil.which("unshare"), "no unshare here")
    def test_threads_outside_of_the_pid_namespace_are_not_taken_for_one(self):
        load = subprocess.Popen([PASSES, "plain", "10000000", "0"], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (load.kill(), load.wait()))
        arguments = self.script_arguments(TOTALS, COUNTERS, ["-r", ONE, "--duration", "0.5"], [])
        run = self.run_command("--pid", "--fork", "--mount-proc", COMMAND, *arguments, command="unshare")
        one = run.json[0]["totals"]["one"]
        self.assertEqual(one["calls"], 0)
        self.assertGreater(one["incomplete"], 0)

    def test_filters_tell_two_ends_of_one_event_apart(self):
        region = "one=syscalls:sys_enter_kill/sig==0/..syscalls:sys_enter_kill/sig==18/"
        observer = self.start_script(TOTALS, COUNTERS, "-r", region)
        load = os.path.join(BUILD, "tests", "load")
        for _ in range(2):
            subprocess.run([load, "kill", "0", "1", "+", "kill", "18", "1"], capture_output=True, check=True)
        one = observer.stop().json[0]["totals"]["one"]
        self.assertEqual([one["calls"], one["incomplete"]], [2, 0])


class TestLoss(RegionTestCase):
    SLOW = EACH + "import time\ndef region__one(region): passes.append(region); time.sleep(0.001)\n"

    def check(self, told, run, nr):
        one = told["totals"]["one"]
        self.assertIn("events lost", run.stderr)
        self.assertGreater(one["incomplete"], 0)
        self.assertGreater(one["calls"], 0)
        self.assertLess(one["calls"], nr)
        # Nothing is guessed: each pass that counts is whole.
        self.assertEqual(set(self.faults(told, "one")), {2})
        self.assertEqual(one["values"]["page-faults"], 2 * one["calls"])

    def test_passes_around_a_loss_are_incomplete(self):
        arguments = self.script_arguments(self.SLOW, COUNTERS, ["-r", ONE, "-m", "1"],
                                          ["--run", PASSES, "plain", 3000, 2])
        run = self.run_command(*arguments)
        self.check({key: value for line in run.json for key, value in line.items()}, run, 3000)

    def test_threads_target_as_well(self):
        process = subprocess.Popen([PASSES, "wait", "plain", "3000", "2"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        observer = self.start_script(self.SLOW, COUNTERS, "-r", ONE, "-m", "1", "-p", process.pid)
        process.communicate(b"\n")
        run = observer.wait()
        self.check(run.json[0], run, 3000)


class TestThreads(RegionTestCase):
    def test_counters_of_a_thread_need_no_switches(self):
        process = subprocess.Popen([PASSES, "wait", "plain", "20", "7", "2000"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        observer = self.start_script(EACH, COUNTERS, "-r", ONE, "-p", process.pid)
        load = json.loads(process.communicate(b"\n")[0])
        run = observer.wait()
        self.assertEqual([run.status, run.stderr], [0, ""])
        told = {**run.json[0], **load}
        self.assertEqual(self.faults(told, "one"), [7] * 20)
        self.assertEqual(told["totals"]["one"]["coverage"]["page-faults"], 1.0)
        self.assert_clock(told, "one")


    def test_begins_and_ends_stop_at_one_moment(self):
        load = self.hold_load("wait", "+", "getppid", 3000000)
        source = "def __exit__(totals): print([totals['get'].calls, totals['get'].incomplete])"
        observer = self.start_script(source, COUNTERS, "-r", "get=syscalls:sys_enter_getppid..syscalls:sys_exit_getppid", "-m", "64M",
                                     "-p", load.pid, "--duration", "0.3")
        load.process.stdin.write(b"\n")
        load.process.stdin.flush()
        run = observer.wait()
        load.process.kill()
        [calls, incomplete] = run.json[0]
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertGreater(calls, 1000)
        self.assertLessEqual(incomplete, 1)


class TestWords(RegionTestCase):
    def assert_refused(self, region, line):
        run = self.run_command("python", "-r", region, self.write("script.py", EACH), "--run", "/bin/true")
        self.assertEqual([run.status, run.stdout, run.errors[0]], [2, "", f"perfscope: {line}"])

    def test_what_is_wrong_is_told_in_a_line(self):
        self.assert_refused("x=a:b", "-r: region 'x': .. is missing between BEGIN and END")
        self.assert_refused("run=a:b..a:c", "-r: region 'run': this name is the whole run's; choose another")
        self.assert_refused("x=..a:c", "-r: region 'x': BEGIN is missing before the ..")
        run = self.run_command("python", "-r", "x=sched:sched_switsh..sched:sched_switch", self.write("s.py", EACH),
                               "--run", "/bin/true")
        self.assertEqual([run.status, run.stdout, len(run.errors)], [2, "", 1])
        self.assertIn("sched_switch", run.stderr)

    def test_order_is_kept(self):
        source = "def region__one(region): pass\n"
        run = self.run_command("python", "-r", ONE, "--no-order", self.write("s.py", source), "--run", "/bin/true")
        self.assertEqual([run.status, run.errors],
                         [0, ["perfscope: -r needs records in the order of their time: --no-order is passed over"]])

    def test_handler_of_no_region_is_told(self):
        source = "def region__won(region): pass\ndef __exit__(): pass\n"
        run = self.run_command("python", "-r", ONE, self.write("s.py", source), "--run", "/bin/true")
        self.assertEqual(run.status, 0)
        self.assertIn("region__won is never called: -r has no such region; did you mean region__one?", run.stderr)

    def test_template_has_the_handler(self):
        run = self.run_command("python", "-e", "page-faults", "-r", ONE, "--help")
        self.assertEqual(run.status, 0)
        self.assertEqual(run.lines[0], f"# perfscope python -e page-faults -r {ONE} this_file.py")
        self.assertIn("def region__one(region: perfscope.RegionPass) -> None:", run.lines)
        script = self.write("template.py", run.stdout)
        run = self.run_command("python", "-e", "page-faults", "-r", ONE, script, "--run", PASSES, "plain", 2, 3)
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertIn("one {'page-faults': 6}", run.lines)

    def test_kept_passes_stay_whole_and_exceptions_are_told(self):
        source = "kept = []\ndef region__one(region):\n    kept.append(region)\n    if len(kept) == 2: 1 / 0\n" \
                 "def __exit__(): print([p.values for p in kept], kept[0].values is kept[0].values, flush=True)\n"
        run = self.run_command("python", "-e", "page-faults", "-r", ONE, self.write("s.py", source),
                               "--run", PASSES, "plain", 3, 5)
        self.assertEqual(run.status, 1)
        self.assertIn("[{'page-faults': 5}, {'page-faults': 5}, {'page-faults': 5}] True", run.lines)
        self.assertIn("ZeroDivisionError", run.stderr)
