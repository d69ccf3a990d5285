# SPDX-License-Identifier: MIT
"""Alive whatever the rate and whatever the script does: turns, stops, processes of the script, output that is moved away."""

import os
import signal
import subprocess
import time
import unittest

from livetest import LOAD, LiveTestCase, Observer, skip_unless_tracepoints, skip_unless_two_cpus

GETPPID = "syscalls:sys_enter_getppid"
PASS = "def __sample__(event): pass\n"
EXIT = "\ndef __exit__(): print('{\"exit\": 1}', flush=True)\n"


@skip_unless_tracepoints
class TestWaysOut(LiveTestCase):
    """Where the script ends the run or raises: `__exit__` is called once, and the status tells."""

    PLACES = {
        "init": "def __init__(): act()\n" + PASS,
        "handler": "def syscalls__sys_enter_getppid(event): act()\n",
        "sample": "def __sample__(event): act()\n",
        "interval": "def __interval__(): act()\n" + PASS,
    }
    LOAD = ["getppid", "200", "1000"]  # 200 ms, with an interval of 50

    def run_act(self, act, place, *options):
        source = f"import os, signal, sys\nsent = []\ndef act(): {act}\n{self.PLACES[place]}"
        source += "" if "def __exit__" in source else EXIT
        return self.run_script(source, GETPPID, "-i", "50", *options, load=self.LOAD, timeout_s=20)

    def test_system_exit_anywhere_keeps_its_status(self):
        for place in self.PLACES:
            with self.subTest(place=place):
                run = self.run_act("sys.exit(3)", place)
                self.assertEqual([run.status, run.json, run.stderr], [3, [{"exit": 1}], ""])

    def test_system_exit_with_a_text_prints_it(self):
        for place in self.PLACES:
            with self.subTest(place=place):
                run = self.run_act("sys.exit('enough')", place)
                self.assertEqual([run.status, run.json, run.errors], [1, [{"exit": 1}], ["enough"]])

    def test_system_exit_in_exit_or_module_keeps_its_status(self):
        run = self.run_script(PASS + "import sys\ndef __exit__(): sys.exit(4)\n", GETPPID, load=["getppid", "1"])
        self.assertEqual([run.status, run.stderr], [4, ""])
        run = self.run_script("import sys\nsys.exit('no')\n" + PASS + EXIT, GETPPID, load=["getppid", "1"])
        self.assertEqual([run.status, run.json, run.errors], [1, [], ["no"]])

    def test_end_without_python_is_what_it_says(self):
        run = self.run_act("os._exit(9)", "sample")
        self.assertEqual([run.status, run.json, run.stderr], [9, [], ""])

    def test_signals_to_itself_stop_from_anywhere(self):
        for place in self.PLACES:
            for number in "SIGINT", "SIGTERM", "SIGHUP":
                with self.subTest(place=place, number=number):
                    run = self.run_act(f"sent or sent.append(1) or os.kill(os.getpid(), signal.{number})", place)
                    self.assertEqual([run.status, run.json, run.stderr], [0, [{"exit": 1}], ""])

    def test_signals_in_exit_do_not_end_it(self):
        for number in "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2":
            with self.subTest(number=number):
                source = f"import os, signal\n{PASS}def __exit__():\n    os.kill(os.getpid(), signal.{number})\n    print('[1]')\n"
                run = self.run_script(source, GETPPID, load=["getppid", "1"])
                self.assertEqual([run.status, run.json, run.stderr], [0, [[1]], ""])

    def test_sigusr2_ends_nothing_while_loading_or_in_init(self):
        kill = "os.kill(os.getpid(), signal.SIGUSR2)"
        for source in kill + "\n" + PASS, f"def __init__(): {kill}\n{PASS}":
            run = self.run_script("import os, signal\n" + source + EXIT, GETPPID, "-q", load=["getppid", "1"])
            self.assertEqual([run.status, run.json, len(run.errors)], [0, [{"exit": 1}], 1])
            self.assertRegex(run.errors[0], "^perfscope: cpu ")

    def test_exception_anywhere_is_shown_once_and_counted(self):
        names = {"init": "__init__", "handler": "syscalls__sys_enter_getppid", "sample": "__sample__",
                 "interval": "__interval__"}
        for place, name in names.items():
            with self.subTest(place=place):
                run = self.run_act("1 / 0", place)
                self.assertEqual([run.status, run.json], [1, [{"exit": 1}]])
                self.assertEqual([run.errors[0], run.stderr.count("Traceback")],
                                 [f"perfscope: {name} raised ZeroDivisionError: division by zero", 1])
                self.assertRegex(run.errors[-1], r"^perfscope: the script raised \d+ exceptions?; 1 shown above$")
                if name in ("syscalls__sys_enter_getppid", "__sample__"):
                    self.assertIn(" raised 200 exceptions;", run.errors[-1])

    def test_exceptions_are_shown_once_for_each_function_and_line(self):
        source = """
n = 0
def syscalls__sys_enter_getppid(event):
    global n
    n += 1
    if n % 2:
        raise ValueError(n)
    return [][0]
def __sample__(event): raise ValueError
"""
        run = self.run_script(source, GETPPID + ",syscalls:sys_exit_getppid", load=["getppid", "10"])
        told = [line for line in run.errors if line.startswith("perfscope: ")]
        self.assertEqual([run.status, told, run.stderr.count("Traceback")], [1, [
            "perfscope: syscalls__sys_enter_getppid raised ValueError: 1",
            "perfscope: __sample__ raised ValueError",
            "perfscope: syscalls__sys_enter_getppid raised IndexError: list index out of range",
            "perfscope: the script raised 20 exceptions; 3 shown above"], 3])

    def test_keyboard_interrupt_of_a_handler_ends_the_run_cleanly(self):
        source = "n = 0\ndef __sample__(event):\n    global n\n    n += 1\n    if n == 3: raise KeyboardInterrupt\n" \
                 "def __exit__(): print([n])\n"
        run = self.run_script(source, GETPPID, "-q", load=["getppid", "10"])
        self.assertEqual([run.status, run.json, run.stderr], [0, [[3]], ""])

    def test_exception_in_exit_and_print_stat_is_status_1(self):
        sources = {"__exit__": "def __exit__(totals): return totals['none']\n",
                   "__print_stat__": "def __print_stat__(indent): raise KeyError('none')\n"
                                     "def __init__(): os.kill(os.getpid(), signal.SIGUSR2)\n"}
        for name, source in sources.items():
            with self.subTest(name=name):
                run = self.run_script("import os, signal\n" + PASS + source, GETPPID, load=["getppid", "1"])
                self.assertEqual([run.status, run.errors[0], run.errors[-1]],
                                 [1, f"perfscope: {name} raised KeyError: 'none'",
                                  "perfscope: the script raised 1 exception; 1 shown above"])

    def test_exception_in_lost_loses_no_count(self):
        source = """
import time
n = told = 0
def __sample__(event):
    global n
    n += 1
    time.sleep(0.0001)
def __lost__(start, end, lost):
    global told
    told += lost
    1 / 0
def __exit__(): print([n + told, int(told > 0)])
"""
        run = self.run_script(source, GETPPID, "-m", "1", load=["getppid", "20000"])
        self.assertEqual([run.status, run.json, run.errors[0]],
                         [1, [[20000, 1]], "perfscope: __lost__ raised ZeroDivisionError: division by zero"])

    def test_no_memory_is_told(self):
        source = ("import resource\nkept = []\ndef __init__():\n"
                  "    size = 4096 * int(open('/proc/self/statm').read().split()[0]) + (20 << 20)\n"
                  "    resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
                  "def __sample__(event): kept.append((event.to_dict(), str(event), event._raw * 100))\n")
        run = self.run_script(source, GETPPID, load=["getppid", "20000"])
        self.assertEqual(run.status, 1, run.stderr)
        self.assertIn("perfscope: __sample__ raised MemoryError", run.errors)
        self.assertRegex(run.errors[-1], r"^perfscope: the script raised \d+ exceptions; \d+ shown above$")

    def test_descriptors_closed_by_the_script_end_the_run(self):
        source = PASS + "import os\ndef __interval__(): os.closerange(3, 1000)\n" + EXIT
        run = self.run_script(source, GETPPID, "-i", "10", "--duration", "20", timeout_s=10)
        self.assertEqual([run.status, run.json], [1, [{"exit": 1}]], run.stderr)
        self.assertRegex(run.errors[-1], r"^perfscope: wait for events: Bad file descriptor \(did the script close ")

    def test_on_error_stop_ends_at_the_first(self):
        run = self.run_act("1 / 0", "sample", "--on-error=stop")
        self.assertEqual([run.status, run.json, run.errors[-1]],
                         [1, [{"exit": 1}], "perfscope: the script raised 1 exception; 1 shown above"])


