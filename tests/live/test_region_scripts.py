# SPDX-License-Identifier: MIT
"""The regions of a script itself arrive in its totals."""

import os
import shutil
import unittest

from livetest import LOAD, read_paranoid_level, skip_if_hardware_pmu, skip_unless_root, skip_unless_tracepoints
from pythonregions import PAGES, PythonTestCase

# Scripts ask for reports with it.
REPORT = """
import io

def report(**how):
    file = io.StringIO()
    perfscope.report(file, **how)
    return file.getvalue()
"""


class TestOwn(PythonTestCase):
    def test_fresh_pages_are_counted_exactly(self):
        for options, args in (((), ("--run", "true")), (("--duration", "0.05"), ())):
            told = self.run_own("def __init__():\n    work(100)\n    work(11)\n", *options, args=args)
            self.assertEqual(told["totals"]["work"], [2, 0, 111])

    def test_passes_while_the_script_is_loaded_count(self):
        self.assertEqual(self.run_own("work(40)\n")["totals"]["work"], [1, 0, 40])

    def test_nested_and_recursive_passes_count_each_page_once(self):
        told = self.run_own("""
@perfscope.region("recursive")
def recursive(depth):
    pages.touch(3)
    if depth > 1:
        recursive(depth - 1)

def __init__():
    recursive(10)  # what calls need is there from now on
    before = perfscope.regions()["recursive"].values["page-faults"]
    with perfscope.region("outer"):
        pages.touch(5)
        recursive(10)
    print(json.dumps({"faults": perfscope.regions()["recursive"].values["page-faults"] - before}))
""")
        self.assertEqual(self.ended.json[0], {"faults": 30})
        self.assertEqual(told["totals"]["recursive"][:2], [20, 0])
        self.assertEqual(told["totals"]["outer"], [1, 0, 35])

    def test_passes_that_have_not_ended_are_open(self):
        self.run_own(REPORT + """
def report_open():
    return json.loads(report(format="json"))["open"]

def told(totals):
    return totals["work"].open, totals["work"].calls

passing = perfscope.region("work")

def __init__():
    work(1)
    passing.__enter__()

def __interval__(totals):
    print(json.dumps({"open": [told(totals), told(perfscope.regions())], "report": report(), "report_open": report_open()}))
    passing.__exit__(None, None, None)
    print(json.dumps({"ended": told(perfscope.regions()), "report_ended": report_open()}))
    perfscope.stop()
""", "-i", "50", args=("--run", "sleep", "5"))
        told = {name: value for line in self.ended.json for name, value in line.items()}
        self.assertEqual([told["open"], told["ended"], told["totals"]["work"][:2]], [[[1, 1], [1, 1]], [0, 2], [2, 0]])
        self.assertEqual([told["report_open"], told["report_ended"]], [{"work": 1}, {}])
        self.assertIn("work: 1 pass open", told["report"].splitlines())

    def test_threads_are_added_up(self):
        told = self.run_own("def __init__():\n    work(9)\n    in_threads(4, work, 50)\n")
        self.assertEqual(told["totals"]["work"], [5, 0, 209])

    def test_each_thread_that_lives_stands_for_itself_and_the_others_together(self):
        told = self.run_own("""
lives, ends = threading.Barrier(3), threading.Event()

def live(nr):
    work(nr)
    lives.wait()
    ends.wait()

def __init__():
    work(9)
    in_threads(4, work, 50)
    threads = [threading.Thread(target=live, args=(nr,), daemon=True) for nr in (3, 4)]
    for thread in threads:
        thread.start()
    lives.wait()
    print(json.dumps({"tids": [os.getpid(), *(thread.native_id for thread in threads)]}))
""")
        main, first, second = self.ended.json[0]["tids"]
        self.assertEqual(told["by_thread"]["work"], {
            "0": [4, 0, 200], str(main): [1, 0, 9], str(first): [1, 0, 3], str(second): [1, 0, 4]})
        self.assertEqual(told["totals"]["work"], [7, 0, 216])

    def test_a_pass_that_is_open_at_the_end_is_incomplete(self):
        told = self.run_own("""
def __init__():
    work(2)
    perfscope.region("work").__enter__()
    pages.touch(5)
""")
        self.assertEqual(told["totals"]["work"], [1, 1, 2])

    def test_tasks_that_alternate_count_their_own(self):
        told = self.run_own("""
async def task(name, nr, times):
    with perfscope.region(name):
        for _ in range(times):
            pages.touch(nr)
            await asyncio.sleep(0)

async def both(first, second):
    await asyncio.gather(task(first, 10, 5), task(second, 3, 7))

def __init__():
    for i in range(5):
        asyncio.run(both(f"first{i}", f"second{i}"))
""")
        # Now and then the interpreter takes a fresh page for itself.
        first, second = ([told["totals"][f"{name}{i}"] for i in range(5)] for name in ("first", "second"))
        self.assertEqual([min(first), min(second)], [[1, 0, 50], [1, 0, 21]])

    @skip_unless_tracepoints
    def test_passes_of_handlers_and_intervals_add_up(self):
        told = self.run_own("""
nr, since, sums = 0, 0, []

def syscalls__sys_enter_getppid(event):
    global nr, since
    nr, since = nr + 1, since + 1
    work(3)

def __interval__(totals):
    global since
    if since:
        sums.append([since, *row(totals["work"])])
    since = 0

def __exit__(totals):
    last = [total - sum(row[i + 1] for row in sums) for i, total in enumerate(row(totals["work"]))]
    print(json.dumps({"by_thread": {}, "nr": nr, "sums": sums, "since": since, "last": last, "whole": row(totals["work"])}))
""", "-i", "20", events="syscalls:sys_enter_getppid,page-faults",
                            args=("--run", LOAD, *"getppid 50 + sleep 150 + getppid 70 + sleep 150 + getppid 3".split()))
        self.assertEqual([told["nr"], told["whole"]], [123, [123, 0, 369]])
        self.assertGreaterEqual(len(told["sums"]), 2)
        self.assertEqual(told["sums"], [[nr, nr, 0, 3 * nr] for nr, *_ in told["sums"]])
        self.assertEqual(told["last"], [told["since"], 0, 3 * told["since"]])

    def test_the_totals_of_a_run_cannot_start_anew(self):
        self.run_own("""
def __init__():
    work(1)
    try:
        perfscope.reset()
    except perfscope.PerfEventError as error:
        print(error)
""")
        self.assertIn("reset: the totals of a run are perfscope's, and cannot start anew", self.ended.lines)


