# SPDX-License-Identifier: MIT
"""A run from start to end: signals, time, order of the turns, the summary. Alive whatever the rate and the script do."""

import os
import pty
import re
import signal
import socket
import subprocess
import time
import unittest

from livetest import COMMAND, LOAD, LiveTestCase, Observer, skip_if_hardware_pmu, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
COUNT = """
n = 0
def __sample__(event):
    global n
    n += 1
def __exit__():
    print('{"n": %d}' % n, flush=True)
"""
EXIT = "\ndef __exit__(): print('{\"exit\": 1}', flush=True)\n"


@skip_unless_tracepoints
class TestStop(LiveTestCase):
    def stop_in_time(self, observer, number=signal.SIGINT, limit_s=2.0):
        """Stop it; the Run and the seconds that it took."""
        start = time.monotonic()
        run = observer.stop(number)
        took_s = time.monotonic() - start
        self.assertLess(took_s, limit_s)
        return run, took_s

    def start_storm(self):
        """Make system calls without end on each CPU until the test is over."""
        for cpu in os.sched_getaffinity(0):
            process = subprocess.Popen(["taskset", "-c", str(cpu), LOAD, "getppid", "100000000"], stdout=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def test_each_signal_stops_cleanly(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(signal=number):
                run, _ = self.stop_in_time(self.start_script(COUNT, GETPPID), number)
                self.assertEqual([run.status, len(run.json), run.stderr], [0, 1, ""])

    def test_what_happened_before_the_signal_is_delivered(self):
        observer = self.start_script(COUNT, GETPPID + "/common_pid>0/", "-p", str(os.getpid()))
        for _ in range(123):
            os.getppid()
        run, _ = self.stop_in_time(observer)
        self.assertEqual(run.json, [{"n": 123}])

    def test_storm_with_a_handler_that_raises_each_time_is_stopped(self):
        observer = self.start_script("def __sample__(event): 1 / 0" + EXIT, GETPPID)
        self.start_storm()
        time.sleep(0.5)
        run, _ = self.stop_in_time(observer)
        self.assertEqual([run.status, run.json], [1, [{"exit": 1}]])

    def test_handler_that_traces_itself_is_stopped(self):
        source = "import os\ndef __sample__(event): os.write(2, b'')" + EXIT
        observer = self.start_script(source, "syscalls:sys_enter_write")
        os.write(2, b"")
        time.sleep(0.5)
        run, _ = self.stop_in_time(observer)
        self.assertEqual([run.status, run.json], [0, [{"exit": 1}]])

    def assert_interrupted(self, body):
        source = f"import time\ndef __sample__(event):\n    {body}" + EXIT
        observer = self.start_script(source, GETPPID, "-p", str(os.getpid()))
        os.getppid()
        time.sleep(0.4)
        run, took_s = self.stop_in_time(observer)
        self.assertEqual([run.status, run.json], [0, [{"exit": 1}]])
        self.assertGreater(took_s, 0.4)

    def test_endless_loop_in_a_handler_is_interrupted(self):
        self.assert_interrupted("while True: pass")

    def test_sleeping_handler_is_interrupted(self):
        self.assert_interrupted("time.sleep(20)")

    def test_handler_that_swallows_the_interrupt_is_ended(self):
        source = "while True:\n        try: time.sleep(20)\n        except KeyboardInterrupt: pass"
        observer = self.start_script(f"import time\ndef __sample__(event):\n    {source}" + EXIT, GETPPID, "-p",
                                     str(os.getpid()))
        os.getppid()
        time.sleep(0.4)
        run, _ = self.stop_in_time(observer, limit_s=2.3)
        self.assertEqual([run.status, run.json, run.errors],
                         [1, [], ["perfscope: a handler did not return within 2 s of the request to stop: "
                                  "ended without __exit__"]])

    def test_second_request_to_stop_ends_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                observer = self.start_script("import time\ndef __sample__(event): pass\n"
                                             "def __exit__(): time.sleep(20)\n", GETPPID)
                observer.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                run, _ = self.stop_in_time(observer, number, limit_s=0.3)
                self.assertEqual([run.status, run.errors],
                                 [1, ["perfscope: stopped twice: ended at once, the rest is lost"]])

    def test_signal_while_python_ends_does_not_end_the_process(self):
        source = """
import atexit, os, signal, threading, time
def __sample__(event): pass
class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT, sleep=time.sleep):
        kill(pid, number)
        sleep(0.01)
late = Late()
late.self = late  # a cycle: it goes when the interpreter does
"""
        run = self.run_script(source, GETPPID, "--duration", "0.05")
        self.assertEqual([run.status, run.errors], [0, []])

    def test_two_signals_of_one_request_are_one(self):
        observer = self.start_script(COUNT, GETPPID, "-p", str(os.getpid()))
        observer.process.send_signal(signal.SIGINT)
        time.sleep(0.002)
        run, _ = self.stop_in_time(observer)
        self.assertEqual([run.status, run.json], [0, [{"n": 0}]])

    def test_exit_function_is_left_in_peace(self):
        source = "import time\ndef __sample__(event): pass\ndef __exit__():\n    time.sleep(2.5)\n    print('[1]')\n"
        run = self.start_script(source, GETPPID).stop()
        self.assertEqual([run.status, run.json], [0, [[1]]])

    def test_script_that_does_not_finish_loading_is_interrupted(self):
        observer = self.start_observer("import os\nprint('[1]', flush=True)\nos.read(os.pipe()[0], 1)\n")
        observer.process.stdout.readline()
        time.sleep(0.2)  # until it waits in the system call
        run, _ = self.stop_in_time(observer)
        self.assertEqual([run.status, run.stderr], [0, ""])

    def start_observer(self, source):
        observer = Observer(["python", "-e", GETPPID, self.write("x.py", source)])
        self.addCleanup(observer.close)
        return observer

    def test_children_of_the_script_inherit_no_blocked_or_ignored_signals(self):
        source = """
import subprocess, json
masks = subprocess.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True,
                       restore_signals=False).stdout
print(json.dumps(masks.split()))
def __sample__(event): pass
"""
        run = self.run_script(source, GETPPID, "--duration", "0.1", restore_signals=True)
        # What the tests themselves were started with is inherited by both.
        own = subprocess.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True,
                             check=True).stdout.split()
        self.assertEqual(run.json, [own])

    def test_forked_child_of_the_script_can_be_terminated(self):
        source = """
import os, signal, time
def __init__():
    pid = os.fork()
    if not pid:
        time.sleep(20)
        os._exit(0)
    time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])])
def __sample__(event): pass
"""
        run = self.run_script(source, GETPPID, "--duration", "0.1", timeout_s=10)
        self.assertEqual([run.status, run.json], [0, [[-signal.SIGTERM]]])

    def test_reader_that_does_not_read_does_not_keep_us(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        script = self.write("x.py", "def __sample__(event): print(event)\n")
        process = subprocess.Popen([COMMAND, "python", "-e", "raw_syscalls:sys_enter", script], stdout=write_end,
                                   stderr=subprocess.PIPE)
        os.close(write_end)
        time.sleep(1.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        self.assertLess(time.monotonic() - start, 2.3)


@skip_unless_tracepoints
class TestTime(LiveTestCase):
    def test_duration_ends_the_run(self):
        start = time.monotonic()
        run = self.run_script(COUNT, GETPPID, "--duration", "0.5")
        took_s = time.monotonic() - start
        self.assertEqual(run.status, 0)
        self.assertTrue(0.5 <= took_s < 1.0, took_s)

    def interval_times(self, source, *load):
        run = self.run_script("import time\ntimes = []\ndef __interval__(): times.append(time.monotonic())\n"
                              "def __exit__(): print([round(t - times[0], 4) for t in times])\n" + source,
                              GETPPID, "-i", "100", "--duration", "1.55", load=load or None)
        return run.json[0]

    def assert_regular(self, times):
        self.assertEqual(len(times), 15)
        late = [abs(at - 0.1 * i) for i, at in enumerate(times)]
        self.assertLess(max(late), 0.05)
        self.assertLess(late[-1], 0.03)

    def test_intervals_are_regular_when_idle(self):
        self.assert_regular(self.interval_times("def __sample__(event): pass\n"))

    def test_intervals_are_regular_under_full_load(self):
        self.assert_regular(self.interval_times("def __sample__(event): str(event)\n", "getppid", "100000000"))

    def test_few_events_arrive_within_the_latency(self):
        source = "import time\ndef __sample__(event): print([time.monotonic_ns() - event._time], flush=True)\n"
        for latency_ms in 100, 20:
            with self.subTest(latency_ms=latency_ms):
                observer = self.start_script(source, GETPPID, "-p", str(os.getpid()), "--latency", str(latency_ms))
                for i in range(20):
                    os.getppid()
                    time.sleep(0.013)
                run = observer.stop()
                self.assertEqual(len(run.json), 20)
                # The scheduler may take its share on a busy machine.
                self.assertLess(max(delay for [delay] in run.json), (latency_ms + 30) * 1e6)

    def test_idle_run_wakes_up_rarely(self):
        observer = self.start_script(COUNT, GETPPID, "-p", str(os.getpid()))
        time.sleep(0.3)  # the first looks come at shorter distances
        before = self.count_switches(observer.pid)
        time.sleep(1)
        # About 11; a wake-up for each slack would be 200.
        self.assertLessEqual(self.count_switches(observer.pid) - before, 25)
        observer.stop()

    def test_ring_whose_process_has_ended_does_not_keep_us_busy(self):
        processes = [subprocess.Popen(["sleep", "20"]) for _ in range(2)]
        for process in processes:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        observer = self.start_script(COUNT, GETPPID, "-p", ",".join(str(process.pid) for process in processes))
        processes[0].kill()
        time.sleep(0.2)
        before_ns = self.cpu_ns(observer.pid)
        time.sleep(0.5)
        self.assertLess(self.cpu_ns(observer.pid) - before_ns, 50e6)
        processes[1].kill()
        self.assertEqual(observer.wait(timeout_s=5).status, 0)

    def cpu_ns(self, pid):
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])

    def count_switches(self, pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])

    def test_threads_of_the_script_run_while_we_wait(self):
        source = """
import threading, time
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.01)
        ticks += 1
threading.Thread(target=tick, daemon=True).start()
def __sample__(event): pass
def __exit__(): print('{"is_fair": %d}' % (ticks > 50))
"""
        run = self.run_script(source, GETPPID, "--duration", "1")
        self.assertEqual(run.json, [{"is_fair": 1}])

    def test_observed_process_that_ends_ends_the_run(self):
        process = subprocess.Popen(["sleep", "0.5"])
        self.addCleanup(process.wait)
        run = self.run_script(COUNT, "sched:sched_process_exit", "-p", str(process.pid), timeout_s=5)
        self.assertEqual([run.status, run.json], [0, [{"n": 1}]])


