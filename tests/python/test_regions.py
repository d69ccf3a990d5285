# SPDX-License-Identifier: MIT
"""Regions in Python: what they count, exactly, whatever suspends, nests, forks or raises inside."""

import asyncio
import contextlib
import cProfile
import functools
import inspect
import io
import json
import mmap
import os
import subprocess
import sys
import threading
import time
import unittest

import perfscope
from pages import CountingTestCase, Pages, nr_descriptors, resident_kb

EVENTS = ("page-faults", "task-clock", "context-switches")


class RegionTestCase(CountingTestCase):
    def setUp(self):
        super().setUp()
        perfscope.configure(EVENTS)
        self.pages = Pages(4000)
        with perfscope.region("warm"):
            self.pages.touch(1)
        perfscope.regions()
        perfscope.reset()

    def told(self, name="work"):
        """Calls, incomplete passes and page faults of @name."""
        total = perfscope.regions()[name]
        return total.calls, total.incomplete, total.values["page-faults"]


class TestWith(RegionTestCase):
    def test_fresh_pages_are_counted_exactly(self):
        for nr in (1, 100, 1000):
            with perfscope.region("work"):
                self.pages.touch(nr)
        self.assertEqual(self.told(), (3, 0, 1101))
        total = perfscope.regions()["work"]
        self.assertEqual(total.coverage, {event: 1.0 for event in EVENTS})
        self.assertEqual(total.scaled["page-faults"], 1101.0)

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
            self.assertIn(born, differences)

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