@skip_unless_tracepoints
class TestAllKinds(PythonTestCase):
    """What regions() and report() tell is what __exit__ is given, whichever way a region was made."""

    def test_regions_tell_what_the_totals_do(self):
        told = self.run_own("""
def __init__():
    in_threads(2, work, 5)
    work(7)
    work(2, "own")

def __exit__(totals):
    print(json.dumps({"totals": {name: row(total) for name, total in totals.items() if name != "run"},
                      "regions": {name: row(total) for name, total in perfscope.regions().items()},
                      "by_thread": by_thread(), "pid": os.getpid()}))
    perfscope.report()
""", "-r", "work=syscalls:sys_enter_getppid..syscalls:sys_exit_getppid", args=("--run", LOAD, "getppid", "30"))
        self.assertEqual(told["totals"], {"work": [30, 0, 0], "work#2": [3, 0, 17], "own": [1, 0, 2]})
        self.assertEqual([told["regions"], list(told["regions"])], [told["totals"], list(told["totals"])])
        self.assertEqual(told["by_thread"], {
            "work": {"0": [30, 0, 0]}, "work#2": {"0": [2, 0, 10], str(told["pid"]): [1, 0, 7]},
            "own": {str(told["pid"]): [1, 0, 2]}})
        *rows, cost = [line.split() for line in self.ended.lines if not line.startswith("{")]
        self.assertEqual([[row[0], row[1], row[3]] for row in rows], [
            ["region", "calls", "page-faults"], ["work", "30", "0"], ["work#2", "3", "17"], ["own", "1", "2"]])
        self.assertEqual(" ".join(cost), "an empty pass counts 0 page-faults")

    def test_what_regions_of_threads_cannot_count_has_no_reason_where_none_lacks_it(self):
        self.run_own("""
def __exit__(totals):
    print(json.dumps({"by_thread": {}, "is_counted": totals["get"].values["task-clock"] > 0}))
    perfscope.report()
""", "-r", "get=syscalls:sys_enter_getppid..syscalls:sys_exit_getppid", events="task-clock/cpus=0/",
                     args=("--run", LOAD, *"--cpu 0 getppid 30".split()))
        self.assertEqual(self.ended.json[0]["is_counted"], True)
        lines = [line.split()[0] for line in self.ended.lines if not line.startswith("{")]
        self.assertEqual(lines, ["region", "get"])

    def test_to_configure_is_refused_with_what_to_do(self):
        try_it = """
try:
    perfscope.configure(["Task-Clock", "page-faults"], strict=True)
except perfscope.PerfEventError as error:
    print(error)
"""
        self.run_own(f"{try_it}\ndef __init__():\n" + try_it.replace("\n", "\n    "))
        self.assertEqual([line for line in self.ended.lines if line.startswith("configure")], 2 * [
            "configure: in a script of perfscope the regions count what -e of the run names: "
            "perfscope python -e task-clock,page-faults"])