@skip_unless_tracepoints
class TestRequests(LiveTestCase):
    def test_sigusr2_calls_print_stat_or_tells_our_usage(self):
        observer = self.start_script("def __sample__(event): pass\ndef __print_stat__(indent): print([indent], flush=True)\n",
                                     GETPPID)
        observer.process.send_signal(signal.SIGUSR2)
        time.sleep(0.3)
        self.assertEqual(observer.stop().json, [[0]])
        observer = self.start_script(COUNT, GETPPID, "-p", str(os.getpid()), "-q")
        observer.process.send_signal(signal.SIGUSR2)
        time.sleep(0.3)
        run = observer.stop()
        self.assertEqual(len(run.errors), 1)
        self.assertRegex(run.errors[0], r"^perfscope: cpu \d+\.\d%, memory \d+\.\d MB, 0 events, 0 lost$")

    def test_script_stops_the_run_and_prints_our_usage(self):
        source = """
import perfscope
def __sample__(event):
    print([perfscope.comm(event._tid), perfscope.comm(event._tid, time=event._time), perfscope.comm(10**9), event._comm])
    perfscope.print_stat()
    perfscope.stop()
def __exit__(totals): print([totals["run"].calls])
"""
        run = self.run_script(source, GETPPID, load=["getppid", "10"])
        lines = [line for line in run.lines if line.startswith("[")]
        self.assertEqual([run.status, lines], [0, ["['load', 'load', None, 'load']", "[1]"]])
        self.assertEqual(len(run.errors), 1)
        self.assertRegex(run.errors[0], r"^perfscope: cpu \d+\.\d%, memory \d+\.\d MB, 1 events, 0 lost$")

    def test_sighup_opens_the_output_anew(self):
        path = os.path.join(self.folder, "out")
        observer = self.start_script("def __sample__(event): print([1], flush=True)" + EXIT, GETPPID, "-p", str(os.getpid()),
                                     "-o", path)
        os.getppid()
        time.sleep(0.3)
        os.rename(path, path + ".1")
        observer.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        with open(path + ".1", encoding="utf-8") as old, open(path, encoding="utf-8") as new:
            self.assertEqual([old.read(), new.read()], ["[1]\n", '{"exit": 1}\n'])

    def read_slowly(self, ours, theirs):
        """What a run prints of 20000 events into @theirs, which does not wait, and is read only after a while."""
        os.set_blocking(theirs, False)
        arguments = self.script_arguments("def __sample__(event): print(event._comm, 'x' * 50)", GETPPID, [],
                                          ["--run", LOAD, "getppid", "20000"])
        process = subprocess.Popen([COMMAND, *arguments], stdout=theirs, stderr=subprocess.PIPE)
        time.sleep(1)
        is_as_before = not os.get_blocking(theirs)
        os.close(theirs)
        with open(ours, "rb") as file:
            # What the load tells of itself may stand in the middle of a line.
            lines = re.sub(rb'\{"pid": .*\}\n', b"", file.read()).splitlines()
        _, errors = process.communicate(timeout=30)
        self.assertEqual([process.returncode, errors], [0, b""])
        self.assertEqual(lines, [b"load " + b"x" * 50] * 20000)
        return is_as_before

    def test_an_output_that_does_not_wait_loses_no_line(self):
        self.assertTrue(self.read_slowly(*os.pipe()))
        self.read_slowly(*(end.detach() for end in socket.socketpair()))

    def test_usage_is_told_at_its_interval(self):
        run = self.run_script(COUNT, GETPPID, "--usage", "100", "--duration", "0.55")
        self.assertEqual(len(run.errors), 5)
        for line in run.errors:
            self.assertRegex(line, r"^perfscope: cpu \d+\.\d%, memory \d+\.\d MB, \d+ events, 0 lost$")


