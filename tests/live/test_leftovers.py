# SPDX-License-Identifier: MIT
"""What killed runs left in tracefs is removed by the next ones, also by several at once.

Each test has a namespace of processes of its own: what is left there, no other perfscope of the machine sweeps.
"""

import os
import re
import subprocess
import time
import unittest

from livetest import COMMAND, LiveTestCase, skip_unless_root, skip_unless_tracepoints
from test_probes import EVENTS_FILE, PROBED, address_of, write_events

EVENTS = ["-e", f"uprobe:steps@{PROBED} n=%di:s32", "-e", f"usdt:tests:twice@{PROBED}"]  # twice stands at two places
KILLED = "import os, signal\ndef __init__(): os.kill(os.getpid(), signal.SIGKILL)\ndef __sample__(event): pass\n"
NOTHING = "def __sample__(event): pass\n"
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
MANY = 200


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


@skip_unless_tracepoints
@skip_unless_root
@unittest.skipUnless(os.path.exists(EVENTS_FILE), "this kernel has no uprobes")
@unittest.skipIf(subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL, check=False).returncode, "no namespaces can be made here")
class TestLeftovers(LiveTestCase):
    def setUp(self):
        super().setUp()
        holder = subprocess.Popen([*UNSHARE, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        holder.stdout.readline()  # it is there, with a /proc of its own
        init = child_of(holder.pid)
        self.space = os.stat(f"/proc/{init}/ns/pid").st_ino
        self.inside = ["nsenter", f"--target={init}", "--pid", "--mount"]
        self.killed, self.nothing = self.write("killed.py", KILLED), self.write("nothing.py", NOTHING)
        self.addCleanup(self.remove_all)

    def probes(self):
        with open(EVENTS_FILE, encoding="utf-8") as file:
            return re.findall(rf":(perfscope_\d+_\d+_{self.space}/\S+)", file.read())

    def remove_all(self):
        for probe in self.probes():
            write_events(f"-:{probe}\n")

    def start(self, script, *options):
        return subprocess.Popen([*self.inside, COMMAND, "python", *EVENTS, *options, script, "--run", PROBED, "1"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_next(self, *options):
        process = self.start(self.nothing, *options)
        self.addCleanup(process.communicate)
        return process

    def assert_next_removes_all(self):
        process = self.run_next()
        self.assertEqual((*process.communicate(timeout=60), process.returncode), ("", "", 0))
        self.assertEqual(self.probes(), [])

    def test_what_a_killed_run_leaves_the_next_removes(self):
        self.start(self.killed).communicate(timeout=60)
        self.assertEqual(len(self.probes()), 3)
        self.assert_next_removes_all()

    def test_a_run_that_was_killed_and_that_nobody_waits_for(self):
        # The shell becomes cat, which waits for no child.
        parent = subprocess.Popen([*self.inside, "sh", "-c", '"$@" & exec cat', "sh", COMMAND, "python", *EVENTS,
                                   self.killed, "--run", PROBED, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(parent.communicate)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        self.wait_until_zombie(child_of(child_of(parent.pid)))
        self.assertEqual(len(self.probes()), 3)
        self.assert_next_removes_all()

    def wait_until_zombie(self, pid):
        end = time.monotonic() + 60
        state = None
        while state != "Z" and time.monotonic() < end:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                state = file.read().rpartition(")")[2].split()[0]
            time.sleep(0.01)
        self.assertEqual(state, "Z")

    def leave_many(self):
        address = address_of("probed_function")
        for i in range(MANY):
            # Above every number of a process, and no two runs alike.
            write_events(f"p:perfscope_{10**8 + i % 7}_1_{self.space}/left_{i} {PROBED}:{address:#x}\n")
        self.assertEqual(len(self.probes()), MANY)

    def test_all_of_many_that_were_left_are_removed(self):
        self.leave_many()
        self.assert_next_removes_all()

    def test_runs_that_start_at_once_remove_each_once_and_tell_of_nothing_else(self):
        self.leave_many()
        runs = [self.run_next("-v") for _ in range(5)]
        told = [line for run in runs for line in run.communicate(timeout=60)[1].splitlines() if "left by" in line]
        self.assertEqual([run.returncode for run in runs], [0] * len(runs))
        self.assertEqual(self.probes(), [])
        self.assertEqual([line for line in told if not line.endswith(": removed")], [])
        self.assertEqual([len(told), len(set(told))], [MANY, MANY])


if __name__ == "__main__":
    unittest.main()
