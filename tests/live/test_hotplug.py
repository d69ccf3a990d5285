# SPDX-License-Identifier: MIT
"""A CPU that goes offline and comes back. To take one offline disturbs all that runs: only with PERFSCOPE_HOTPLUG=1."""

import os
import time
import unittest

from livetest import LiveTestCase, skip_unless_root, skip_unless_tracepoints, skip_unless_two_cpus
from test_targets import find_cgroup2

GETPPID = "syscalls:sys_enter_getppid"
CPU_DIR = "/sys/devices/system/cpu"
WATCH = """
import collections, json
cpus, lost, names = collections.Counter(), [], set()
def __sample__(event):
    cpus[event._cpu] += 1
    names.add(' '.join(event._counters or {}))
def __lost__(start, end, nr):
    lost.append([start, end, nr])
def __exit__(totals):
    run = totals['run']
    print(json.dumps({'cpus': cpus, 'lost': lost, 'names': sorted(names), 'values': run.values,
                      'coverage': run.coverage}), flush=True)
"""

skip_unless_hotplug = unittest.skipUnless(os.environ.get("PERFSCOPE_HOTPLUG") == "1",
                                          "takes CPU 1 offline for a moment: only with PERFSCOPE_HOTPLUG=1")


def read_error(observer):
    """The next line on stderr; no more than that is taken from it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(observer.process.stderr.fileno(), 1)
        if not byte:
            raise AssertionError(f"stderr ended after {line!r}")
        line += byte
    return line.decode()[:-1]


class HotplugTestCase(LiveTestCase):
    def setUp(self):
        super().setUp()
        self.comm = f"plug-{os.getpid() % 10**9}"

    def call(self, cpu, count):
        """Make @count calls on @cpu, and wait until they are made."""
        load = self.hold_load("--cpu", cpu, "rename", self.comm, "+", "wait", "+", "getppid", count, "+", "wait")
        load.go()
        load.close()

    def event(self, attributes=""):
        return f'{GETPPID}/comm == "{self.comm}"/{attributes}'


@skip_unless_tracepoints
@skip_unless_two_cpus
@skip_unless_hotplug
class TestHotplug(HotplugTestCase):
    def set_online(self, text):
        with open(f"{CPU_DIR}/cpu1/online", "w", encoding="ascii") as file:
            file.write(text)

    def take_offline(self):
        self.addCleanup(self.set_online, "1")
        self.set_online("0")

    def assert_gap(self, result):
        [[start, end, nr]] = result["lost"]
        self.assertIsNone(nr)
        self.assertTrue(0 < start < end)

    def observe_flap(self, event, *options):
        """Calls on CPU 1, which goes and comes back, and calls again; CPU 0 goes on throughout."""
        observer = self.start_script(WATCH, event, *options)
        self.call(1, 40)
        self.take_offline()
        self.assertEqual(read_error(observer), "perfscope: cpu 1 went offline: it is observed again when it is back")
        self.call(0, 7)
        self.set_online("1")
        self.assertRegex(read_error(observer),
                         r"^perfscope: cpu 1 came back after \d\.\d s: events in between were not seen$")
        self.call(1, 50)
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def test_cpu_that_comes_back(self):
        for options in ["-a"], ["-C", "0-1"], ["--no-order"]:
            with self.subTest(options=options):
                result = self.observe_flap(self.event(), *options)
                self.assertEqual([result["cpus"], result["values"]], [{"0": 7, "1": 90}, {GETPPID: 97}])
                self.assertEqual(result["coverage"], {GETPPID: 1.0})
                self.assert_gap(result)

    def test_cpus_of_one_event_and_groups(self):
        result = self.observe_flap(f"{{{self.event('cpus=1/')},page-faults/cpus=1/}}")
        self.assertEqual([result["cpus"], result["names"]], [{"1": 90}, [f"{GETPPID} page-faults"]])
        self.assertEqual(result["values"][GETPPID], 90)
        self.assert_gap(result)

    def test_cpu_without_samples_has_no_gap(self):
        result = self.observe_flap(f"{self.event('cpus=0/')},task-clock")
        self.assertEqual([result["cpus"], result["lost"]], [{"0": 7}, []])

    def test_short_absence_is_noticed(self):
        observer = self.start_script(WATCH, self.event())
        self.call(1, 40)
        self.addCleanup(self.set_online, "1")
        observer.send_signal(19)  # SIGSTOP: it looks only when the CPU is there again
        self.take_offline()
        self.set_online("1")
        observer.send_signal(18)
        self.assertEqual(read_error(observer),
                         "perfscope: cpu 1 was offline for a moment: events in between were not seen")
        self.call(1, 50)
        result = observer.stop().json[0]
        self.assertEqual([result["cpus"], result["values"]], [{"1": 90}, {GETPPID: 90}])
        self.assert_gap(result)

    def test_cpu_that_stays_away_holds_up_nothing(self):
        observer = self.start_script(WATCH, self.event(), "-N", 60)
        self.call(1, 40)
        self.take_offline()
        self.assertIn("went offline", read_error(observer))

        def cpu_ticks():
            with open(f"/proc/{observer.pid}/stat", encoding="ascii") as file:
                return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        before = cpu_ticks()
        time.sleep(0.4)
        self.assertLess(cpu_ticks() - before, 20)  # half of it
        self.call(0, 20)
        run = observer.wait(timeout_s=10)
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertEqual([run.json[0]["cpus"], run.json[0]["values"]], [{"1": 40, "0": 20}, {GETPPID: 60}])

    def test_cpu_that_comes_after_the_start(self):
        self.take_offline()
        observer = self.start_script(WATCH, self.event())
        self.set_online("1")
        self.assertEqual(read_error(observer), "perfscope: cpu 1 came online: it is observed from now on")
        self.call(1, 50)
        result = observer.stop().json[0]
        self.assertEqual([result["cpus"], result["values"]], [{"1": 50}, {GETPPID: 50}])
        [[start, end, nr]] = result["lost"]
        self.assertEqual([start, nr], [0, None])
        self.assertGreater(end, 0)

    def test_cpu_that_a_program_is_not_seen_on(self):
        load = self.hold_load("wait", "+", "getppid", 40, "+", "wait")
        self.take_offline()
        observer = self.start_script(WATCH, GETPPID, "-p", load.pid, "--inherit")
        self.set_online("1")
        self.assertEqual(read_error(observer), "perfscope: cpu 1 came online after the start: what runs there is not seen, "
                                               "start anew to see it")
        self.assertEqual(observer.stop().status, 0)

    def test_threads_are_followed_all_the_time(self):
        for options in [], ["--inherit"], ["-C", "0-1"]:
            with self.subTest(options=options):
                load = self.hold_load("--cpu", 1, "wait", "+", "getppid", 40, "+", "wait", "+", "getppid", 50, "+", "wait",
                                      "+", "getppid", 60, "+", "wait")
                observer = self.start_script(WATCH, GETPPID, "-p", load.pid, *options)
                load.go()
                self.take_offline()
                load.go()
                self.set_online("1")
                os.sched_setaffinity(load.pid, {1})
                load.go()
                run = observer.stop()
                result = run.json[0]
                self.assertEqual([run.stderr, result["cpus"]], ["", {"1": 100, "0": 50}])
                self.assertEqual([result["values"], result["lost"]], [{GETPPID: 150}, []])


@skip_unless_tracepoints
@skip_unless_root
@unittest.skipIf(find_cgroup2() is None, "no cgroup2 hierarchy that can be written to is mounted")
@unittest.skipUnless(os.access(f"{CPU_DIR}/cpu0/uevent", os.W_OK), "uevents cannot be asked for here")
class TestWord(HotplugTestCase):
    """The kernel is made to say that CPU 0 came online, which was never away."""

    @staticmethod
    def say_online():
        with open(f"{CPU_DIR}/cpu0/uevent", "w", encoding="ascii") as file:
            file.write("online")

    def test_cpu_that_counts_is_left_alone(self):
        observer = self.start_script(WATCH, self.event(), "-C", 0)
        self.call(0, 40)
        self.say_online()
        self.call(0, 50)
        run = observer.stop()
        self.assertEqual([run.stderr, run.json[0]["lost"], run.json[0]["values"]], ["", [], {GETPPID: 90}])

    def test_events_of_a_cgroup_are_opened_again(self):
        path = os.path.join(find_cgroup2(), f"perfscope-live-{self.comm}")
        os.mkdir(path)
        self.addCleanup(os.rmdir, path)
        observer = self.start_script(WATCH, f"{{{self.event()},page-faults}},task-clock", "--cgroup", path, "-C", 0)
        load = self.hold_load("--cpu", 0, "rename", self.comm, "+", "wait", "+", "getppid", 40, "+", "wait", "+", "getppid", 50,
                              "+", "wait")
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(load.pid))
        load.go()
        self.say_online()
        self.assertEqual(read_error(observer),
                         "perfscope: cpu 0 was offline for a moment: events in between were not seen")
        load.go()
        load.close()
        run = observer.stop()
        result = run.json[0]
        self.assertEqual([run.status, run.stderr, result["cpus"]], [0, "", {"0": 90}])
        self.assertEqual([result["values"][GETPPID], result["names"]], [90, [f"{GETPPID} page-faults"]])
        [[start, end, nr]] = result["lost"]
        self.assertIsNone(nr)
        self.assertTrue(0 < start < end)
