# SPDX-License-Identifier: MIT
"""Limits: how many events, how long, how large the rings are, how many descriptors, and what an unprivileged user may do."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from livetest import (COMMAND, LOAD, TRACEFS, LiveTestCase, Observer, read_paranoid_level, skip_unless_root,
                      skip_unless_tracepoints, skip_unless_two_cpus)

GETPPID = "syscalls:sys_enter_getppid"
COUNT = """
import json
n = lost = 0
def __sample__(event):
    global n
    n += 1
def __lost__(start, end, nr):
    global lost
    lost += nr
def __exit__(totals): print(json.dumps({'n': n, 'lost': lost, 'values': totals['run'].values}), flush=True)
"""
NOBODY = 65534


@skip_unless_tracepoints
class TestNumbers(LiveTestCase):
    def test_so_many_events_and_no_more(self):
        for n in 1, 2, 999, 1000:
            run = self.run_script(COUNT, GETPPID, "-N", n, load=["getppid", 1000])
            self.assertEqual([run.status, run.json[0]["n"]], [0, n])

    def test_fewer_than_asked_for_end_with_the_program(self):
        self.assertEqual(self.run_script(COUNT, GETPPID, "-N", "5", load=["getppid", 4]).json[0]["n"], 4)

    @skip_unless_two_cpus
    def test_so_many_events_of_two_cpus(self):
        for n in 1, 77:
            loads = [self.hold_load("--cpu", cpu, "wait", "+", "getppid", 100, "+", "wait") for cpu in (0, 1)]
            pids = ",".join(str(load.pid) for load in loads)
            observer = self.start_script(COUNT, GETPPID, "-p", pids, "-N", n)
            for load in loads:
                load.go()
            self.assertEqual(observer.wait().json[0]["n"], n)

    def test_duration_is_kept(self):
        start = time.monotonic()
        run = self.run_script(COUNT, GETPPID, "--duration", "0.2", args=["--run", "/bin/sleep", "20"])
        took_s = time.monotonic() - start
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertTrue(0.2 <= took_s < 1.2, took_s)

    def test_numbers_that_are_none(self):
        for option, value, message in (
                ("-N", "0", "-N/--exit-n: '0' is not a whole number of 1 or more"),
                ("-N", "x", "-N/--exit-n: 'x' is not a whole number of 1 or more"),
                ("--watermark", "101", "--watermark: '101' is not a whole number from 1 to 100"),
                ("-m", "0", "-m/--mmap-pages: '0' is not a size: pages, or bytes like 512K or 4M"),
                ("-m", "100000000", "-m/--mmap-pages: 100000000 is too large, a ring has at most 1G (262144 pages): the kernel "
                                    "keeps the list of its pages in one block")):
            with self.subTest(option=option, value=value):
                run = self.run_script(COUNT, GETPPID, option, value, load=["getppid", 1])
                self.assertEqual([run.status, run.stdout, run.errors], [2, "", [f"perfscope: {message}"]])


@skip_unless_tracepoints
class TestWakeUps(LiveTestCase):
    def count_wakeups(self, *options):
        """The tool's own switches while 200 events come in a second."""
        load = self.hold_load("wait", "+", "getppid", 200, 200, "+", "wait")
        observer = self.start_script(COUNT, GETPPID, "-p", load.pid, *options)

        def switches():
            with open(f"/proc/{observer.pid}/status", encoding="ascii") as file:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])
        before = switches()
        load.go()
        nr = switches() - before
        self.assertEqual(observer.stop().json[0]["n"], 200)
        return nr

    def test_events_do_not_wake_us_one_by_one(self):
        self.assertLessEqual(self.count_wakeups(), 25)
        # 50 looks in a second, and less than 100.
        self.assertTrue(30 <= self.count_wakeups("--latency", "20") < 100)

    def test_low_watermark_wakes_us_earlier(self):
        self.assertGreaterEqual(self.count_wakeups("-m", "1", "--watermark", "2", "--latency", "1000"), 50)


@skip_unless_tracepoints
class TestDescriptors(LiveTestCase):
    def limit(self, soft, hard):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))}

    def test_too_few_are_told_with_the_limit(self):
        run = self.run_script(COUNT, "syscalls:sys_enter_*", load=["getppid", 1], **self.limit(16, 16))
        self.assertEqual([run.status, run.stdout, len(run.errors)], [1, "", 1])
        self.assertRegex(run.errors[0], r"^perfscope: open syscalls:sys_enter_\w+ on cpu \d+ of thread \d+: too many open files "
                         r"\(RLIMIT_NOFILE is 16, these events need \d+; raise it with ulimit -n, or choose fewer events or CPUs\)$")

    def test_soft_limit_is_raised_and_the_programs_own_is_not(self):
        run = self.run_script("def __sample__(event): pass\n", "syscalls:sys_enter_get*", **self.limit(16, 4096),
                              args=["--run", "/bin/sh", "-c", "ulimit -Sn; ulimit -Hn"])
        self.assertEqual([run.status, run.lines, run.stderr], [0, ["16", "4096"], ""])


