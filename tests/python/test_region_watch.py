# SPDX-License-Identifier: MIT
"""Regions of suspended code where the program takes away what tells of it: never a number that is wrong."""

import asyncio
import cProfile
import os
import subprocess
import sys
import threading
import unittest

import perfscope
from pages import SANITIZER_PAGES, RegionTestCase

# Since 3.12 the code itself tells, whatever profiles the thread.
IS_TOLD = (1, 0) if sys.version_info >= (3, 12) else (0, 1)


class TestWatch(RegionTestCase):
    def tearDown(self):
        sys.setprofile(None)
        super().tearDown()

    def run_in_two_parts(self, before, after):
        """A pass of 3 pages that is suspended while others touch 200; before and after run around its first suspension."""
        def generator():
            with perfscope.region("work"):
                self.pages.touch(1)
                before()
                yield
                after()
                self.pages.touch(1)
                yield
                self.pages.touch(1)
        for _ in generator():
            self.pages.touch(100)

    def assert_told(self):
        calls, incomplete, faults = self.told()
        self.assertEqual((calls, incomplete), IS_TOLD)
        if calls:
            self.assert_nearly(faults, 3)

    def test_another_profile_function_makes_the_pass_incomplete(self):
        self.run_in_two_parts(lambda: sys.setprofile(lambda *args: None), lambda: sys.setprofile(None))
        self.assert_told()

    def test_a_profiler_in_the_pass_makes_it_incomplete(self):
        for _ in range(2):  # the first one makes room for what the profiler keeps
            perfscope.reset()
            profiler = cProfile.Profile()
            self.run_in_two_parts(profiler.enable, profiler.disable)
        self.assert_told()

    def test_what_getprofile_gave_can_be_set_again(self):
        saved = []
        def before():
            saved.append(sys.getprofile())
            sys.setprofile(lambda *args: None)
        self.run_in_two_parts(before, lambda: sys.setprofile(saved[0]))
        self.assert_told()
        perfscope.reset()
        self.assertIsNone(sys.getprofile())
        sys.setprofile(saved[0])  # when no pass is open any more
        self.run_in_two_parts(int, int)
        calls, incomplete, faults = self.told()
        self.assertEqual((calls, incomplete), (1, 0))
        self.assert_nearly(faults, 3)
        self.assertIsNone(sys.getprofile())

    def test_a_generator_that_goes_on_in_another_thread(self):
        def generator():
            with perfscope.region("work"):
                self.pages.touch(1)
                yield
                self.pages.touch(2)
        running = generator()
        next(running)
        thread = threading.Thread(target=list, args=[running])
        thread.start()
        thread.join()
        self.assert_told()


class TestCode(RegionTestCase):
    def test_code_that_is_compiled_again_is_watched_too(self):
        source = "def generator(region):\n with region('work'):\n  yield 1\n  yield 2"
        for _ in range(3):
            scope = {}
            exec(source, scope)
            for _ in scope["generator"](perfscope.region):
                self.pages.touch(100)
        calls, incomplete, faults = self.told()
        self.assertEqual((calls, incomplete), (3, 0))
        self.assertLess(faults, 10 + SANITIZER_PAGES)


TAKEN = """
import sys
for tool in (3, 4):
    sys.monitoring.use_tool_id(tool, "other")
import perfscope
def generator():
    with perfscope.region("work"):
        yield 1
def told():
    total = perfscope.regions()["work"]
    return total.calls, total.incomplete
perfscope.configure(["page-faults"])
print(list(generator()), list(generator()), *told())
sys.monitoring.free_tool_id(3)
print(list(generator()), *told())
"""


@unittest.skipUnless(sys.version_info >= (3, 12), "no sys.monitoring")
class TestTools(unittest.TestCase):
    def test_where_no_tool_is_left_passes_are_incomplete_and_the_program_goes_on(self):
        run = subprocess.run([sys.executable, "-c", TAKEN], env=dict(os.environ, PYTHONPATH=os.path.dirname(perfscope.__file__)),
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual([run.stdout, run.stderr], ["[1] [1] 0 2\n[1] 1 2\n", ""])


class TestCallables(RegionTestCase):
    def test_an_object_whose_call_is_a_coroutine(self):
        class Caller:
            async def __call__(inner):
                await asyncio.sleep(0)
                self.pages.touch(4)
        asyncio.run(perfscope.region("work")(Caller())())
        calls, incomplete, faults = self.told()
        self.assertEqual((calls, incomplete), (1, 0))
        self.assert_nearly(faults, 4)
