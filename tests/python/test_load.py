# SPDX-License-Identifier: MIT
"""The load program does what it is told, tells it, and refuses what it does not know."""

import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOAD = os.environ.get("PS_TEST_LOAD", os.path.join(ROOT, "build", "tests", "load"))


class TestLoad(unittest.TestCase):
    def run_load(self, *arguments, **options):
        return subprocess.run([LOAD, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False,
                              **options)

    def actions(self, *arguments, **options):
        result = self.run_load(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)["actions"]

    def test_actions_run_in_order_and_tell_their_counts(self):
        actions = self.actions("rename", "worker", "+", "getppid", 1000, "+", "touch", 20, "+", "open", "/nowhere", 3,
                               "+", "kill", 10, 2, "+", "fork", 3, "+", "threads", 2, 5)
        self.assertEqual([(action["action"], action["count"]) for action in actions],
                         [("rename", 1), ("getppid", 1000), ("touch", 20), ("open", 3), ("kill", 2), ("fork", 3),
                          ("threads", 2)])

    def test_a_rate_is_kept(self):
        [action] = self.actions("getppid", 1001, 10000)
        # The last of 1001 calls at 10,000 a second is due 100 ms after the first.
        self.assertGreaterEqual(action["wall_ns"], 100_000_000)

    def test_fresh_pages_fault_once_each(self):
        def faults(count):
            code = ("import os, resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL);"
                    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)")
            return int(subprocess.run([sys.executable, "-c", code, LOAD, "touch", str(count)],
                                      capture_output=True, text=True, check=True).stdout)
        # Its own start takes a few faults more or less.
        self.assertAlmostEqual(faults(5000) - faults(1000), 4000, delta=50)

    def test_wait_ends_with_stdin(self):
        [wait, call] = self.actions("wait", "+", "getppid", 1, input="\n")
        self.assertEqual((wait["count"], call["count"]), (1, 1))

    def test_exit_gives_the_status(self):
        self.assertEqual(self.run_load("exit", 7).returncode, 7)

    def test_what_it_does_not_know_is_refused(self):
        result = self.run_load("dance")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("load: dance: no such action; there are: getppid touch"), result.stderr)
        result = self.run_load("getppid", "many")
        self.assertEqual((result.returncode, result.stderr), (2, "load: many: not a count\n"))


if __name__ == "__main__":
    unittest.main()