class TestSuspended(RegionTestCase):
    def run_tasks(self, work, sizes):
        async def main():
            await asyncio.gather(*(work(f"task{nr}", nr) for nr in sizes))
        asyncio.run(main())
        perfscope.reset()
        asyncio.run(main())
        return {nr: self.told(f"task{nr}") for nr in sizes}

    def check_tasks(self, told):
        for nr, (calls, incomplete, faults) in told.items():
            # The loop itself may get a page from the allocator.
            self.assertEqual([calls, incomplete, faults - nr in range(3)], [1, 0, True], told)

    def test_tasks_that_interleave_count_each_its_own(self):
        async def work(name, nr):
            pages = Pages(nr)
            with perfscope.region(name):
                for _ in range(nr):
                    pages.touch(1)
                    await asyncio.sleep(0)
        self.check_tasks(self.run_tasks(work, (50, 100, 200)))

    def test_what_runs_while_a_task_sleeps_is_not_counted(self):
        async def sleeper():
            with perfscope.region("work"):
                self.pages.touch(3)
                await asyncio.sleep(0.05)
                self.pages.touch(4)

        async def main():
            task = asyncio.create_task(sleeper())
            await asyncio.sleep(0)
            self.pages.touch(1000)
            start = time.thread_time_ns()
            while time.thread_time_ns() < start + 20_000_000:
                pass
            await task
        asyncio.run(main())
        total = perfscope.regions()["work"]
        self.assertIn(total.values["page-faults"] - 7, range(4))
        self.assertLess(total.values["task-clock"], 10_000_000)

    def test_a_task_that_is_cancelled_leaves_it(self):
        async def sleeper():
            with perfscope.region("work"):
                await asyncio.sleep(60)

        async def main():
            task = asyncio.create_task(sleeper())
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        asyncio.run(main())
        self.assertEqual(self.told()[:2], (1, 0))

    def consume(self, generator):
        for _ in generator:
            self.pages.touch(9)

    def test_the_consumer_of_a_generator_is_not_counted(self):
        def produce():
            with perfscope.region("work"):
                for _ in range(10):
                    self.pages.touch(2)
                    yield
        self.consume(produce())
        perfscope.reset()
        self.consume(produce())
        self.assertEqual(self.told(), (1, 0, 20))

    def test_a_function_passes_a_region_in_which_a_generator_is_suspended(self):
        def produce():
            with perfscope.region("work"):
                self.pages.touch(1)
                yield
                self.pages.touch(2)

        def plain():
            with perfscope.region("work"):
                self.pages.touch(5)

        def run():
            plain()
            generator = produce()
            next(generator)
            plain()
            self.pages.touch(50)
            list(generator)
        run()
        perfscope.reset()
        run()
        self.assertEqual(self.told(), (3, 0, 13))

    def test_a_region_that_a_function_leaves_is_not_the_generators_any_more(self):
        def leave():
            perfscope.region("work").__exit__(None, None, None)

        def produce():
            perfscope.region("work").__enter__()
            self.pages.touch(2)
            leave()
            self.pages.touch(30)
            yield
            self.pages.touch(30)
        self.consume(produce())
        perfscope.reset()
        self.consume(produce())
        self.assertEqual(self.told(), (1, 0, 2))

    def test_yield_from_and_send(self):
        def inner():
            self.pages.touch((yield))
            return 5

        def outer():
            with perfscope.region("work"):
                return (yield from inner())
        def run():
            generator = outer()
            next(generator)
            self.pages.touch(100)
            with self.assertRaises(StopIteration) as caught:
                generator.send(6)
            return caught.exception.value
        run()
        perfscope.reset()
        self.assertEqual([run(), self.told()], [5, (1, 0, 6)])

    def test_a_generator_that_is_closed_or_dropped_leaves_it(self):
        def produce():
            with perfscope.region("work"):
                yield
                self.fail("not reached")
        for end in (lambda generator: generator.close(), lambda generator: None):
            generator = produce()
            next(generator)
            end(generator)
            del generator
        self.assertEqual(self.told()[:2], (2, 0))

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "ASan keeps freed memory for a while")
    def test_many_passes_that_were_suspended_leave_nothing(self):
        def produce():
            with perfscope.region("work"):
                yield
        decorated = perfscope.region("decorated")(asyncio.sleep)
        async def work(nr):
            for _ in range(nr):
                with perfscope.region("task"):
                    await decorated(0)
                next(produce())  # dropped while it is suspended
        asyncio.run(work(1000))
        before = resident_kb(), nr_descriptors()
        asyncio.run(work(int(os.environ.get("NR_PASSES", "20000"))))
        self.assertLess(resident_kb() - before[0], 200)
        self.assertEqual(nr_descriptors(), before[1])

    def test_an_exception_thrown_into_a_generator(self):
        def produce():
            with perfscope.region("work"):
                with contextlib.suppress(KeyError):
                    yield
                self.pages.touch(3)
                yield
        def run():
            generator = produce()
            next(generator)
            self.pages.touch(50)
            generator.throw(KeyError())
            generator.close()
        run()
        perfscope.reset()
        run()
        self.assertEqual(self.told(), (1, 0, 3))

    def test_helpers_of_contextlib_belong_to_the_body(self):
        @contextlib.contextmanager
        def helper():
            with perfscope.region("work"):
                yield

        def in_helper(nr):
            with helper():
                self.pages.touch(nr)

        def in_stack(nr):
            with contextlib.ExitStack() as stack:
                stack.enter_context(perfscope.region("work"))
                self.pages.touch(nr)
        for run in (in_helper, in_stack):
            run(1)
            perfscope.reset()
            run(11)
            self.assertEqual(self.told(), (1, 0, 11))

    def test_helpers_of_contextlib_in_a_coroutine_are_paused_with_it(self):
        @contextlib.asynccontextmanager
        async def helper():
            with perfscope.region("work"):
                yield

        async def work():
            async with helper():
                self.pages.touch(5)
                await asyncio.sleep(0.02)

        async def main():
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            self.pages.touch(500)
            await task
        asyncio.run(main())
        perfscope.reset()
        asyncio.run(main())
        calls, incomplete, faults = self.told()
        self.assertEqual([calls, incomplete, faults - 5 in range(3)], [1, 0, True])

    def test_parts_of_a_pass_are_told_when_it_ends_and_never_where_it_does_not(self):
        def parts():
            with perfscope.region("work"):
                self.pages.touch(3)
                yield
                self.pages.touch(4)
                yield
        list(parts())
        perfscope.reset()
        generator = parts()
        next(generator)
        next(generator)
        self.assertNotIn(True, [bool(total.calls or any(total.values.values())) for total in perfscope.regions().values()])
        text = io.StringIO()
        perfscope.report(text)
        self.assertIn("work: 1 pass open", text.getvalue().splitlines())
        generator.close()  # while it is suspended, which nothing tells before 3.12
        whole = parts()
        list(whole)
        calls, incomplete, faults = self.told()
        self.assertEqual([calls + incomplete, faults], [2, 7 * calls])
        perfscope.reset()
        list(parts())
        self.assertEqual(self.told(), (1, 0, 7))

    def test_a_profiler_that_is_there_goes_on(self):
        async def work():
            with perfscope.region("work"):
                await asyncio.sleep(0)
        profiler = cProfile.Profile()
        profiler.enable()
        asyncio.run(work())
        len("after")
        profiler.disable()
        names = {entry.code for entry in profiler.getstats() if isinstance(entry.code, str)}
        self.assertTrue(any("len" in name for name in names), names)
        self.assertEqual(self.told()[:2], (1, 0))
        self.assertIsNone(sys.getprofile())


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
            self.assertEqual([calls, incomplete, faults - nr in range(3)], [1, 0, True], name)

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