@skip_unless_tracepoints
class TestTurns(LiveTestCase):
    """Handlers slower than the stream: intervals, signals, rings and threads get their turns."""

    STORM = ["getppid", "100000000"]

    def run_storm(self, source, *options):
        """Two seconds of it, with an interval of 100 ms; the stop afterwards takes at most two more."""
        count = "intervals = 0\ndef __interval__():\n    global intervals\n    intervals += 1\n"
        end = "def __exit__(): print([intervals])\n"
        start = time.monotonic()
        run = self.run_script(source + count + end, GETPPID, "-i", "100", "--duration", "2", *options, load=self.STORM)
        self.assertLess(time.monotonic() - start, 4.5)
        self.assertEqual([len(run.json), len(run.json[0])], [1, 1])
        self.assertTrue(16 <= run.json[0][0] <= 24, run.json)
        return run

    def test_sleeping_handler(self):
        self.assertEqual(self.run_storm("import time\ndef __sample__(event): time.sleep(0.001)\n").status, 0)

    def test_handler_that_raises(self):
        run = self.run_storm("def __sample__(event): 1 / 0\n")
        self.assertEqual([run.status, run.stderr.count("Traceback")], [1, 1])

    def test_thread_of_the_script_gets_its_share_at_full_load(self):
        source = """
import threading, time
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.001)
        ticks += 1
threading.Thread(target=tick, daemon=True).start()
def __sample__(event): pass
def __exit__(): print([int(ticks > 20)])
"""
        run = self.run_script(source, GETPPID, "--duration", "1", load=self.STORM)
        self.assertEqual([run.status, run.json], [0, [[1]]])

    @skip_unless_two_cpus
    def test_ring_of_each_cpu_gets_its_turn(self):
        cpus = sorted(os.sched_getaffinity(0))[:2]
        loads = [subprocess.Popen([LOAD, "--cpu", str(cpu), *self.STORM], stdout=subprocess.DEVNULL) for cpu in cpus]
        for load in loads:
            self.addCleanup(load.wait)
            self.addCleanup(load.kill)
        source = "import time\nturns = []\ndef __sample__(event):\n    turns.append(event._cpu)\n    time.sleep(0.001)\n"
        end = "def __exit__(): print([min(turns[400:600].count(cpu) for cpu in CPUS)])\n".replace("CPUS", repr(cpus))
        run = self.run_script(source + end, GETPPID, "--no-order", "--duration", "2",
                              "-p", ",".join(str(load.pid) for load in loads), timeout_s=10)
        self.assertEqual(run.status, 0)
        self.assertTrue(run.json[0][0] >= 20, run.json)

    def test_handler_that_prints_and_traces_itself_is_stopped(self):
        path = self.write("out", "")
        script = self.write("script.py", "def __sample__(event): print(event)\n" + EXIT)
        observer = Observer(["python", "-e", "raw_syscalls:*", "-o", path, script])
        self.addCleanup(observer.close)
        while not os.stat(path).st_size:  # it may never wait for events
            self.assertIsNone(observer.process.poll())
            time.sleep(0.01)
        time.sleep(0.5)
        start = time.monotonic()
        run = observer.stop()
        self.assertLess(time.monotonic() - start, 2)
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            self.assertEqual([run.status, file.read().splitlines()[-1]], [0, '{"exit": 1}'])

    def stop_stuck(self, source, number):
        observer = Observer(["python", "-e", GETPPID, "-i", "50", "-p", str(os.getpid()), self.write("script.py", source)])
        self.addCleanup(observer.close)
        self.assertEqual(observer.process.stdout.readline(), "stuck\n")
        time.sleep(0.1)
        start = time.monotonic()
        run = observer.stop(number)
        self.assertLess(time.monotonic() - start, 2)
        self.assertEqual([run.status, run.json], [0, [{"exit": 1}]])

    def test_any_function_that_does_not_return_is_interrupted(self):
        bodies = {"while True: pass": signal.SIGINT, "time.sleep(20)": signal.SIGTERM,
                  "os.read(os.pipe()[0], 1)": signal.SIGHUP, "threading.Semaphore(0).acquire()": signal.SIGINT}
        for name in "__init__", "__interval__":
            for body, number in bodies.items():
                with self.subTest(name=name, body=body):
                    source = f"import os, threading, time\n{PASS}def {name}():\n    print('stuck', flush=True)\n    {body}\n"
                    self.stop_stuck(source + EXIT, number)

    def test_a_million_events_leave_nothing_behind(self):
        source = """
import os
n = first = 0
def measure():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
def __init__():
    global files
    files = len(os.listdir("/proc/self/fd"))
def __sample__(event):
    global n, first
    n += 1
    event.common_pid, event._comm, event.get("nothing")
    if n % 100 == 0:
        str(event), event.to_dict()
    if n == 100_000:
        first = measure()
def __lost__(start, end, lost):
    global n
    n += lost
def __exit__(): print([n, int(measure() - first < 1 << 20), len(os.listdir("/proc/self/fd")) - files])
"""
        run = self.run_script(source, GETPPID, "-m", "16M", load=["getppid", "1000000"])
        # One descriptor more: the loop's.
        self.assertEqual([run.status, run.json[0][:2]], [0, [1000000, 1]])
        self.assertLessEqual(run.json[0][2], 1)


