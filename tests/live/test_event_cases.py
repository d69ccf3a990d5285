# SPDX-License-Identifier: MIT
"""Values that tools of this kind got wrong, and events that are kept: names, clocks and counters of real events."""

import collections
import glob
import os
import re
import subprocess
import sys
import threading
import time

import unittest

from livetest import COMMAND, TRACEFS, LiveTestCase, run_load, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
REPR = "def __sample__(event): print(ascii([({})]))\n"


@skip_unless_tracepoints
class TestValues(LiveTestCase):
    def read(self, expression, events, program, *options):
        """What @expression is for each event of a Python program."""
        run = self.run_command(*self.script_arguments(REPR.format(expression), events, options, []),
                               "--run", sys.executable, "-c", program)
        self.assertEqual([run.status, run.stderr], [0, ""])
        return [eval(line)[0] for line in run.lines]  # pylint: disable=eval-used

    def test_directory_of_openat_is_negative_and_its_flags_are_as_given(self):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        program = f"import os\ntry: os.open('/nowhere/perfscope', {flags}, 0o642)\nexcept OSError: pass"
        got = self.read("event.dfd, event.flags, event.mode", "syscalls:sys_enter_openat", program)
        self.assertEqual([call for call in got if call[1] & os.O_EXCL], [(-100, flags | os.O_CLOEXEC, 0o642)])

    def test_node_of_kmalloc_is_negative(self):
        got = self.read("event.node", "kmem:kmalloc", "import os; os.pipe()")
        # An interrupt may ask for its own node.
        nodes = {0} | {int(path.rpartition("node")[2]) for path in glob.glob("/sys/devices/system/node/node[0-9]*")}
        self.assertEqual((set(got) - nodes, collections.Counter(got).most_common(1)[0][0]), ({-1}, -1))

    def test_arguments_of_raw_system_calls_are_six_unsigned_integers(self):
        program = ("import ctypes\ncall = ctypes.CDLL(None).syscall\ncall.argtypes = [ctypes.c_ulong] * 7\n"
                   "call(110, 1, 2**64 - 1, 2**63, 0xfffffffffffffff9, 5, 6)")
        got = self.read("event.args", "raw_syscalls:sys_enter/id==110/", program)
        self.assertEqual(got, [(1, 2**64 - 1, 2**63, 0xfffffffffffffff9, 5, 6)])

    def test_name_that_is_not_utf8_is_text_everywhere(self):
        program = ("import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n"
                   "os.getppid()\ntime.sleep(0.01)")
        got = self.read("event._event, event._comm, event.get('prev_comm'), event.get('newcomm')",
                        ["task:task_rename", GETPPID, "sched:sched_switch//"], program)
        odd = "\udcff\udcfe"
        self.assertEqual([values for values in got if values[0] == GETPPID], [(GETPPID, odd, None, None)])
        self.assertEqual([values[3] for values in got if values[0] == "task:task_rename"][-1], odd)
        self.assertEqual({(values[1], values[2]) for values in got if values[2] and odd in values}, {(odd, odd)})
        self.assertEqual({type(value) for values in got for value in values[:2]}, {str})

    def test_comm_follows_renaming_exec_fork_and_exit(self):
        run = self.run_script("def __sample__(event): print([event._event, event._comm])\n",
                              [GETPPID, "sched:sched_process_exit"], "--inherit",
                              load=["getppid", "1", "+", "rename", "one", "+", "getppid", "1", "+", "rename", "two", "+",
                                    "fork", "1", "+", "exec", "1", "+", "getppid", "1"])
        getppid, leave = GETPPID, "sched:sched_process_exit"
        self.assertEqual([eval(line) for line in run.lines if line.startswith("['")], [  # pylint: disable=eval-used
            [getppid, "load"], [getppid, "one"], [leave, "two"], [leave, "true"], [getppid, "two"], [leave, "two"]])

    def test_page_faults_between_two_calls_are_counted_exactly(self):
        """The first touch warms up what the load itself uses."""
        load = "touch 50 + getppid 1 + touch 10 + getppid 1 + touch 200 + getppid 1 + getppid 1".split()
        run = self.run_script("def syscalls__sys_enter_getppid(event): print([event._counters['page-faults']])\n",
                              f"{{cpu-clock,page-faults,{GETPPID}}}", load=load)
        counts = [counts[0] for counts in run.json]
        self.assertEqual([after - before for before, after in zip(counts, counts[1:])], [10, 200, 0])

    def test_clock_of_time_is_the_one_asked_for(self):
        clocks = {"monotonic": time.CLOCK_MONOTONIC, "monotonic_raw": time.CLOCK_MONOTONIC_RAW,
                  "boottime": time.CLOCK_BOOTTIME, "realtime": time.CLOCK_REALTIME, "tai": time.CLOCK_TAI}
        for name, clock in clocks.items():
            with self.subTest(clock=name):
                program = (f"import os, time\nfor i in range(3):\n a = time.clock_gettime_ns({clock}); os.getppid()\n"
                           f" print([a, time.clock_gettime_ns({clock})], flush=True)")
                run = self.run_command("python", "-e", GETPPID, "--clock", name,
                                       self.write("x.py", REPR.format("event._time")), "--run", sys.executable, "-c", program)
                bounds = [bound for bound in run.json if len(bound) == 2]
                times = [value[0] for value in run.json if len(value) == 1]
                self.assertEqual([len(bounds), len(times)], [3, 3])
                # The clock of the kernel's records is read without the lock, so that it may lag a little.
                for (before, after), at in zip(bounds, times):
                    self.assertTrue(before - 100_000 <= at <= after + 100_000, (before, at, after))

    def test_realtime_is_the_wall_clock_of_the_event(self):
        program = "import os, time\na = time.time_ns(); os.getppid(); os.write(1, b'[%d, %d]\\n' % (a, time.time_ns()))"
        run = self.run_command("python", "-e", GETPPID, self.write("x.py", REPR.format("event._realtime")),
                               "--run", sys.executable, "-c", program)
        before, after = next(bound for bound in run.json if len(bound) == 2)
        at, = next(value for value in run.json if len(value) == 1)
        self.assertTrue(before - 10_000_000 <= at <= after + 10_000_000, (before, at, after))


