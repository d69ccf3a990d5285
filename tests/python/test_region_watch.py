# SPDX-License-Identifier: MIT
"""Regions of suspended code where the program takes away what tells of it: never a number that is wrong."""

import asyncio
import cProfile
import sys
import threading

import perfscope
from test_regions import RegionTestCase

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
            self.assertIn(faults - 3, range(3))

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
        self.assertIn(faults - 3, range(3))
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


class TestCallables(RegionTestCase):
    def test_an_object_whose_call_is_a_coroutine(self):
        class Caller:
            async def __call__(inner):
                await asyncio.sleep(0)
                self.pages.touch(4)
        asyncio.run(perfscope.region("work")(Caller())())
        calls, incomplete, faults = self.told()
        self.assertEqual((calls, incomplete), (1, 0))
        self.assertIn(faults - 4, range(3))