@skip_unless_tracepoints
class TestFullPipe(LiveTestCase):
    """Nobody reads stdout: what is in it cannot all be written, the stop does not wait for that."""

    STUCK = "perfscope: nobody reads the output, and its pipe is full: ended 2 s after the request to stop, the rest is lost"
    FLOOD = "def {}(): print('x' * 200000, flush=True)\n"

    @staticmethod
    def environment(**more):
        return {**{name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}, **more}

    def stop_unread(self, source, *options, number=signal.SIGINT):
        observer = Observer(self.script_arguments(source, "sched:sched_switch", options, ()), env=self.environment())
        self.addCleanup(observer.close)
        end = time.monotonic() + 20
        while not self.is_writing(observer) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertTrue(self.is_writing(observer))
        start = time.monotonic()
        observer.send_signal(number)
        status = observer.process.wait(20)
        self.assertLess(time.monotonic() - start, 4)
        self.assertEqual([status, observer.process.stderr.read().splitlines()[-1]], [1, self.STUCK])

    @staticmethod
    def is_writing(observer):
        with open(f"/proc/{observer.pid}/wchan", encoding="ascii") as file:
            return "pipe_write" in file.read()

    def test_handler_and_exit_are_stopped(self):
        source = "def __sample__(event): print(str(event) * 100)\n" + self.FLOOD.format("__exit__")
        for number in signal.SIGINT, signal.SIGTERM:
            with self.subTest(number=number):
                self.stop_unread(source, number=number)

    def test_exit_of_a_run_that_ended_by_itself_is_stopped(self):
        self.stop_unread(PASS + self.FLOOD.format("__exit__"), "--duration", "0.1")

    def test_slow_reader_gets_all(self):
        for more in {}, {"PYTHONUNBUFFERED": "1"}:
            with self.subTest(**more):
                observer = self.start_script(PASS + self.FLOOD.format("__exit__"), GETPPID, env=self.environment(**more))
                observer.send_signal(signal.SIGINT)
                size = 0
                while part := os.read(observer.process.stdout.fileno(), 20000):
                    size += len(part)
                    time.sleep(0.3)
                self.assertEqual([observer.process.wait(20), size], [0, 200001])


