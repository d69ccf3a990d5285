# SPDX-License-Identifier: MIT
"""What the shipped scripts make of events that are made up."""

import contextlib
import importlib.util
import io
import os
import sys
import types
import unittest
from unittest import mock

from scripttest import ROOT

US = 1000


def load(name, *arguments):
    perfscope = types.SimpleNamespace(
        syscall_name=lambda number: {0: "read", 1: "write"}.get(number),
        report=lambda file, format: file.write('{"overhead": {"page-faults": 0, "cycles": null, "task-clock": 1062}}'))
    path = os.path.join(ROOT, "scripts", f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"shipped_{name}", path)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, perfscope=perfscope), mock.patch.object(sys, "argv", [name, *arguments]):
        spec.loader.exec_module(module)
    return module


def shown(function):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        function()
    return output.getvalue().splitlines()


def event(**fields):
    return types.SimpleNamespace(**fields)


class TestRegions(unittest.TestCase):
    TOTALS = {
        "run": event(calls=1, incomplete=0, seconds=0.5, values={"page-faults": 70, "cycles": None}, scaled={"page-faults": 70.0, "cycles": None}),
        "pa\x1brse": event(calls=4, incomplete=1, seconds=0.001, values={"page-faults": 6, "cycles": None},
                          scaled={"page-faults": 6.0, "cycles": 4000.4}),
        "\u6b8b\u308a": event(calls=0, incomplete=2, seconds=0.0, values={"page-faults": 0, "cycles": None}, scaled={"page-faults": 0.0, "cycles": None})}

    def test_each_call(self):
        self.assertEqual(shown(lambda: load("regions").__exit__(self.TOTALS)), [
            "REGION  CALLS  INCOMPLETE        US  page-faults   cycles",
            "run         1           0  500000.0         70.0        -",
            "pa?rse      4           1     250.0          1.5  ~1000.0",
            "\u6b8b\u308a        0           2         -            -        -",
            "an empty pass counts 0 page-faults, 1062 task-clock"])

    def test_sums_of_an_interval(self):
        self.assertEqual(shown(lambda: load("regions", "--sum").__interval__(self.TOTALS)), [
            "REGION  CALLS  INCOMPLETE        US  page-faults  cycles",
            "run         1           0  500000.0           70       -",
            "pa?rse      4           1    1000.0            6   ~4000",
            "\u6b8b\u308a        0           2       0.0            0       -",
            ""])


class TestSyscount(unittest.TestCase):
    def feed(self, *arguments):
        script = load("syscount", *arguments)
        for comm, number in [("cat", 0)] * 3 + [("cat", 1)] * 2 + [("sh", 999)]:
            script.raw_syscalls__sys_enter(event(_comm=comm, id=number))
        return script

    def test_table(self):
        self.assertEqual(shown(self.feed().__exit__), [
            "COMM             SYSCALL                   CALLS",
            "cat              read                          3",
            "cat              write                         2",
            "sh               #999                          1"])

    def test_top(self):
        self.assertEqual(shown(self.feed("--top", "1").__exit__)[1:], [
            "cat              read                          3",
            "(others)                                       3"])

    def test_interval_starts_anew(self):
        script = self.feed()
        self.assertEqual(len(shown(script.__interval__)), 5)
        self.assertEqual(shown(script.__exit__), [])


class TestRunqlat(unittest.TestCase):
    def switch(self, script, time, prev_pid, next_pid, prev_state=1, next_comm="x"):
        script.sched__sched_switch(event(_time=time, prev_pid=prev_pid, next_pid=next_pid, prev_state=prev_state,
                                         next_comm=next_comm))

    def histograms(self, script):
        return {comm: dict(histogram) for comm, histogram in script.histograms.items()}

    def test_wait_after_a_wakeup(self):
        script = load("runqlat")
        script.sched__sched_wakeup(event(_time=0, pid=7))
        script.sched__sched_wakeup(event(_time=4 * US, pid=7))
        script.sched__sched_wakeup_new(event(_time=5 * US, pid=8))
        self.switch(script, 5 * US, 1, 7, next_comm="a")
        self.switch(script, 5 * US + 999, 7, 8, next_comm="b")
        self.assertEqual(self.histograms(script), {"a": {3: 1}, "b": {0: 1}})

    def test_wait_after_it_was_taken_off_a_cpu(self):
        script = load("runqlat")
        self.switch(script, 0, 7, 8, prev_state=0x100)
        self.switch(script, 1 * US, 8, 7, prev_state=0)
        self.switch(script, 3 * US, 7, 8, prev_state=1)
        self.assertEqual(self.histograms(script), {"x": {1: 1, 2: 1}})
        self.assertEqual(script.since, {})

    def test_idle_does_not_wait(self):
        script = load("runqlat")
        self.switch(script, 0, 0, 7, prev_state=0)
        self.switch(script, 1 * US, 7, 0)
        self.assertEqual(self.histograms(script), {})

    def test_histogram(self):
        script = load("runqlat", "--comm", "a")
        script.histograms["a"].update({0: 1, 2: 40})
        script.histograms["b"].update({0: 1})
        self.assertEqual(shown(script.__exit__), [
            "a", "              usecs : count    distribution",
            "       0 -> 0       : 1        |*                                       |",
            "       1 -> 1       : 0        |                                        |",
            "       2 -> 3       : 40       |****************************************|", ""])


class TestSyslat(unittest.TestCase):
    def call(self, script, thread, number, began, ended, ret=0):
        script.raw_syscalls__sys_enter(event(common_pid=thread, id=number, _time=began))
        script.raw_syscalls__sys_exit(event(common_pid=thread, id=number, ret=ret, _time=ended))

    def test_table_by_time(self):
        script = load("syslat")
        self.call(script, 7, 1, 0, 3 * US)
        self.call(script, 7, 0, 0, 2 * US, ret=-4095)
        self.call(script, 8, 0, 0, 4 * US, ret=-4096)
        self.assertEqual(shown(script.__exit__), [
            "SYSCALL                   CALLS    ERRORS    TOTAL ms      AVG us      MAX us",
            "read                          2         1       0.006       3.000       4.000",
            "write                         1         0       0.003       3.000       3.000"])

    def test_call_without_both_ends_is_left_out(self):
        script = load("syslat")
        script.raw_syscalls__sys_exit(event(common_pid=7, id=0, ret=0, _time=5))
        script.raw_syscalls__sys_enter(event(common_pid=7, id=0, _time=6))
        script.__lost__(6, 9)
        script.raw_syscalls__sys_exit(event(common_pid=7, id=0, ret=0, _time=9))
        self.assertEqual(shown(script.__exit__), [])


class TestExecsnoop(unittest.TestCase):
    def test_parent_is_who_forked_last(self):
        script = load("execsnoop")
        for parent, comm in (5, "a"), (6, "b"):
            script.sched__sched_process_fork(event(_pid=parent, parent_comm=comm, child_pid=9))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            script.sched__sched_process_exec(event(_time=4 * US, pid=9, filename="/bin/true"))
            script.sched__sched_process_exec(event(_time=6 * US, pid=9, filename="/bin/false"))
        script.sched__sched_process_exit(event(pid=9))
        self.assertEqual(script.parents, {})
        self.assertEqual(output.getvalue().splitlines(), [
            "    SECONDS      PID     PPID  PARENT           PROGRAM",
            "   0.000000        9        6  b                /bin/true",
            "   0.000002        9        6  b                /bin/false"])


if __name__ == "__main__":
    unittest.main()
