# SPDX-License-Identifier: MIT
"""What tests on real events share: run the command with a script, make a load of known size, skip with a reason.

    @skip_unless_tracepoints
    class TestDelivery(LiveTestCase):
        def test_every_call_arrives(self):
            run = self.run_script(COUNT, "syscalls:sys_enter_getppid", load=["getppid", 1000])
            self.assertEqual(run.json, [{"n": 1000}])
"""

import fcntl
import functools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import termios
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PS_TEST_BUILD", os.path.join(ROOT, "build"))
COMMAND = os.environ.get("PERFSCOPE", os.path.join(BUILD, "perfscope"))
LOAD = os.environ.get("PS_TEST_LOAD", os.path.join(BUILD, "tests", "load"))
TRACEFS = os.environ.get("PERFSCOPE_TRACEFS", "/sys/kernel/tracing")
TIMEOUT_S = 60

# With it, print() writes a line and its end one by one, and another program's line comes between.
os.environ.pop("PYTHONUNBUFFERED", None)

# Numbers of the system calls in which a process waits for events: x86-64, and those common to all others.
WAITING_CALLS = {"7", "22", "73", "232", "271", "281", "441"}

READING_CALL = "0" if platform.machine() == "x86_64" else "63"


class Run:
    """A command that has ended: its status, stdout and stderr, and what its load told."""

    def __init__(self, status, stdout, stderr, load=None):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.load = load

    @property
    def lines(self):
        return self.stdout.splitlines()

    @property
    def errors(self):
        return self.stderr.splitlines()

    @property
    def json(self):
        """The lines of stdout that are JSON objects or lists, parsed; the load's own line is not among them."""
        values = [json.loads(line) for line in self.lines if line.startswith(("{", "["))]
        return [value for value in values if not (isinstance(value, dict) and "actions" in value)]