@skip_unless_tracepoints
class TestHangup(LiveTestCase):
    SOURCE = """
import os, time
n = 0
def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
def __sample__(event):
    global n
    n += 1
    print([n])
    if n == 1:  # so long that a turn is one event from now on
        open(folder + "/begun", "w").close()
        wait_for(folder + "/sent")
    if n == 2:  # in its own turn, with more behind it: nothing has been flushed
        wait_for(folder + "/moved")
def __exit__():
    print("[-1]")
"""

    def path(self, name):
        return os.path.join(self.folder, name)

    def wait_for(self, name):
        while not os.path.exists(self.path(name)):
            time.sleep(0.01)

    def test_what_was_printed_before_is_in_the_old_file(self):
        observer = self.start_script(f"folder = {self.folder!r}\n" + self.SOURCE, GETPPID, "-p", str(os.getpid()),
                                     "-o", self.path("out"), env=dict(os.environ, PYTHONUNBUFFERED=""))
        os.getppid()
        self.wait_for("begun")
        for _ in range(3):
            os.getppid()
        time.sleep(0.1)
        self.write("sent", "")
        time.sleep(0.1)
        observer.send_signal(signal.SIGHUP)
        os.rename(self.path("out"), self.path("moved"))
        time.sleep(0.3)
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        with open(self.path("moved"), encoding="ascii") as old, open(self.path("out"), encoding="ascii") as new:
            self.assertEqual([old.read().split(), new.read().split()], [["[1]", "[2]"], ["[3]", "[4]", "[-1]"]])


