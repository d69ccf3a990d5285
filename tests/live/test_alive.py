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


if __name__ == "__main__":
    unittest.main()