class Observer:
    """A command that runs: `wait_until_ready`, make loads, then `stop`."""

    def __init__(self, arguments, command=COMMAND, **options):
        self.process = subprocess.Popen([command, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="surrogateescape",
                                        **options)

    @property
    def pid(self):
        return self.process.pid

    def is_waiting(self):
        """Whether the main thread waits for events. It begins to only after all of them are enabled."""
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0] in WAITING_CALLS

    def wait_until_ready(self, timeout_s=TIMEOUT_S):
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                run = self.wait()
                raise AssertionError(f"ended with status {run.status} before it was ready: {run.stderr}")
            if self.is_waiting():
                return
            time.sleep(0.002)
        raise AssertionError(f"not ready after {timeout_s} s")

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGINT, timeout_s=TIMEOUT_S):
        """Send the signal, wait for the end, and return the Run."""
        self.send_signal(number)
        return self.wait(timeout_s)

    def wait(self, timeout_s=TIMEOUT_S):
        try:
            stdout, stderr = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            stdout, stderr = self.process.communicate()
            raise AssertionError(f"still running after {timeout_s} s; stdout: {stdout}; stderr: {stderr}") from None
        return Run(self.process.returncode, stdout, stderr)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class HeldLoad:
    """A load that stops at each of its `wait` actions until `go`."""

    def __init__(self, *arguments, command=None):
        self.process = subprocess.Popen(command or [LOAD, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.wait_until_held()

    @property
    def pid(self):
        return self.process.pid

    def is_held(self):
        """Whether it has taken what was written and waits for more."""
        unread = fcntl.ioctl(self.process.stdin, termios.FIONREAD, b"\0" * 4)
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
            words = file.read().split()
        return unread == b"\0" * 4 and len(words) > 1 and words[:2] == [READING_CALL, "0x0"]

    def wait_until_held(self, timeout_s=TIMEOUT_S):
        end = time.monotonic() + timeout_s
        while not self.is_held():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the load is not held; status {self.process.poll()}")
            time.sleep(0.001)

    def go(self):
        """Let it go on, and wait until it is held again."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.wait_until_held()

    def finish(self):
        """Let it go on to its end."""
        self.process.communicate(b"\n", timeout=TIMEOUT_S)

    def status(self, file, name):
        """The number that /proc/PID/FILE has behind @name."""
        with open(f"/proc/{self.pid}/{file}", encoding="ascii") as lines:
            return int(re.search(rf"^{name}:\s+(\d+)", lines.read(), re.M)[1])

    def nr_faults(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return int(words[7]) + int(words[9])

    def nr_switches(self):
        return self.status("status", "voluntary_ctxt_switches") + self.status("status", "nonvoluntary_ctxt_switches")

    def close(self):
        self.process.kill()
        self.process.communicate()


def run_load(*arguments, timeout_s=TIMEOUT_S):
    """Run the load program to its end; what it told, parsed: {"pid": ..., "actions": [...]}."""
    result = subprocess.run([LOAD, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=timeout_s, check=False)
    if not result.stdout:
        raise AssertionError(f"load {arguments}: status {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


class LiveTestCase(unittest.TestCase):
    """A test that runs the command. Each has a folder of its own, `self.folder`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perfscope-live-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        """Write a file into the folder of this test and return its path."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_command(self, *arguments, timeout_s=TIMEOUT_S, **options):
        """Run the command to its end."""
        observer = Observer(arguments, **options)
        self.addCleanup(observer.close)
        return observer.wait(timeout_s)

    def script_arguments(self, source, events, options, args):
        script = self.write("script.py", source)
        events = [events] if isinstance(events, str) else events
        return ["python", *(word for event in events for word in ("-e", event)), *options, script, *args]

    def run_script(self, source, events, *options, load=None, args=(), timeout_s=TIMEOUT_S, **process):
        """Run a script on @events to its end.

        With @load (the load program's arguments) the load is started by --run: nothing of it is missed, it alone is
        observed, and `run.load` is what it told. Without, @options must say when to end (-N, --duration).
        """
        arguments = self.script_arguments(source, events, options, args)
        if load is not None:
            arguments += ["--run", LOAD, *load]
        run = self.run_command(*arguments, timeout_s=timeout_s, **process)
        run.load = next((json.loads(line) for line in run.lines if line.startswith('{"pid": ') and '"actions": ' in line),
                        None)
        return run

    def hold_load(self, *arguments, command=None):
        """Start a load and return it once it stands at its first `wait`."""
        load = HeldLoad(*arguments, command=command)
        self.addCleanup(load.close)
        return load

    def start_script(self, source, events, *options, args=(), **process):
        """Start a script on @events and return its Observer once all events are enabled."""
        observer = Observer(self.script_arguments(source, events, options, args), **process)
        self.addCleanup(observer.close)
        observer.wait_until_ready()
        return observer


@functools.lru_cache(maxsize=None)
def why_no_tracepoints():
    """Why this user cannot sample tracepoints here, in words; None: it can."""
    path = os.path.join(TRACEFS, "events", "syscalls", "sys_enter_getppid", "id")
    try:
        with open(path, encoding="ascii") as file:
            file.read()
    except OSError as error:
        return f"tracepoints are closed here: {path}: {error.strerror}"
    level = read_paranoid_level()
    if os.geteuid() != 0 and level > -1:
        return f"tracepoints of other processes need root or CAP_PERFMON (perf_event_paranoid is {level})"
    return None if level is not None else "this kernel has no perf events"


def read_paranoid_level():
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return None


def has_hardware_pmu():
    devices = "/sys/bus/event_source/devices"
    return os.path.isdir(devices) and any(name.startswith(("cpu", "armv8")) for name in os.listdir(devices))


skip_unless_tracepoints = unittest.skipIf(why_no_tracepoints() is not None, why_no_tracepoints() or "")
skip_unless_root = unittest.skipIf(os.geteuid() != 0, "needs root")
skip_unless_two_cpus = unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
skip_unless_hardware_pmu = unittest.skipIf(not has_hardware_pmu(), "no hardware PMU here")
skip_if_hardware_pmu = unittest.skipIf(has_hardware_pmu(), "there is a hardware PMU here")
