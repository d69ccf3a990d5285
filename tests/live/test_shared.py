# SPDX-License-Identifier: MIT
"""Equal software events, of which the kernel makes one sample for all: each gets its own, with its own time."""

import re
import subprocess
import time
import unittest

from livetest import LiveTestCase, Observer, skip_unless_root

NR = 3000

COUNT = """
import collections, json, sys, time
start = time.monotonic_ns()
counts, fields, times, stacks, of_one = collections.Counter(), set(), [], set(), 0
def take(name, event):
    global of_one
    counts[name] += 1
    of_one += sys.argv[1:] == [str(event._pid)]
    fields.update(event.keys())
    times.append(event._time)
    stacks.add((len(event._callchain), event._callchain[0]["kernel"] if event._callchain else None))
def a(event):
    take("a", event)
def b(event):
    take("b", event)
def c(event):
    take("c", event)
def __exit__(totals):
    end = time.monotonic_ns()
    print(json.dumps({
        "delivered": counts, "counted": totals["run"].values, "sorted": times == sorted(times),
        "inside": sum(start <= t <= end for t in times), "of_one": of_one, "fields": sorted(fields), "stacks": sorted(stacks, key=str),
        "distinct": len(set(times))}))
"""


class TestShared(LiveTestCase):
    def record(self, *events, options=(), nr=NR):
        run = self.run_script(COUNT, list(events), *options, load=["touch", nr])
        self.assertEqual(run.status, 0, run.stderr)
        [result] = run.json
        return result, run.stderr

    def check_equal(self, result):
        """Each event was delivered as often as it was counted, no time is before the one before."""
        for name, nr in result["counted"].items():
            self.assertEqual(result["delivered"].get(name), nr, name)
            self.assertGreaterEqual(nr, NR)
        self.assertTrue(result["sorted"])
        self.assertEqual(result["inside"], sum(result["delivered"].values()))

    def test_two_equal_events_get_all_samples_each(self):
        result, errors = self.record("page-faults/period=1,alias=a/", "page-faults/period=1,alias=b/")
        self.check_equal(result)
        self.assertEqual(errors, "")
        self.assertEqual(set(result["counted"]), {"a", "b"})

    def test_three_of_other_periods_and_parts(self):
        result, _ = self.record("page-faults/period=1,alias=a/", "page-faults/period=1,alias=b,addr/",
                                "faults/period=10,alias=c/")
        counted, delivered = result["counted"], result["delivered"]
        self.assertEqual(counted["a"], counted["b"])
        self.assertEqual(counted["a"], counted["c"])
        self.assertEqual(delivered, {"a": counted["a"], "b": counted["a"], "c": counted["a"] // 10})

    def test_one_in_a_group_and_one_beside(self):
        result, _ = self.record("{task-clock,page-faults/period=1,alias=a/,minor-faults/period=1,alias=b/}",
                                "page-faults/period=1,alias=c/")
        del result["counted"]["task-clock"]
        self.check_equal(result)
        self.assertEqual(result["counted"]["a"], result["counted"]["c"])

    def test_the_read_is_a_field_only_where_asked_for(self):
        result, _ = self.record("page-faults/period=1,alias=a/")
        self.assertNotIn("read", result["fields"])
        self.assertIn("ip", result["fields"])
        result, _ = self.record("page-faults/period=1,alias=a,read/")
        self.assertIn("read", result["fields"])

    def test_two_in_one_group_are_refused(self):
        run = self.run_script(COUNT, "{page-faults/period=1,alias=a/,faults/period=2,alias=b/}", load=["touch", 1])
        self.assertEqual(run.status, 2)
        self.assertIn("a and b sample the same event in one group", run.stderr)

    def test_all_cpus(self):
        load = self.hold_load("wait", "+", "touch", NR, "+", "wait")
        events = ["page-faults/period=1,alias=a/", "page-faults/period=1,alias=b/"]
        observer = self.start_script(COUNT, events, "-a", args=[load.pid])
        nr_before = load.nr_faults()
        load.go()
        nr = load.nr_faults() - nr_before
        [result] = observer.stop().json
        self.assertEqual(result["of_one"], 2 * nr)
        self.assertTrue(result["sorted"])


@skip_unless_root
class TestBesideOthers(LiveTestCase):
    def start_other(self, *options, clock=None):
        """Start perf record on page faults, with @options, or another perfscope of this clock."""
        if clock:
            other = self.write("other.py", "def __sample__(event): pass")
            observer = Observer(["python", *options, "--clock", clock, "-e", "page-faults/period=1/", other])
            self.addCleanup(observer.close)
            observer.wait_until_ready()
            return observer.process
        arguments = ["perf", "record", "-q", "-e", "page-faults", "-c", "1", "-o", "/dev/null", *options]
        process = subprocess.Popen([*arguments, "sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.wait_for_child(process.pid)
        return process

    def wait_for_child(self, pid):
        """perf lets its program go once all is open and enabled."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/comm", encoding="ascii") as file:
                    if file.read() == "sleep\n":
                        return
            time.sleep(0.01)
        raise AssertionError("perf record does not begin")

    def check(self, is_first, *options, own=(), clock=None, is_thread=False):
        """Observe a load beside another program that began first or not; the result and what stderr says."""
        load = self.hold_load("wait", "+", "touch", NR, "+", "wait")
        where = ["-t", str(load.pid)] if is_thread else ["-a"]
        if is_first:
            self.start_other(*where, *options, clock=clock)
        observer = self.start_script(COUNT, "page-faults/period=1,alias=a/", *where, *own, args=[load.pid])
        if not is_first:
            self.start_other(*where, *options, clock=clock)
        nr_before = load.nr_faults()
        load.go()
        nr = load.nr_faults() - nr_before
        run = observer.stop()
        self.assertEqual(run.status, 0, run.stderr)
        [result] = run.json
        self.assertGreaterEqual(nr, NR)
        self.assertEqual(result["of_one"], nr)
        self.assertTrue(result["sorted"])
        self.assertEqual(result["inside"], result["delivered"]["a"])
        self.assertNotIn("no known event", run.stderr)
        return result, run.stderr

    def test_perf_record_that_began_before(self):
        _, errors = self.check(True)
        self.assertEqual(errors, "")

    def test_perf_record_that_began_after(self):
        _, errors = self.check(False)
        nr = int(re.search(r"(\d+) samples came with the time of another", errors)[1])
        self.assertGreaterEqual(nr, NR)

    def test_perf_record_that_names_its_events_otherwise(self):
        _, errors = self.check(False, "-e", "context-switches")
        self.assertIn("samples came with the time of another", errors)

    def test_perf_record_of_the_same_clock(self):
        _, errors = self.check(False, "-k", "monotonic")
        self.assertEqual(errors, "")

    def test_another_perfscope_of_another_clock(self):
        _, errors = self.check(False, clock="monotonic_raw")
        self.assertIn("samples came with the time of another", errors)

    def test_a_thread_beside_perf_record(self):
        self.check(False, is_thread=True)

    def test_a_thread_beside_another_perfscope_of_another_clock(self):
        result, errors = self.check(False, clock="monotonic_raw", is_thread=True)
        self.assertIn("is a guess", errors)
        self.assertGreater(result["distinct"], NR / 2)

    def test_the_user_stack_of_another_is_left_out(self):
        result, _ = self.check(False, "-g", own=("--call-graph", "--no-user-callchain"))
        self.assertNotIn(False, {kernel for _, kernel in result["stacks"]})


if __name__ == "__main__":
    unittest.main()