KEEP = """
import atexit, threading
kept = []
def __sample__(event):
    kept.append(event)
def told(where):
    print([where, len(kept), sum(e.args[0] == i for i, e in enumerate(kept)), sum(e.id == 110 for e in kept),
           len({e._time for e in kept}), sorted({e._comm for e in kept}), len({e._pid for e in kept})], flush=True)
def __exit__():
    told("exit")
    thread = threading.Thread(target=told, args=["thread"])
    thread.start()
    thread.join()
atexit.register(told, "atexit")
"""


@skip_unless_tracepoints
class TestKeeping(LiveTestCase):
    COUNT = 100_000

    def test_events_kept_by_the_thousands_stay_whole(self):
        """With rings of one page, which the kernel writes over again and again."""
        program = self.write("calls.py", "import ctypes, time\ncall = ctypes.CDLL(None).syscall\n"
                             f"for i in range({self.COUNT}):\n    call(110, i)\n    if i % 20 == 19: time.sleep(0.0002)\n")
        for options, where in ((["-m", "32M"], "no loss"), (["-m", "1"], "one page")):
            with self.subTest(where):
                source = KEEP if where == "no loss" else KEEP.replace("e.args[0] == i", "i <= e.args[0]")
                run = self.run_script(source, "raw_syscalls:sys_enter/id==110/", *options, load=None,
                                      args=["--run", sys.executable, program])
                self.assertEqual(run.status, 0)
                tellings = [eval(line) for line in run.lines]  # pylint: disable=eval-used
                self.assertEqual([telling[0] for telling in tellings], ["exit", "thread", "atexit"])
                for telling in tellings:
                    nr = telling[1]
                    self.assertEqual(telling[1:5], [nr] * 4)
                    self.assertEqual(telling[5:], [[os.path.basename(sys.executable)], 1])
                    if where == "no loss":
                        self.assertEqual(nr, self.COUNT)


@skip_unless_tracepoints
class TestTemplate(LiveTestCase):
    def template(self, event):
        result = subprocess.run([COMMAND, "python", "-e", event, "--help"], capture_output=True, text=True, check=False)
        self.assertEqual([result.returncode, result.stderr], [0, ""], event)
        return result.stdout

    def test_template_of_each_system_is_valid(self):
        systems = [name for name in sorted(os.listdir(f"{TRACEFS}/events"))
                   if name != "ftrace" and os.path.isdir(f"{TRACEFS}/events/{name}")]
        nr = 0
        for system in systems:
            text = self.template(f"{system}:*")
            compile(text, system, "exec")
            names = [name for name in os.listdir(f"{TRACEFS}/events/{system}")
                     if os.path.exists(f"{TRACEFS}/events/{system}/{name}/id")]
            handlers = re.findall(r"^def (\w+)\(event", text, re.M)
            wanted = {re.sub(r"\W", "_", f"{system}__{name}") for name in names}
            self.assertEqual(wanted - set(handlers), set(), system)
            nr += len(names)
        self.assertGreater(nr, 1000)

    def test_template_runs_unchanged(self):
        events = "sched:sched_switch,syscalls:sys_enter_getppid,kmem:kmalloc,sched:sched_process_exit"
        script = self.write("template.py", self.template(events))
        run = self.run_command("python", "-e", events, script, "--run", "/bin/true")
        self.assertEqual([run.status, run.stderr], [0, ""])


if __name__ == "__main__":
    unittest.main()
