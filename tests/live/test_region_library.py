# SPDX-License-Identifier: MIT
"""Regions of C and C++ programs that link the library: exact counts, threads, forks, exceptions, other users."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from livetest import BUILD, read_paranoid_level, skip_if_hardware_pmu, skip_unless_root

C_PROGRAM = os.path.join(BUILD, "tests", "region_c")
CPP_PROGRAM = os.path.join(BUILD, "tests", "region_cpp")
USER_ONLY, STRICT, INHERIT, SUBTRACT = 1, 2, 4, 8


def run_regions(*arguments, events="page-faults", flags=0, status=0, program=C_PROGRAM, **options):
    run = subprocess.run([program, *map(str, arguments)], env=dict(os.environ, EVENTS=events, FLAGS=str(flags)),
                         capture_output=True, text=True, timeout=60, **options)
    if run.returncode != status or run.stderr:
        raise AssertionError(f"status {run.returncode}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)


def run_loop(flags):
    """Passes of region_loop: told by their counts of task-clock."""
    run = subprocess.run([os.path.join(BUILD, "tests", "region_loop"), "plain", "50", "100"], capture_output=True, text=True,
                         env=dict(os.environ, EVENTS="task-clock", FLAGS=str(flags)), timeout=60, check=True)
    return json.loads(run.stdout)


class TestExactness(unittest.TestCase):
    def test_fresh_pages_are_counted_exactly(self):
        for nr in (1, 100, 5000):
            totals = run_regions("pass", nr)
            self.assertEqual([totals["calls"], totals["page-faults"]], [1, nr])

    def test_nested_and_recursive_regions_count_each_page_once(self):
        totals = run_regions("nested", 100)
        self.assertEqual([totals["calls"], totals["page-faults"] - 200 in (0, 1)], [1, True])
        totals = run_regions("recursive", 50)
        self.assertEqual([totals["calls"], totals["page-faults"] - 50 in (0, 1, 2)], [50, True])

    def test_threads_count_their_own(self):
        totals = run_regions("threads", 300)
        self.assertEqual([totals["calls"], totals["page-faults"]], [8, 8 * 300])

    def test_a_child_of_fork_counts_for_itself(self):
        totals = run_regions("forks", 2000)
        self.assertEqual([totals["calls"], totals["incomplete"]], [1, 0])
        self.assertLess(totals["page-faults"], 2000)

    def test_sleeps_are_context_switches(self):
        totals = run_regions("sleeps", 50, events="context-switches", flags=USER_ONLY)
        self.assertGreaterEqual(totals["context-switches"], 50)
        self.assertGreaterEqual(totals["seconds"], 0.005)

    def test_task_clock_is_the_clock_of_the_thread(self):
        # The thread's clock leaves out what a host takes away: one undisturbed run is enough.
        runs = (run_regions("busy", 5, events="task-clock") for _ in range(100))
        self.assertTrue(any(abs(run["task-clock"] / run["clock_ns"] - 1) < 0.02 for run in runs))

    def test_exceptions_leave_the_scope(self):
        run = subprocess.run([CPP_PROGRAM], capture_output=True, text=True, timeout=60, check=True)
        totals = json.loads(run.stdout)
        self.assertEqual(totals["throws"], [5, 0, 10])
        calls, incomplete, faults = totals["scope"]
        self.assertEqual([calls, incomplete], [4, 0])
        self.assertIn(faults - 40, range(5))  # and a page of stack in each thread


class TestRefusals(unittest.TestCase):
    def test_an_unknown_counter_is_told_with_the_nearest(self):
        self.assertEqual(run_regions(events="page-fault", status=1)["error"],
                         "unknown counter 'page-fault'; did you mean page-faults?")

    @skip_if_hardware_pmu
    def test_a_missing_pmu_is_none_and_strict_makes_it_an_error(self):
        totals = run_regions("pass", 3, events="cycles,page-faults")
        self.assertEqual([totals["cycles"], totals["page-faults"]], [None, 3])
        self.assertEqual(run_regions(events="cycles,page-faults", flags=STRICT, status=1)["error"],
                         "cycles: no hardware PMU here (the nearest is cpu-clock)")

    @skip_unless_root
    @unittest.skipUnless(read_paranoid_level() == 2, "perf_event_paranoid is not 2")
    def test_another_user_counts_without_the_kernel(self):
        # The build may lie where only root comes.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        nobody = {"program": shutil.copy(C_PROGRAM, folder.name), "user": 65534, "group": 65534}
        totals = run_regions("pass", 3, events="page-faults,context-switches,task-clock", flags=USER_ONLY, **nobody)
        self.assertEqual([totals["page-faults"], totals["context-switches"]], [3, None])
        self.assertGreater(totals["task-clock"], 0)
        self.assertEqual(run_regions(events="page-faults", status=1, **nobody)["error"],
                         "page-faults: permission denied (perf_event_paranoid is 2; needs CAP_PERFMON or root, or sysctl "
                         "kernel.perf_event_paranoid=1, or to count without the kernel)")

    def test_a_limit_of_descriptors_is_named(self):
        run = subprocess.run(["sh", "-c", f"ulimit -n 4; exec {C_PROGRAM}"], capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, EVENTS="page-faults,task-clock", FLAGS=str(STRICT)))
        self.assertIn("Too many open files (the limit is 4: raise it, ulimit -n)", run.stdout)


class TestLibrary(unittest.TestCase):
    def test_without_an_observer_nothing_is_counted(self):
        environment = {name: value for name, value in os.environ.items() if name != "PERFSCOPE_REGIONS"}
        run = subprocess.run([C_PROGRAM, "pass", "3"], env=environment, capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(json.loads(run.stdout), {"error": "no region 'work' was passed"})

    def test_a_path_that_is_no_table_changes_nothing(self):
        for path in ("/nowhere", "/dev/null", C_PROGRAM):
            run = subprocess.run([C_PROGRAM, "pass", "3"], env=dict(os.environ, PERFSCOPE_REGIONS=path),
                                 capture_output=True, text=True, timeout=60, check=True)
            self.assertEqual([json.loads(run.stdout), run.stderr], [{"error": "no region 'work' was passed"}, ""])

    def test_the_archive_offers_only_names_of_regions(self):
        names = subprocess.run(["nm", "-g", "--defined-only", os.path.join(BUILD, "libperfscope-region.a")],
                               capture_output=True, text=True, check=True).stdout.split("\n")
        offered = {line.split()[-1] for line in names if len(line.split()) == 3}
        self.assertEqual(offered, {"perfscope_region_" + name for name in (
            "is_active", "begin_active", "end_active", "configure", "error", "totals", "overhead", "reset", "report")})

    def test_plugins_count_each_for_itself_and_can_be_unloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            plugins = [shutil.copy(os.path.join(BUILD, "tests", "region_plugin.so"), os.path.join(folder, name))
                       for name in ("first.so", "second.so")]
            run = subprocess.run([os.path.join(BUILD, "tests", "region_host"), *plugins], capture_output=True, text=True,
                                 timeout=60, check=False)
        self.assertEqual([run.returncode, run.stdout, run.stderr], [0, "1 2\n0\n", ""])

    def test_the_report_is_a_table(self):
        run = subprocess.run([C_PROGRAM, "report", "12"], env=dict(os.environ, EVENTS="page-faults"),
                             capture_output=True, text=True, timeout=60, check=True)
        rows = [line.split() for line in run.stdout.splitlines()]
        self.assertEqual(rows[0], ["region", "calls", "seconds", "page-faults"])
        self.assertEqual([rows[2][0], rows[2][1], rows[2][3]], ["work", "1", "12"])
        self.assertEqual(run.stdout.splitlines()[3:], ["an empty pass counts 0 page-faults"])

    def test_the_cost_of_a_pass_is_taken_off_when_asked(self):
        def report(flags):
            run = subprocess.run([C_PROGRAM, "report", "12"], env=dict(os.environ, EVENTS="page-faults,task-clock", FLAGS=str(flags)),
                                 capture_output=True, text=True, timeout=60, check=True)
            [*_, work, cost] = run.stdout.splitlines()
            self.assertEqual(work.split()[3], "12")
            return int(work.split()[4]), cost
        self.assertRegex(report(0)[1], r"^an empty pass counts 0 page-faults, [1-9]\d* task-clock$")
        self.assertRegex(report(SUBTRACT)[1], r"^an empty pass counts 0 page-faults, [1-9]\d* task-clock; taken off above$")

        def empty_ns(flags):
            totals = [run_loop(flags) for _ in range(5)]
            return min(value for told in totals for [value] in told["empty"])
        self.assertGreater(empty_ns(0), 100)
        self.assertLess(empty_ns(SUBTRACT), empty_ns(0) / 2)


if __name__ == "__main__":
    unittest.main()
