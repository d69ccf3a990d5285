# SPDX-License-Identifier: MIT
"""Alive whatever the rate and whatever the script does: turns, stops, processes of the script, output that is moved away."""

import os
import signal
import subprocess
import time
import unittest

from livetest import COMMAND, LOAD, LiveTestCase, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
PASS = "def __sample__(event): pass\n"
EXIT = "\ndef __exit__(): print('{\"exit\": 1}', flush=True)\n"


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
