# SPDX-License-Identifier: MIT
"""Regions in Python: what they count, exactly, whatever nests, forks or raises inside."""

import asyncio
import functools
import inspect
import mmap
import os
import threading
import time
import unittest

import perfscope
from pages import EVENTS, SANITIZER_PAGES, Pages, RegionTestCase, nr_descriptors, resident_kb


class TestWith(RegionTestCase):
    def test_fresh_pages_are_counted_exactly(self):
        for nr in (1, 100, 1000):
            with perfscope.region("work"):
                self.pages.touch(nr)
        self.assertEqual(self.told(), (3, 0, 1101))
        total = perfscope.regions()["work"]
        self.assertEqual(total.coverage, {event: 1.0 for event in EVENTS})
        self.assertEqual(total.scaled["page-faults"], float(total.values["page-faults"]))

    def test_nested_regions_count_in_both(self):
        def run():
            with perfscope.region("outer"):
                self.pages.touch(10)
                with perfscope.region("inner"):
                    self.pages.touch(5)
                self.pages.touch(1)
        run()  # a thread's first pass of a name makes room for its sums
        perfscope.reset()
        run()
        self.assertEqual([self.told("outer"), self.told("inner")], [(1, 0, 16), (1, 0, 5)])

    def test_recursion_counts_once_in_values_and_each_time_in_calls(self):
        def recurse(depth):
            with perfscope.region("work"):
                self.pages.touch(1)
                if depth > 1:
                    recurse(depth - 1)
        recurse(40)  # frames lie in pages that are there afterwards
        perfscope.reset()
        recurse(40)
        self.assertEqual(self.told(), (40, 0, 40))

    def test_an_exception_leaves_it_and_goes_on(self):
        def run():
            try:
                with perfscope.region("work"):
                    self.pages.touch(7)
                    raise error
            except ValueError as caught:
                self.assertIs(caught, error)
            self.pages.touch(3)
        error = ValueError("mine")
        run()  # a traceback is made
        perfscope.reset()
        run()
        self.assertEqual(self.told(), (1, 0, 7))

    def test_threads_count_each_their_own(self):
        def work(nr):
            with perfscope.region("warm"):
                pass
            with perfscope.region("work"):
                pages[nr].touch(nr)
        pages = {nr: Pages(nr) for nr in (10, 20, 30)}
        threads = [threading.Thread(target=work, args=(nr,)) for nr in pages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.told(), (3, 0, 60))

    def test_a_thread_that_is_older_than_configure_counts_anew(self):
        steps = [threading.Event() for _ in range(4)]
        def work():
            for nr, go, done in (30, *steps[:2]), (20, *steps[2:]):
                go.wait()
                with perfscope.region("warm"):
                    pass
                with perfscope.region("work"):
                    pages.touch(nr)
                done.set()
        def step(go, done):
            go.set()
            done.wait()
            return self.told()
        pages = Pages(50)
        thread = threading.Thread(target=work)
        thread.start()
        first = step(*steps[:2])
        perfscope.configure("page-faults")
        second = step(*steps[2:])
        thread.join()
        self.assertEqual([first, second, self.told()], [(1, 0, 30), (1, 0, 20), (1, 0, 20)])

    def test_threads_born_in_a_pass_count_in_it_when_inherited(self):
        pages = Pages(10000)
        def faults(nr):
            def run():
                with perfscope.region("work"):
                    thread = threading.Thread(target=pages.touch, args=[nr])
                    thread.start()
                    thread.join()
            run()
            perfscope.reset()
            run()
            return self.told()[2]
        for inherit, born in (False, 0), (True, 500):
            perfscope.configure("page-faults", inherit=inherit)
            # What a thread needs itself is the same each time, but for a page now and then.
            differences = [faults(500) - faults(0) for _ in range(5)]
            self.assertLessEqual(min(abs(difference - born) for difference in differences), SANITIZER_PAGES)

    def test_user_only_leaves_the_kernel_out(self):
        def faults(nr):
            """Of @nr fresh pages that the kernel writes to, and one that the program does."""
            with open("/dev/zero", "rb", buffering=0) as file, mmap.mmap(-1, (nr + 1) * mmap.PAGESIZE) as room:
                room.madvise(mmap.MADV_NOHUGEPAGE)
                with memoryview(room) as view, view[mmap.PAGESIZE:] as rest, perfscope.region("work"):
                    view[0] = 1
                    file.readinto(rest)
            return self.told()
        for user_only, expected in (False, 301), (True, 1):
            perfscope.configure("page-faults", user_only=user_only)
            faults(300)
            perfscope.reset()
            self.assertEqual(faults(300), (1, 0, expected))

    def test_with_finds_the_same_methods_each_time(self):
        region = perfscope.region("work")
        self.assertIs(region.__enter__, region.__enter__)
        self.assertIs(region.__exit__, region.__exit__)
        self.assertIsNot(region.__enter__, perfscope.region("warm").__enter__)
        self.assertIs(type(region).__enter__(region), region)
        self.assertIsNone(type(region).__exit__(region, None, None, None))
        self.assertEqual(self.told()[:2], (1, 0))
        for method in (type(region).__enter__, type(region).__exit__):
            self.assertRaises(TypeError, method, 5)
        self.assertRaises(TypeError, vars(type(region))["__enter__"].__get__, 5)

    def test_totals_by_thread(self):
        go = threading.Event()
        def work():
            with perfscope.region("work"):
                tids.append(threading.get_native_id())
            go.wait()
        tids = []
        thread = threading.Thread(target=work)
        thread.start()
        while not tids:
            time.sleep(0.001)
        with perfscope.region("work"):
            pass
        told = perfscope.regions(by_thread=True)["work"]
        go.set()
        thread.join()
        self.assertEqual({tid: total.calls for tid, total in told.items()},
                         {tids[0]: 1, threading.get_native_id(): 1})

    def test_each_sleep_switches(self):
        with perfscope.region("work"):
            for _ in range(20):
                time.sleep(0.001)
        total = perfscope.regions()["work"]
        self.assertGreaterEqual(total.values["context-switches"], 20)
        self.assertGreaterEqual(total.seconds, 0.02)

    def test_task_clock_is_the_thread_cpu_clock(self):
        def difference():
            perfscope.reset()
            with perfscope.region("work"):
                start = end = time.thread_time_ns()
                while end < start + 5_000_000:
                    end = time.thread_time_ns()
            return abs(perfscope.regions()["work"].values["task-clock"] / (end - start) - 1)
        # A hypervisor that takes the CPU away is in task-clock, and not in the thread's clock: the least of many short rounds.
        self.assertLess(min(difference() for _ in range(100)), 0.02)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "ASan keeps freed memory for a while")
    def test_a_million_passes_leave_nothing(self):
        def run(nr):
            for _ in range(nr):
                with perfscope.region("work"):
                    pass
        run(1000)
        before = resident_kb(), nr_descriptors()
        run(int(os.environ.get("NR_PASSES", "1000000")))
        self.assertLess(resident_kb() - before[0], 200)
        self.assertEqual(nr_descriptors(), before[1])

    def test_a_child_of_fork_counts_for_itself(self):
        with perfscope.region("work"):
            self.pages.touch(5)
            child = os.fork()
            if not child:
                status = 1
                try:
                    status = 0 if perfscope.regions().get("work") is None else 2
                    perfscope.configure(EVENTS)
                    with perfscope.region("child"):
                        pass
                    status = status or 3 * (perfscope.regions()["child"].calls != 1)
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.told()[:2], (1, 0))