# n events; what children that were forked left as their status.
FORK = """
import os, sys
n, codes = 0, []
def fork():
    pid = os.fork()
    if pid:
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return not pid
def __exit__(): print([n, codes])
"""


@skip_unless_tracepoints
class TestProcessesOfTheScript(LiveTestCase):
    def assert_prints(self, source, *values, errors=0, load=("getppid", "100")):
        run = self.run_script(source, GETPPID, load=list(load), timeout_s=20)
        self.assertEqual([run.status, run.json, len(run.errors)], [0, list(values), errors])

    def handler(self, child):
        return FORK + f"def __sample__(event):\n    global n; n += 1\n    if n == 50 and fork():\n        {child}\n"

    def test_child_reads_the_event_at_hand(self):
        child = "print([int(event.common_pid == event._pid), event.to_dict()['__syscall_nr']], flush=True); os._exit(3)"
        nr = [1, {"x86_64": 110}.get(os.uname().machine, 173)]
        self.assert_prints(self.handler(child), nr, [100, [3]])

    def test_child_reads_the_events_that_were_kept(self):
        source = """
kept = []
def __sample__(event):
    global n; n += 1
    kept.append(event)
    if n == 50 and fork():
        print([sum(event.common_pid == event._pid for event in kept)], flush=True)
        os._exit(0)
"""
        self.assert_prints(FORK + source, [50], [100, [0]])

    def test_child_that_returns_ends_and_leaves_the_run_alone(self):
        self.assert_prints(self.handler("print([-1])"), [-1], [100, [0]])

    def test_child_keeps_the_status_of_its_system_exit(self):
        self.assert_prints(self.handler("sys.exit(7)"), [100, [7]])

    def test_child_that_raises_has_status_1(self):
        run = self.run_script(self.handler("1 / 0"), GETPPID, load=["getppid", "100"])
        self.assertEqual([run.status, run.json, run.errors[0]],
                         [0, [[100, [1]]], "perfscope: __sample__ raised ZeroDivisionError: division by zero"])

    def test_child_of_any_function_ends_there(self):
        count = "def __sample__(event):\n    global n; n += 1\n"
        places = {"module": "fork()\n" + count, "init": "def __init__(): fork()\n" + count,
                  "system exit": "if fork(): sys.exit()\n" + count}
        for name, source in places.items():
            with self.subTest(place=name):
                self.assert_prints(FORK + source, [100, [0]])

    def test_child_of_exit_and_atexit_does_not_end_the_run_twice(self):
        source = """
import atexit, os
def fork():
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    print([int(bool(pid))], flush=True)
def __sample__(event): pass
"""
        self.assert_prints(source + "__exit__ = lambda: fork()\n", [0], [1])
        self.assert_prints(source + "atexit.register(fork)\n", [0], [1])

    def test_processes_of_multiprocessing(self):
        source = """
import multiprocessing
def square(x): return x * x
def __sample__(event):
    global n; n += 1
    if n == 50:
        with multiprocessing.get_context(METHOD).Pool(2) as pool:
            codes.extend(pool.map(square, [1, 2, 3]))
"""
        for method in "fork", "spawn":
            with self.subTest(method=method):
                self.assert_prints(FORK + source.replace("METHOD", repr(method)), [100, [1, 4, 9]])

    def test_programs_and_threads_of_a_handler(self):
        source = """
import asyncio, subprocess, threading
async def wait():
    await asyncio.sleep(0.01)
    codes.append("async")
def __sample__(event):
    global n; n += 1
    if n == 50:
        codes.append(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout)
        thread = threading.Thread(target=lambda: asyncio.run(wait()))
        thread.start()
        thread.join()
"""
        run = self.run_script(FORK + source, GETPPID, load=["getppid", "100"])
        self.assertEqual([run.status, run.lines[-1]], [0, "[100, ['hi\\n', 'async']]"])


if __name__ == "__main__":
    unittest.main()