class TestTotals(RegionTestCase):
    def test_names_that_are_none(self):
        for name, kind in (("", ValueError), ("run", ValueError), ("x" * 64, ValueError), (b"x", TypeError), ("a\0b", ValueError)):
            with self.subTest(name=name):
                self.assertRaises(kind, perfscope.region, name)
        self.assertIs(perfscope.region("x" * 63), perfscope.region("x" * 63))
        regions = {name: perfscope.region(name) for name in map(str, range(1000))}
        self.assertEqual([(name, region.name) for name, region in regions.items()], [(str(nr),) * 2 for nr in range(1000)])
        self.assertTrue(all(perfscope.region(str(nr)) is perfscope.region(name) is regions[name] for nr, name in enumerate(regions)))
        self.assertEqual(perfscope.region("ä").name, "ä")

    def test_reset_and_configure_start_from_zero(self):
        for again in (perfscope.reset, lambda: perfscope.configure("page-faults")):
            with perfscope.region("work"):
                self.pages.touch(5)
            again()
            self.assertEqual(perfscope.regions().get("work", perfscope.PerfEventTotals()).calls, 0)
        self.assertRaisesRegex(ValueError, "did you mean page-faults", perfscope.configure, "page-fault")

    def test_a_counter_that_is_refused_reads_none_and_says_why(self):
        perfscope.configure(["page-faults", "cycles"])
        with perfscope.region("work"):
            self.pages.touch(2)
        if perfscope.regions()["work"].values["cycles"] is not None:
            self.skipTest("this machine has a hardware PMU")
        out = io.StringIO()
        perfscope.report(out)
        self.assertIn("cycles: no hardware PMU here", out.getvalue())
        self.assertTrue(out.getvalue().endswith("\nan empty pass counts 0 page-faults\n"), out.getvalue())
        self.assertRaisesRegex(perfscope.PerfEventError, "cycles.*no hardware PMU", perfscope.configure, ["cycles"], strict=True)

    def test_a_counter_that_is_refused_has_no_value_without_a_pass_either(self):
        perfscope.configure(["page-faults", "cycles"])
        perfscope.region("work").__exit__(None, None, None)
        out = io.StringIO()
        perfscope.report(out, format="json")
        told = json.loads(out.getvalue())
        if "cycles" not in told["reasons"]:
            self.skipTest("this machine has a hardware PMU")
        self.assertEqual(told["regions"]["work"]["incomplete"], 1)
        self.assertEqual(told["regions"]["work"]["values"], {"page-faults": 0, "cycles": None})
        self.assertEqual(told["overhead"], {"page-faults": 0, "cycles": None})
        # Without anything left to count it is an error.
        self.assertRaisesRegex(perfscope.PerfEventError, "cycles: no hardware PMU", perfscope.configure, "cycles")

    def test_cost_of_an_empty_pass_is_taken_off(self):
        def empty_ns(subtract):
            perfscope.configure("task-clock", subtract=subtract)
            for _ in range(400):
                with perfscope.region("work"):
                    pass
            return perfscope.regions()["work"].values["task-clock"] / 400
        # The least of some rounds: on a busy machine most cost more than what was calibrated.
        whole, rest = (min(empty_ns(subtract) for _ in range(10)) for subtract in (False, True))
        self.assertGreater(whole, 100)
        self.assertLess(rest, whole / 2)

    def test_report_is_a_table_or_json(self):
        with perfscope.region("work"):
            self.pages.touch(12)
        table, text = io.StringIO(), io.StringIO()
        perfscope.report(table)
        perfscope.report(text, format="json")
        head, row, *rest = table.getvalue().splitlines()
        self.assertEqual(head.split(), ["region", "calls", "seconds", *EVENTS])
        self.assertEqual([row.split()[i] for i in (0, 1, 3)], ["work", "1", "12"])
        self.assertRegex(rest[-1], r"^an empty pass counts 0 page-faults, \d+ task-clock, 0 context-switches$")
        told = json.loads(text.getvalue())
        self.assertEqual([told["events"], told["regions"]["work"]["values"]["page-faults"]], [list(EVENTS), 12])
        self.assertRaisesRegex(ValueError, "'table' or 'json', not 'xml'", perfscope.report, table, format="xml")

    def test_counters_that_do_not_fit_together_are_told(self):
        text = io.StringIO()
        perfscope.report(text, format="json")
        told = json.loads(text.getvalue())
        self.assertEqual(told["groups"], 1)
        table = sys.modules["perfscope.region_tools"].table
        word = ("the counters do not fit on the PMU together: they are counted in 3 groups, each read at a moment of its own")
        for nr in (0, 1, 3):
            self.assertEqual(word in table({**told, "regions": {}, "groups": nr}), nr == 3)

    def test_a_name_cannot_break_the_table(self):
        with perfscope.region("two\nlines\x1b[31m"):
            pass
        table = io.StringIO()
        perfscope.report(table)
        self.assertIn("\ntwo?lines?[31m  ", table.getvalue())

    def test_a_report_has_names_that_any_terminal_takes(self):
        for name in ("caf\udce9", "a\x1b[31m\n", "\u00e4 b"):
            perfscope.region(name).__exit__(None, None, None)
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        perfscope.report(out)
        out.seek(0)
        lines = out.read().splitlines()
        self.assertEqual([line[:7].rstrip() for line in lines[1:4]], ["caf?", "a?[31m?", "\u00e4 b"])
        self.assertEqual(lines[4:7], ["caf?: 1 pass incomplete", "a?[31m?: 1 pass incomplete", "\u00e4 b: 1 pass incomplete"])


class TestInactive(unittest.TestCase):
    def test_a_report_says_that_nobody_counts(self):
        source = "import perfscope\nwith perfscope.region('a'): pass\nperfscope.report()"
        run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "no region is counted: call configure() first\n")

    def test_nothing_is_counted_where_nobody_looks(self):
        source = "import os, perfscope\nfiles = lambda: os.listdir('/proc/self/fd')\nbefore = files()\n" \
                 "with perfscope.region('a'): pass\nprint(perfscope.regions(), perfscope.reset(), files() == before)"
        run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        self.assertEqual([run.stdout, run.stderr], ["{} None True\n", ""])


if __name__ == "__main__":
    unittest.main()
