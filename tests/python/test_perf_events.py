# SPDX-License-Identifier: MIT
"""perfscope.perf_events: what code written for scope_profiler.perf_events works with."""

import gc
import inspect
import os
import pydoc
import sys
import threading
import time
import unittest

import perfscope
from pages import CountingTestCase, Faults, Pages, nr_descriptors
from perfscope.perf_events import EVENTS, PerfEventError, PerfEventGroup, PerfEventTotals, validate_events

CLOCKS = ("task-clock", "page-faults", "context-switches")


class Profiler:
    """As a program for scope_profiler.perf_events has it: one group a region, totals added up by hand."""

    def __init__(self, events):
        self.events = validate_events(events)
        self.totals = {}

    def measure(self, name, function, *args):
        group = PerfEventGroup(self.events)
        group.start()
        try:
            function(*args)
        finally:
            values = group.stop()
            group.close()
        total = self.totals.setdefault(name, PerfEventTotals(0, {event: 0 for event in self.events}))
        total.calls += 1
        for event, value in values.items():
            total.values[event] += value


class TestProgram(CountingTestCase):
    def test_it_runs_with_its_import_changed(self):
        pages = Pages(2000)
        profiler = Profiler([" Page-Faults", "task-clock"])
        profiler.measure("warm", pages.touch, 10)
        for _ in range(5):
            profiler.measure("touch", pages.touch, 100)
        total = profiler.totals["touch"]
        self.assertEqual((total.calls, Faults(total.values["page-faults"])), (5, 500))
        self.assertGreater(total.values["task-clock"], 0)
        self.assertEqual(profiler.events, ("page-faults", "task-clock"))

    def test_names_are_those_of_the_module(self):
        self.assertIs(sys.modules["perfscope.perf_events"], perfscope.perf_events)
        for name in ("EVENTS", "PerfEventError", "PerfEventGroup", "PerfEventTotals", "validate_events"):
            self.assertIs(getattr(perfscope.perf_events, name), getattr(perfscope, name))
        self.assertTrue(issubclass(PerfEventError, RuntimeError))


    def test_help_shows_how_they_are_made(self):
        self.assertEqual(str(inspect.signature(PerfEventGroup)), "(events)")
        self.assertEqual(list(inspect.signature(PerfEventTotals).parameters),
                         ["calls", "values", "scaled", "coverage", "seconds", "incomplete", "open"])
        text = pydoc.render_doc(perfscope.perf_events, renderer=pydoc.plaintext)
        self.assertIn("PerfEventGroup(events)\n", text)
        self.assertRegex(text, r"PerfEventError\b")

    def test_what_a_stub_tells_of_can_be_named(self):
        self.assertIsInstance(perfscope.region("x"), perfscope.Region)


class TestNames(unittest.TestCase):
    def test_events_are_those_of_the_kernel(self):
        self.assertEqual(dict(EVENTS), {
            "cycles": (0, 0), "instructions": (0, 1), "cache-references": (0, 2), "cache-misses": (0, 3), "branches": (0, 4),
            "branch-misses": (0, 5), "cpu-clock": (1, 0), "task-clock": (1, 1), "page-faults": (1, 2),
            "context-switches": (1, 3)})
        with self.assertRaises(TypeError):
            EVENTS["mine"] = (1, 9)

    def test_names_are_normalised(self):
        self.assertEqual(validate_events(("TASK-clock", " page-faults\n")), ("task-clock", "page-faults"))
        self.assertEqual(validate_events(["cycles", "Cycles", "cycles "]), ("cycles",))
        self.assertEqual(validate_events("instructions"), ("instructions",))
        self.assertEqual(validate_events("instructions, cycles"), ("instructions", "cycles"))
        self.assertEqual(validate_events(name for name in EVENTS), tuple(EVENTS))

    def test_what_is_no_name_is_refused(self):
        for events, message in [
                ("page-fault", "unknown counter 'page-fault'; did you mean page-faults?"),
                (["task-clock", "instructons"], "unknown counter 'instructons'; did you mean instructions?"),
                ("", "no counters named"), ((), "no counters named"), ("cycles\0", "embedded null character")]:
            with self.subTest(events=events):
                with self.assertRaises(ValueError) as caught:
                    validate_events(events)
                self.assertEqual(str(caught.exception), message)
                self.assertRaises(ValueError, PerfEventGroup, events)
        self.assertRaisesRegex(TypeError, "an event is named by a str, not int", validate_events, ["cycles", 1])
        self.assertRaises(TypeError, validate_events, 7)
        self.assertRaises(TypeError, PerfEventGroup)


