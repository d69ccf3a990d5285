# SPDX-License-Identifier: MIT
"""What goes wrong outside of the script: closed and full outputs, broken specs, few descriptors, foreign environments."""

import os
import random
import re
import resource
import subprocess
import sys
import time
import unittest

from livetest import COMMAND, LOAD, LiveTestCase, skip_unless_root, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
PASS = "def __sample__(event): pass\n"
PRINT = "def __sample__(event): print('[1]')\n"
TEN = ["--run", LOAD, "getppid", "10"]


class ErrorTestCase(LiveTestCase):
    def shell(self, redirection, source, *options, events=GETPPID):
        """Run a script on ten events with @redirection of bash behind the command."""
        words = [COMMAND, "python", "-e", events, *options, self.write("script.py", source), *TEN]
        return subprocess.run(["bash", "-c", f'"$@" {redirection}', "bash", *words], capture_output=True, text=True,
                              check=False, timeout=30, cwd=self.folder,
                              env=dict(os.environ, PYTHONUNBUFFERED=""))


@skip_unless_tracepoints
class TestStandardStreams(ErrorTestCase):
    def test_closed_ones_do_not_catch_what_is_opened(self):
        run = self.shell(">&-", "import os\ntext = 'stdout %s' % os.readlink('/proc/self/fd/1')\n"
                         "open('told', 'w').write(text)\n" + PRINT)
        self.assertEqual([run.returncode, run.stderr], [0, ""])
        with open(os.path.join(self.folder, "told"), encoding="ascii") as file:
            self.assertEqual(file.read(), "stdout /dev/null")

    def test_all_closed_is_no_error(self):
        run = self.shell("<&- >&- 2>&-", PRINT, "-o", "out")
        self.assertEqual(run.returncode, 0)
        with open(os.path.join(self.folder, "out"), encoding="ascii") as file:
            self.assertEqual(file.read().count("[1]\n"), 10)

    def test_full_disk_under_the_script_is_an_error(self):
        run = self.shell(">/dev/full", PRINT)
        self.assertEqual([run.returncode, run.stdout], [1, ""])
        self.assertIn("OSError: [Errno 28] No space left on device", run.stderr)

    def test_full_disk_under_the_summary_is_told_once(self):
        for options in ["-i", "5000"], ["-i", "10", "-p", str(os.getpid()), "--duration", "0.2"]:
            with self.subTest(options=options):
                words = [COMMAND, "python", "-e", GETPPID, *options, self.write("script.py", PASS)]
                words += TEN if "-p" not in options else []
                with open("/dev/full", "wb") as full:
                    run = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30)
                self.assertEqual([run.returncode, run.stderr], [1, "perfscope: stdout: No space left on device\n"])

    def test_full_disk_under_messages_changes_nothing(self):
        run = self.shell("2>/dev/full", "def __sample__(event): 1 / 0\ndef __exit__(): print('[2]')\n")
        self.assertEqual([run.returncode, run.stdout.splitlines()[1:]], [1, ["[2]"]])

    def test_reader_of_the_summary_who_leaves_is_a_clean_stop(self):
        words = [COMMAND, "python", "-e", GETPPID, "-i", "20", self.write("script.py", PASS)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual([process.wait(timeout=10), process.stderr.read()], [0, ""])


if __name__ == "__main__":
    unittest.main()