@skip_unless_root
@unittest.skipUnless(read_paranoid_level() == 2, "the sentences are those of perf_event_paranoid 2")
class TestUnprivileged(LiveTestCase):
    """What a user without privileges may do; the command is copied to where that user can read it."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        for path in COMMAND, LOAD:
            shutil.copy(path, self.folder)

    def run_as_nobody(self, events, *options, load=("getppid", "1"), target=None, locked=None):
        script = self.write("script.py", COUNT)
        arguments = [os.path.join(self.folder, "perfscope"), "python", "-e", events, *map(str, options), script]
        arguments += target or ["--run", os.path.join(self.folder, "load"), *map(str, load)]

        def become():
            if locked:
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        result = subprocess.run(arguments, preexec_fn=become, capture_output=True, text=True, timeout=30, check=False)
        return result.returncode, result.stdout, result.stderr.splitlines()

    def test_own_counters_without_the_kernel(self):
        status, stdout, errors = self.run_as_nobody("page-faults:u", load=["touch", "1000"])
        self.assertEqual([status, errors], [0, []])
        faults = int(re.search(r'"page-faults:u": (\d+)', stdout)[1])
        self.assertTrue(1000 <= faults < 1200, faults)

    def test_kernel_is_refused_with_the_way_out(self):
        status, _, errors = self.run_as_nobody("page-faults")
        self.assertEqual([status, len(errors)], [1, 1])
        self.assertRegex(errors[0], r"^perfscope: open page-faults on cpu 0 of thread \d+: permission denied \(perf_event_paranoid "
                         r"is 2; needs CAP_PERFMON or root, or sysctl kernel.perf_event_paranoid=1, or :u behind the event, "
                         r"without the kernel\)$")

    def test_what_the_kernel_alone_makes_reads_none(self):
        status, stdout, errors = self.run_as_nobody("page-faults:u,context-switches:u")
        self.assertEqual([status, errors], [0, [
            "perfscope: context-switches:u: only the kernel makes it, and that this user may not count (needs CAP_PERFMON or "
            "sysctl kernel.perf_event_paranoid=1), it reads None"]])
        self.assertIn('"context-switches:u": null', stdout)

    def test_all_cpus_are_refused(self):
        status, _, errors = self.run_as_nobody("page-faults:u", "--duration", "0.1", target=["-q"])
        self.assertEqual([status, errors], [1, [
            "perfscope: open page-faults on cpu 0: permission denied (perf_event_paranoid is 2; needs CAP_PERFMON or root, or "
            "sysctl kernel.perf_event_paranoid=0)"]])

    def test_process_of_another_user_is_refused(self):
        load = self.hold_load("wait")
        status, _, errors = self.run_as_nobody("page-faults:u", "-p", load.pid, target=["-q"])
        self.assertEqual([status, errors], [1, [
            f"perfscope: open page-faults of thread {load.pid}: permission denied (the thread is another user's; needs "
            "CAP_PERFMON or root)"]])

    @skip_unless_tracepoints
    def test_tracefs_is_closed(self):
        status, _, errors = self.run_as_nobody(GETPPID)
        self.assertEqual([status, len(errors)], [1, 1])
        self.assertRegex(errors[0], r"^perfscope: tracefs at /sys/kernel/tracing: Permission denied \(run as root, or as root: "
                         r"mount -o remount,mode=755 /sys/kernel/tracing; ")

    def test_ring_above_the_locked_memory_quota_is_made_smaller(self):
        status, _, errors = self.run_as_nobody("page-faults:u", "-m", "64M", locked=64 << 10)
        self.assertEqual([status, len(errors)], [0, 1])
        match = re.match(r"^perfscope: rings of 65536K are refused \(the locked-memory quota\), (\d+)K are used, more may be lost; "
                         r"raise sysctl kernel.perf_event_mlock_kb or ulimit -l, or choose a smaller -m$", errors[0])
        self.assertIn(int(match[1]), [4 << i for i in range(14)])


@skip_unless_tracepoints
@skip_unless_root
class TestUnsampledTracepoint(LiveTestCase):
    EVENT = "irq_vectors:irq_work_exit"  # the kernel refuses to sample it: that would make another

    def test_root_is_not_sent_to_become_root(self):
        if not os.path.isdir(os.path.join(TRACEFS, "events", *self.EVENT.split(":"))):
            self.skipTest(f"this kernel has no {self.EVENT}")
        run = self.run_script("def __sample__(event): pass\n", self.EVENT, "--duration", "0.1")
        self.assertEqual([run.status, len(run.errors)], [1, 1])
        self.assertRegex(run.stderr, r"permission denied in spite of CAP_PERFMON \(the kernel lets nobody sample it")


@skip_unless_tracepoints
class TestStopWhileOpening(LiveTestCase):
    def test_signal_ends_it_soon(self):
        script = self.write("script.py", "def __sample__(event): pass\ndef __exit__(): print('[1]')\n")
        observer = Observer(["python", "-e", "syscalls:*", script])
        self.addCleanup(observer.close)
        folder, end = f"/proc/{observer.pid}/fd", time.monotonic() + 20
        while len(os.listdir(folder)) < 12 and time.monotonic() < end:
            time.sleep(0.002)
        observer.send_signal(signal.SIGINT)
        run = observer.wait(8)
        self.assertEqual([run.status, run.stdout, run.stderr], [0, "", ""])


if __name__ == "__main__":
    unittest.main()