class TestGroup(CountingTestCase):
    def setUp(self):
        super().setUp()
        self.group = PerfEventGroup(CLOCKS)
        self.addCleanup(self.group.close)
        self.group.start()
        self.group.stop()

    def test_each_start_counts_from_zero(self):
        pages, counts = Pages(1000), []
        for nr in (20, 0, 7, 300, 0):  # in the first, code runs that was not in memory yet
            self.group.start()
            pages.touch(nr)
            counts.append(self.group.stop())
        self.assertEqual([Faults(count["page-faults"]) for count in counts[1:]], [0, 7, 300, 0])
        self.assertEqual([list(count) for count in counts], [list(CLOCKS)] * 5)

    def test_task_clock_is_the_thread_cpu_clock(self):
        # task-clock goes on while a host lends the CPU to others, the thread's own clock does not: many short tries.
        ratios = []
        while len(ratios) < 200 and not any(0.98 < ratio < 1.02 for ratio in ratios):
            self.group.start()
            start = end = time.thread_time_ns()
            while end < start + 5_000_000:
                end = time.thread_time_ns()
            ratios.append(self.group.stop()["task-clock"] / (end - start))
        self.assertAlmostEqual(ratios[-1], 1, delta=0.02)

    def test_each_sleep_switches(self):
        self.group.start()
        for _ in range(20):
            time.sleep(0.001)
        self.assertGreaterEqual(self.group.stop()["context-switches"], 20)

    def test_descriptors_are_those_of_the_counters(self):
        self.assertEqual(self.group.events, CLOCKS)
        self.assertEqual(len(set(self.group.fds)), 3)
        for fd in self.group.fds:
            self.assertEqual(os.readlink(f"/proc/self/fd/{fd}"), "anon_inode:[perf_event]")
            self.assertFalse(os.get_inheritable(fd))
        self.group.close()
        self.assertEqual(self.group.fds, [])

    def test_wrong_order_is_told(self):
        self.assertRaisesRegex(PerfEventError, "not started", self.group.stop)
        self.group.start()
        self.assertRaisesRegex(PerfEventError, "started already", self.group.start)
        self.group.close()
        self.group.close()
        self.assertRaisesRegex(PerfEventError, "is closed", self.group.start)
        self.assertRaisesRegex(PerfEventError, "is closed", self.group.stop)
        self.assertRaisesRegex(PerfEventError, "is closed", self.group.__enter__)

    def in_thread(self, function):
        caught = []

        def run():
            try:
                caught.append(function())
            except PerfEventError as error:
                caught.append(str(error))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return caught[0]

    def test_it_is_of_the_thread_that_started_it(self):
        self.group.start()
        self.assertEqual(self.in_thread(self.group.stop), "these counters are another thread's, which started them")
        self.group.stop()

        def count():
            pages, counts = Pages(900), []
            for _ in range(6):
                self.group.start()
                pages.touch(100)
                counts.append(Faults(self.group.stop()["page-faults"]))
            return counts[1:]
        self.assertEqual(self.in_thread(count), [100] * 5)

    def test_a_child_does_not_get_the_counts_of_its_parent(self):
        self.group.start()
        pid = os.fork()
        if not pid:
            try:
                self.group.stop()
            except PerfEventError as error:
                os._exit(17 if "are the parent's" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 17)
        self.group.stop()

    def test_with_closes_it(self):
        with PerfEventGroup("task-clock") as group:
            group.start()
            self.assertEqual(len(group.fds), 1)
        self.assertEqual((group.fds, repr(group)), ([], "<PerfEventGroup ('task-clock',) closed>"))

    def test_no_descriptors_are_left(self):
        before = nr_descriptors()
        for _ in range(1000):
            group = PerfEventGroup(CLOCKS)
            group.start()
            group.stop()
        del group
        gc.collect()
        self.assertEqual(nr_descriptors(), before)

    @unittest.skipIf(os.path.exists("/sys/bus/event_source/devices/cpu") or
                     any(name.startswith("armv") for name in os.listdir("/sys/bus/event_source/devices")),
                     "this machine has a hardware PMU")
    def test_a_refused_counter_is_an_error_of_start(self):
        before = nr_descriptors()
        group = PerfEventGroup(("task-clock", "cycles"))
        self.assertRaisesRegex(PerfEventError, r"^cycles: no hardware PMU here \(the nearest is cpu-clock\)$", group.start)
        self.assertEqual(group.fds, [])
        self.assertEqual(nr_descriptors(), before)

    def as_nobody(self, function):
        """What @function returns or raises in a child without privilege."""
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                text = repr(function())
            except PerfEventError as error:
                text = str(error)
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        with open(read, encoding="utf-8") as file:
            return file.read()

    def test_the_kernel_is_left_out_only_where_it_must_be(self):
        self.assertFalse(self.group.user_only)
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            paranoid = int(file.read())
        if os.geteuid() or paranoid != 2:
            self.skipTest("needs root and perf_event_paranoid 2")

        def count(events):
            group = PerfEventGroup(events)
            group.start()
            return group.user_only, sorted(group.stop())
        self.assertEqual(self.as_nobody(lambda: count("page-faults,task-clock")), "(True, ['page-faults', 'task-clock'])")
        # It happens in the kernel: without the kernel it would be a false 0.
        self.assertRegex(self.as_nobody(lambda: count("context-switches")),
                         "^context-switches: happens in the kernel, permission denied .*perf_event_paranoid")


class TestTotals(unittest.TestCase):
    def test_calls_and_values_are_enough(self):
        totals = PerfEventTotals(3, {"cycles": 5})
        self.assertEqual((totals.calls, totals.values, totals.scaled, totals.coverage, totals.seconds, totals.incomplete, totals.open),
                         (3, {"cycles": 5}, {}, {}, 0.0, 0, 0))
        self.assertEqual(PerfEventTotals(calls=1, values={}, incomplete=2).incomplete, 2)
        self.assertEqual(PerfEventTotals(calls=1, values={}, open=2).open, 2)

    def test_repr_shows_passes_that_did_not_end(self):
        self.assertEqual(repr(PerfEventTotals(3, {"cycles": 5}, seconds=0.5)), "PerfEventTotals(calls=3, values={'cycles': 5}, seconds=0.5)")
        self.assertEqual(repr(PerfEventTotals(incomplete=2, open=1)),
                         "PerfEventTotals(calls=0, values={}, seconds=0.0, incomplete=2, open=1)")

    def test_what_is_no_count_is_refused(self):
        for name in ("calls", "incomplete", "open"):
            self.assertRaises(OverflowError, PerfEventTotals, **{name: -1})
            self.assertRaises(TypeError, PerfEventTotals, **{name: 1.5})
            self.assertEqual(getattr(PerfEventTotals(**{name: 2**64 - 1}), name), 2**64 - 1)


if __name__ == "__main__":
    unittest.main()