@skip_unless_tracepoints
class TestSummary(LiveTestCase):
    SCRIPT = "def __sample__(event): pass\n"

    def rows(self, text):
        return [line.split() for line in text.splitlines() if re.match(r" +\d+\.\d{3}  ", line)]

    def test_rows_add_up_to_what_happened(self):
        run = self.run_script(self.SCRIPT, [GETPPID, "cycles", "page-faults"], "-i", "100",
                              load=["getppid", "1000", "5000"])
        rows = self.rows(run.stdout)
        self.assertEqual(sum(int(row[2]) for row in rows if row[1] == GETPPID), 1000)
        self.assertEqual({row[4] for row in rows if row[1] == GETPPID}, {"0"})
        self.assertEqual(sum(line.lstrip().startswith("TIME") for line in run.lines), 1)
        self.assertEqual(len({len(line) for line in run.lines if not line.startswith("{")}), 1)

    @skip_if_hardware_pmu
    def test_missing_counter_is_a_dash(self):
        run = self.run_script(self.SCRIPT, [GETPPID, "LLC-loads"], "-i", "1000", load=["getppid", "1"])
        rows = [row[2:] for row in self.rows(run.stdout) if row[1] == "LLC-loads"]
        self.assertEqual(rows, [["-"] * 4])

    def test_glob_shows_only_what_happened(self):
        run = self.run_script(self.SCRIPT, "syscalls:sys_enter_getp*", "-i", "1000", load=["getppid", "3"])
        self.assertIn(["syscalls:sys_enter_getppid", "3"], [row[1:3] for row in self.rows(run.stdout)])
        self.assertNotIn("syscalls:sys_enter_getpriority", [row[1] for row in self.rows(run.stdout)])

    def test_title_comes_once_a_screenful_on_a_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        subprocess.run(["stty", "rows", "5"], stdin=slave, check=True)
        script = self.write("x.py", self.SCRIPT)
        process = subprocess.Popen([COMMAND, "python", "-e", "page-faults," + GETPPID, "-i", "50", "--duration", "0.5",
                                    script], stdout=slave)
        os.close(slave)
        text = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
        self.assertEqual(process.wait(), 0)
        kinds = ["T" if b"TIME" in line else "r" for line in text.splitlines() if line.strip()]
        # Up to 10 tables of two rows (a last one in which nothing happened is left out, a busy machine skips some): of the
        # 5 lines one is the cursor's, and below the title 3 are left, room for one table.
        self.assertRegex("".join(kinds), "^(Trr){5,10}$")


if __name__ == "__main__":
    unittest.main()
