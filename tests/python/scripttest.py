# SPDX-License-Identifier: MIT
"""What tests of script loading share: a folder of files, and the driver that loads and binds one of them."""

import os
import subprocess
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PS_TEST_BUILD", os.path.join(ROOT, "build"))
DRIVER = os.path.join(BUILD, "tests", "script_driver")
TIMEOUT_S = 60



def is_private(name):
    """What would change how Python starts, and where scripts are found; the allocator is the sanitizer's."""
    return name.startswith("PYTHON") and name != "PYTHONMALLOC" or name in ("VIRTUAL_ENV", "PERFSCOPE_SCRIPTS")


class Run:
    """A driver that has ended; the folder of the test is `.` in all it wrote."""

    def __init__(self, process, folder):
        self.status = process.returncode
        self.stdout = process.stdout.replace(folder, ".")
        self.stderr = process.stderr.replace(folder, ".")
        self.lines = self.stdout.splitlines()
        self.errors = self.stderr.splitlines()


class ScriptTestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perfscope-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.realpath(scratch.name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = "wb" if isinstance(text, bytes) else "w"
        with open(path, mode) as file:
            file.write(text if isinstance(text, bytes) else textwrap.dedent(text))
        return path

    def drive(self, *arguments, env=None, command=DRIVER, **options):
        clean = {key: value for key, value in os.environ.items() if not is_private(key)}
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        return subprocess.run([command, *arguments], env={**clean, **(env or {})}, stderr=subprocess.PIPE,
                              timeout=TIMEOUT_S, **options)

    def run_driver(self, *arguments, **options):
        process = self.drive(*arguments, **options)
        process.stdout = (process.stdout or b"").decode(errors="backslashreplace")
        process.stderr = process.stderr.decode(errors="backslashreplace")
        return Run(process, self.folder)

    def bind(self, script, *arguments, handlers="sched__sched_switch", **options):
        return self.run_driver("bind", handlers, script, *arguments, **options)

    def call(self, script, *arguments, handlers="sched__sched_switch", **options):
        return self.run_driver("call", handlers, script, *arguments, **options)
