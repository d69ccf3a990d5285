# SPDX-License-Identifier: MIT
"""The tests' own trace instances: what a killed test leaves, the next removes."""

import os
import signal
import subprocess
import sys
import unittest

from kerneltrace import Instance, start_time
from livetest import LiveTestCase, skip_unless_root, skip_unless_tracepoints

HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from kerneltrace import Instance
with Instance("held") as instance:
    print(instance.path, flush=True)
    time.sleep(60)
"""


@skip_unless_tracepoints
@skip_unless_root
class TestInstances(LiveTestCase):
    def hold(self):
        """A process that holds an instance, and its path."""
        process = subprocess.Popen([sys.executable, "-c", HOLD, os.path.dirname(os.path.abspath(__file__))],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGINT)
        return process, process.stdout.readline().strip()

    def test_only_those_of_killed_tests_are_removed(self):
        (killed, left), (_, held) = self.hold(), self.hold()
        killed.kill()
        killed.wait()
        self.assertEqual([os.path.exists(path) for path in (left, held)], [True, True])
        with Instance("own"):
            self.assertEqual([os.path.exists(path) for path in (left, held)], [False, True])

    def test_a_number_that_another_process_has_now(self):
        path = f"{Instance('x').path.rpartition('_')[0]}_{start_time(os.getpid()) - 1}"
        os.mkdir(path)
        with Instance("own") as own:
            self.assertEqual([os.path.exists(path), os.path.exists(own.path)], [False, True])


if __name__ == "__main__":
    unittest.main()
