# SPDX-License-Identifier: MIT
"""Processes and threads of --run that begin and end in unusual ways: each counts its own, all of it, and nothing of another's."""

import os
import sys
import unittest

from livetest import BUILD, skip_unless_root
from pythonregions import PythonTestCase
from test_regions import RegionTestCase

PROGRAM = os.path.join(BUILD, "tests", "region_births")

# Ways to a child that Python is not told of; the GIL is kept.
PYTHON = """
import ctypes
libc = ctypes.PyDLL(None)
births = {"_Fork": libc._Fork, "clone": lambda: libc.syscall(ctypes.c_long(CLONE), signal.SIGCHLD, 0, 0, 0, 0)}
work(1, "warm")
for _ in range(6):
    with perfscope.region("parent"):
        child = births[sys.argv[1]]()
        if not child:
            work(1, "warm")
            work(5, "child")
            work(5, "child")
            os._exit(0)
        os.waitpid(child, 0)
""".replace("CLONE", "56" if os.uname().machine == "x86_64" else "220")


class TestChildren(RegionTestCase):
    def test_each_way_to_a_child(self):
        for way in ("fork", "_Fork", "clone", "vfork"):
            totals = self.observe(PROGRAM, way, 20)
            self.assertEqual([way, self.faults(totals, "child")], [way, [20, 0, 100]])
            self.assertEqual([way, totals["parent"]["calls"], totals["parent"]["incomplete"]], [way, 20, 0])

    def test_intervals_have_them_too(self):
        for way in ("_Fork", "vfork"):
            self.observe(PROGRAM, way, 200, options=("-i", "20"))
            told = [told["totals"].get("child", {}) for told in self.told if told["kind"] == "interval"]
            self.assertLessEqual(sum(child.get("calls", 0) for child in told), 200)
            whole = self.told[-1]["totals"]
            self.assertEqual([way, self.faults(whole, "child")], [way, [200, 0, 1000]])


class TestLife(RegionTestCase):
    """What is taken for dead while it lives loses the passes that it ends later."""

    @skip_unless_root
    def test_processes_of_a_container_that_a_program_makes(self):
        totals = self.observe(PROGRAM, "container", 40, options=("-i", "50"))
        self.assertEqual([totals["long"]["calls"], totals["long"]["incomplete"]], [40, 0])
        self.assertEqual([totals["child"]["calls"], totals["child"]["incomplete"]], [320, 0])

    def test_threads_whose_first_thread_has_ended(self):
        totals = self.observe(PROGRAM, "thread", 3, options=("-i", "50"))
        self.assertEqual([totals["long"]["calls"], totals["long"]["incomplete"]], [3, 0])
        self.assertEqual(self.faults(totals, "child"), [24, 0, 120])


class TestPython(PythonTestCase):
    def test_children_that_python_is_not_told_of(self):
        for way in ("_Fork", "clone"):
            totals = self.run_program(PYTHON, way)["totals"]
            self.assertEqual([way, totals["parent"][:2], totals["child"][:2]], [way, [6, 0], [12, 0]])
            # The interpreter's own pages are copied after a fork, in the first pass that writes to them.
            self.assertTrue(60 <= totals["child"][2] < 60 + 6 * 40, totals)


if __name__ == "__main__":
    unittest.main()