class TestCost(PythonTestCase):
    SOURCE = REPORT + """
def __init__():
    for _ in range(300):
        with perfscope.region("empty"): pass

def __exit__(totals):
    cost, again = [json.loads(report(format="json"))["overhead"]["task-clock"] for _ in range(2)]
    print(json.dumps({"by_thread": {}, "cost": cost, "again": again,
                      "mean": totals["empty"].values["task-clock"] / 300, "names": list(perfscope.regions())}))
"""

    def test_what_an_empty_pass_costs_is_told_and_in_no_total(self):
        ratios = []
        for _ in range(5):
            told = self.run_own(self.SOURCE, events="task-clock")
            self.assertEqual([told["again"], told["names"]], [told["cost"], ["empty"]])
            ratios.append(told["mean"] / told["cost"])
        # The least of some runs: on a busy machine most passes cost more than the median.
        self.assertTrue(0.5 < min(ratios) < 1.5, ratios)

    def test_regions_of_r_alone_have_none(self):
        self.run_own("""
def __exit__(totals):
    print(json.dumps({"by_thread": {}}))
    perfscope.report()
""", "-r", "get=syscalls:sys_enter_getppid..syscalls:sys_exit_getppid", args=("--run", LOAD, "getppid", "30"))
        lines = [line.split()[0] for line in self.ended.lines if not line.startswith("{")]
        self.assertEqual(lines, ["region", "get"])


class TestValues(PythonTestCase):
    REPORT = """
def __init__():
    work(4)

def __exit__(totals):
    same = perfscope.regions()["work"].values == totals["work"].values
    print(json.dumps({"by_thread": by_thread()["work"], "values": totals["work"].values, "same": same}))
    perfscope.report()
"""

    def rows(self):
        """The words of each line of the report."""
        return [line.split() for line in self.ended.lines if not line.startswith("{")]

    @skip_if_hardware_pmu
    def test_a_counter_that_is_missing_is_none_wherever_it_is_told(self):
        told = self.run_own(self.REPORT, events="cycles,page-faults")
        self.assertEqual([told["values"], told["same"]], [{"cycles": None, "page-faults": 4}, True])
        self.assertEqual(list(told["by_thread"].values()), [[1, 0, None, 4]])
        self.assertEqual([self.rows()[0][-2:], self.rows()[1][-2:]], [["cycles", "page-faults"], ["-", "4"]])
        self.assertEqual(self.ended.lines[-2:], ["cycles: no hardware PMU here; nearest: cpu-clock",
                                                 "an empty pass counts 0 page-faults"])

    def test_a_counter_of_cpus_is_none_with_a_reason(self):
        told = self.run_own(self.REPORT, events="page-faults,task-clock/cpus=0/")
        self.assertEqual([told["values"], told["same"]], [{"page-faults": 4, "task-clock": None}, True])
        self.assertEqual(self.ended.lines[-2:], ["task-clock: not a counter that threads can have in regions",
                                                 "an empty pass counts 0 page-faults"])

    def test_switches_are_counted_where_the_kernel_is_left_out(self):
        told = self.run_own("""
def __init__():
    with perfscope.region("work"):
        for _ in range(5):
            time.sleep(0.001)
""", "--exclude-kernel", events="context-switches")
        self.assertGreaterEqual(told["totals"]["work"][2], 5)

    @skip_unless_root
    @unittest.skipUnless(read_paranoid_level() == 2, "perf_event_paranoid is not 2")
    def test_another_user_is_refused_in_words(self):
        os.chmod(self.folder, 0o755)
        shutil.copy(os.path.join(PAGES, "pages.py"), self.folder)  # the tree may be closed to others
        told = self.run_own("def __init__():\n    work(4)\n", "--user", "nobody")
        self.assertEqual(told["totals"]["work"], [1, 0, None])
        self.assertEqual(self.ended.errors, [
            "perfscope: page-faults was not counted in all regions: permission denied (perf_event_paranoid is 2; needs "
            "CAP_PERFMON or root, or sysctl kernel.perf_event_paranoid=1, or to count without the kernel)"])


if __name__ == "__main__":
    unittest.main()
