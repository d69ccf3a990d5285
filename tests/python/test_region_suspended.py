# SPDX-License-Identifier: MIT
"""Regions in generators, coroutines and tasks: what runs while they are suspended is not counted."""

import asyncio
import contextlib
import cProfile
import io
import os
import subprocess
import sys
import time
import unittest
import weakref

import perfscope
from pages import Pages, RegionTestCase, nr_descriptors, resident_kb


LATE = """
import sys, time
import perfscope
perfscope.configure(["task-clock"])
sys.modules.pop("contextlib", None)  # as in a program that has not loaded it
with perfscope.region("first"):
    pass
print("contextlib" in sys.modules)
import contextlib
@contextlib.contextmanager
def helper():
    with perfscope.region("work"):
        yield
with helper():
    end = time.thread_time_ns() + 10_000_000
    while time.thread_time_ns() < end:
        pass
total = perfscope.regions()["work"]
print(total.calls, total.incomplete, total.values["task-clock"] > 9_000_000)
"""


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
            self.assertEqual([calls, incomplete], [1, 0], told)
            self.assert_nearly(faults, nr)

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
        self.assert_nearly(total.values["page-faults"], 7)
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

    def test_a_function_that_passes_the_region_inside_leaves_it_to_the_generator(self):
        def plain():
            with perfscope.region("work"):
                self.pages.touch(3)

        @contextlib.contextmanager
        def helper():
            with perfscope.region("work"):
                yield

        def helped():
            with helper():
                plain()
                self.pages.touch(3)

        def produce():
            with perfscope.region("work"):
                plain()
                helped()
                yield
                self.pages.touch(2)
        self.consume(produce())
        perfscope.reset()
        self.consume(produce())
        self.assertEqual(self.told(), (4, 0, 11))

    def test_a_decorated_function_of_a_decorated_coroutine(self):
        @perfscope.region("work")
        def plain():
            self.pages.touch(3)

        @perfscope.region("work")
        async def task():
            plain()
            await asyncio.sleep(0)

        async def main():
            asyncio.get_running_loop().call_soon(self.pages.touch, 50)
            await task()
        asyncio.run(main())
        perfscope.reset()
        asyncio.run(main())
        self.assertEqual(self.told(), (2, 0, 3))

    def test_what_a_context_manager_begins_is_of_the_coroutine_that_has_the_with(self):
        pages = self.pages

        class Passing:
            def __enter__(self):
                self.passing = perfscope.region("work")
                self.passing.__enter__()

            def __exit__(self, *exception):
                self.passing.__exit__(*exception)

        class PassingLater(Passing):
            async def __aenter__(self):
                await asyncio.sleep(0)
                self.__enter__()
                await asyncio.sleep(0)

            async def __aexit__(self, *exception):
                await asyncio.sleep(0)
                self.__exit__(*exception)

        class Generating:
            def __enter__(self):
                self.generator = self.passing()
                next(self.generator)

            def __exit__(self, *exception):
                next(self.generator, None)

            def passing(self):
                with perfscope.region("work"):
                    yield

        def plain():
            with Passing():
                pages.touch(2)

        async def work():
            pages.touch(1)
            plain()
            await asyncio.sleep(0)
            pages.touch(4)

        async def task(manager):
            if hasattr(manager, "__aenter__"):
                async with manager:
                    await work()
            else:
                with manager:
                    await work()
            pages.touch(50)

        async def main(make):
            await asyncio.gather(*(task(make()) for _ in range(3)))

        for make in (Passing, PassingLater, Generating):
            with self.subTest(make=make.__name__):
                asyncio.run(main(make))
                perfscope.reset()
                asyncio.run(main(make))
                calls, incomplete, faults = self.told()
                self.assertEqual([calls, incomplete], [6, 0])
                self.assertEqual(faults, 21)
                self.assertEqual(perfscope.regions()["work"].open, 0)

    def test_a_pass_that_one_coroutine_begins_and_another_ends_is_incomplete(self):
        kept = []

        async def begin():
            pages = Pages(1)
            kept.append(weakref.ref(pages))
            perfscope.region("work").__enter__()

        async def end():
            perfscope.region("work").__exit__(None, None, None)

        async def task():
            await begin()
            await asyncio.sleep(0)
            await end()

        async def main():
            for _ in range(3):
                asyncio.get_running_loop().call_soon(self.pages.touch, 50)
                await task()
        asyncio.run(main())
        self.assertEqual(self.told(), (0, 3, 0))
        self.assertEqual(perfscope.regions()["work"].open, 0)
        self.assertEqual([pages() for pages in kept], [None] * 3)  # nothing keeps the frame

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

    def test_many_that_are_suspended_at_once_cost_no_more_each(self):
        def produce():
            with perfscope.region("work"):
                yield
        def each_ns(nr):
            start = time.thread_time_ns()
            generators = [produce() for _ in range(nr)]
            for generator in generators:
                next(generator)
            for generator in generators:
                next(generator, None)
            return (time.thread_time_ns() - start) / nr
        few, many = (min(each_ns(nr) for _ in range(3)) for nr in (5000, 100000))
        self.assertLess(many, 2.5 * few)
        self.assertEqual(self.told()[:2], (315000, 0))

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

    def test_helpers_of_contextlib_are_known_when_it_is_loaded_later(self):
        run = subprocess.run([sys.executable, "-S", "-c", LATE], env=dict(os.environ, PYTHONPATH=os.path.dirname(perfscope.__file__)),
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual([run.stdout, run.stderr], ["False\n1 0 True\n", ""])

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
        self.assertEqual([calls, incomplete], [1, 0])
        self.assert_nearly(faults, 5)

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


if __name__ == "__main__":
    unittest.main()