class TestDecorator(RegionTestCase):
    def test_functions_keep_what_they_are(self):
        @perfscope.region("work")
        def plain(nr, *, more=0):
            """Touch."""
            self.pages.touch(nr + more)
            return nr
        self.assertEqual([plain.__name__, plain.__doc__, list(inspect.signature(plain).parameters)],
                         ["plain", "Touch.", ["nr", "more"]])
        plain(3, more=2)  # pages of the interpreter itself that this way takes are there afterwards
        perfscope.reset()
        self.assertEqual([plain(3, more=2), self.told()], [3, (1, 0, 5)])

    def test_generators_and_coroutines(self):
        @perfscope.region("generator")
        def generator():
            for _ in range(4):
                self.pages.touch(2)
                yield 1

        @perfscope.region("coroutine")
        async def coroutine():
            self.pages.touch(3)
            await asyncio.sleep(0)
            return 7

        @perfscope.region("asyncgen")
        async def asyncgen():
            for nr in range(4):
                self.pages.touch(5)
                await asyncio.sleep(0)
                yield nr

        async def main():
            got = []
            async for item in asyncgen():
                self.pages.touch(100)
                got.append(item)
            return [await coroutine(), got, sum(generator())]
        self.assertTrue(inspect.isgeneratorfunction(generator) and inspect.iscoroutinefunction(coroutine) and
                        inspect.isasyncgenfunction(asyncgen))
        asyncio.run(main())
        perfscope.reset()
        self.assertEqual(asyncio.run(main()), [7, [0, 1, 2, 3], 4])
        self.assertEqual(self.told("generator"), (1, 0, 8))
        for name, nr in (("coroutine", 3), ("asyncgen", 20)):
            calls, incomplete, faults = self.told(name)
            self.assertEqual([calls, incomplete], [1, 0], name)
            self.assert_nearly(faults, nr)

    def test_what_is_no_function_is_refused(self):
        work = perfscope.region("work")
        for thing, reason in ((5, r"^region\('work'\) decorates a function, not a int$"),
                              (type("Parser", (), {}), "not the class Parser: decorate its methods$"),
                              (property(len), "not a property: write it below @property$"),
                              (functools.cached_property(len), "not a cached_property: write it below @cached_property$")):
            with self.subTest(reason):
                self.assertRaisesRegex(TypeError, reason, work, thing)
        self.assertRaises(TypeError, work)
        self.assertRaises(TypeError, work, len, name="x")

    def test_methods_of_each_kind_whatever_decorator_comes_first(self):
        pages, work = self.pages, perfscope.region("work")

        class Parser:
            @work
            def plain(self):
                pages.touch(1)

            @work
            @classmethod
            def outside(cls, nr):
                pages.touch(nr)
                return cls

            @classmethod
            @work
            def inside(cls, nr):
                pages.touch(nr)
                return cls

            @work
            @staticmethod
            def static(nr):
                pages.touch(nr)
                return nr

        def call_all(parser):
            parser.plain()
            return [parser.outside(2), Parser.outside(3), parser.inside(4), parser.static(5), Parser.static(6)]
        expected = [Parser, Parser, Parser, 5, 6]
        self.assertEqual(call_all(Parser()), expected)
        perfscope.reset()
        self.assertEqual(call_all(Parser()), expected)
        self.assertEqual(self.told(), (6, 0, 21))


if __name__ == "__main__":
    unittest.main()
