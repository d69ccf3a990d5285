#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run suites of tests and sum them up: run_tests.py --build FOLDER --python PATH SUITE...

The last line is `N passed, N failed, N skipped`, over C and Python tests; above it stand each skip with its reason
and each failure.
"""

import argparse
import glob
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

UNIT_TIMEOUT_S = 120
FUZZ_TIMEOUT_S = 120
FUZZ_SHORT_S = 5
FUZZ_ROUND = 500  # texts; seed + 1 may be what round 1 of a seed does, so seeds step by it
PYTHON_TIMEOUT_S = 420
VM_BUILD_TIMEOUT_S = 900
VM_TIMEOUT_S = 600
VM_COMMAND = "PYTHONPATH=tests/live python3 scripts/build/run_unittest.py tests/vm /out/report"


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []  # (name, text)
        self.skipped = []  # (name, reason)

    def add(self, outcome):
        self.passed += outcome["passed"]
        self.failed += [tuple(item) for item in outcome["failed"]]
        self.skipped += [tuple(item) for item in outcome["skipped"]]

    def show(self):
        for name, reason in self.skipped:
            print(f"skipped  {name}: {reason}")
        for name, text in self.failed:
            print(f"FAILED   {name}: {(text.strip().splitlines() or ['no message'])[0]}")
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")


def restore_signals():
    """Undo what `nohup` and a shell's `&` ignore: programs inherit it, and tests of Ctrl-C would wait for ever."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def run(command, timeout_s, env=None, stdout=subprocess.PIPE):
    """Status and output of @command in a process group of its own; status None: it took too long and was killed."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.STDOUT if stdout else None,
                          env=env, text=True, errors="backslashreplace", start_new_session=True,
                          preexec_fn=restore_signals) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output or ""
    return process.returncode, output or ""


def explain(status, timeout_s):
    if status is None:
        return f"killed after {timeout_s} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def parse_tap(output):
    """The outcome in cmocka's TAP: a skip is `not ok N # SKIP name`, its reason a line `# skip: ...` before it."""
    outcome = {"passed": 0, "failed": [], "skipped": []}
    reason = None
    for line in output.splitlines():
        if line.startswith("# skip: "):
            reason = line[len("# skip: "):]
        elif match := re.match(r"(?:not )?ok \d+ # SKIP (.*)", line):
            outcome["skipped"].append([match[1], reason or "no reason given"])
            reason = None
        elif match := re.match(r"not ok \d+ - (.*)", line):
            outcome["failed"].append([match[1], ""])
        elif re.match(r"ok \d+ - ", line):
            outcome["passed"] += 1
        elif line.startswith("# ") and not line.startswith("# not ok") and outcome["failed"]:
            outcome["failed"][-1][1] += line[2:] + "\n"
    return outcome


def parse_junit(path):
    outcome = {"passed": 0, "failed": [], "skipped": []}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        bad = [child for child in case if child.tag in ("failure", "error")]
        skip = case.find("skipped")
        if bad:
            outcome["failed"].append([name, bad[0].get("message") or ""])
        elif skip is not None:
            outcome["skipped"].append([name, skip.get("message") or "no reason given"])
        else:
            outcome["passed"] += 1
    return outcome


class Suites:
    def __init__(self, build, python, asan):
        self.build = os.path.abspath(build)
        self.python = python
        self.env = dict(os.environ, PERFSCOPE=f"{self.build}/perfscope", PS_TEST_LOAD=f"{self.build}/tests/load",
                        PS_TEST_BUILD=self.build)
        self.python_env = dict(self.env, PYTHONPATH=f"{self.build}/python:{self.build}/tests/python",
                               PYTHONDONTWRITEBYTECODE="1")
        if asan:
            self.use_asan()

    def use_asan(self):
        """C programs are searched for leaks. Python is not: CPython itself keeps memory until its process ends."""
        known = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lsan.supp")
        self.env.update(ASAN_OPTIONS="detect_leaks=1", LSAN_OPTIONS=f"suppressions={known}:print_suppressions=0",
                        UBSAN_OPTIONS="print_stacktrace=1")
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        self.python_env.update(ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1",
                               LD_PRELOAD=runtime.stdout.strip(), PYTHONMALLOC="malloc")

    def unit(self, tally):
        for program in self.programs("tests/test_*"):
            status, output = run([program], UNIT_TIMEOUT_S, dict(self.env, CMOCKA_MESSAGE_OUTPUT="TAP"))
            outcome = parse_tap(output)
            name = os.path.basename(program)
            planned = re.search(r"^1\.\.(\d+)", output, re.M)
            nr_told = outcome["passed"] + len(outcome["failed"]) + len(outcome["skipped"])
            if not outcome["failed"] and (status != 0 or not planned or nr_told != int(planned[1])):
                outcome["failed"].append([name, explain(status, UNIT_TIMEOUT_S)])
            if outcome["failed"]:
                print(output)
            print(f"{name}: {outcome['passed']} passed")
            tally.add(outcome)

    def fuzz(self, tally):
        for program in self.programs("fuzz/fuzz_*"):
            tally.add(self.fuzz_one(program))

    def fuzz_one(self, program):
        name, end = os.path.basename(program), time.monotonic() + FUZZ_SHORT_S
        for seed in itertools.count(1, FUZZ_ROUND):
            status, output = run([program, str(seed), str(FUZZ_ROUND)], FUZZ_TIMEOUT_S, self.env)
            if status != 0:
                print(output)
                text = f"{program} {seed} {FUZZ_ROUND}: {explain(status, FUZZ_TIMEOUT_S)}"
                return {"passed": 0, "failed": [[name, text]], "skipped": []}
            if time.monotonic() > end:
                print(f"{name}: {seed + FUZZ_ROUND - 1} texts")
                return {"passed": 1, "failed": [], "skipped": []}

    def checks(self, tally):
        for script in ("check_includes.py", "check_docs.py"):
            status, output = run([self.python, f"scripts/build/{script}"], UNIT_TIMEOUT_S, self.python_env)
            print(output or f"{script}: no fault\n", end="")
            failed = [[script, output]] if status != 0 else []
            tally.add({"passed": 1 - len(failed), "failed": failed, "skipped": []})

    def live(self, tally):
        self.python_folder("tests/live", tally)

    def python_tests(self, tally):
        self.python_folder("tests/python", tally)

    def python_folder(self, folder, tally):
        if not glob.glob(f"{folder}/test_*.py"):
            return
        with tempfile.TemporaryDirectory(prefix="perfscope-test-") as scratch:
            report = os.path.join(scratch, "report")
            if self.has_pytest():
                command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", folder]
                read = parse_junit
            else:
                command = ["scripts/build/run_unittest.py", folder, report]
                read = lambda path: json.load(open(path, encoding="utf-8"))
            sys.stdout.flush()
            status, _ = run([self.python, *command], PYTHON_TIMEOUT_S, self.python_env, stdout=None)
            outcome = {"passed": 0, "failed": [], "skipped": []}
            if os.path.exists(report):
                outcome = read(report)
            if status != 0 and not outcome["failed"]:
                outcome["failed"].append([folder, explain(status, PYTHON_TIMEOUT_S)])
            tally.add(outcome)

    def vm(self, tally):
        """The tests in tests/vm, run in a guest that this builds for, boots and ends."""
        vm, report = f"{self.build}/vm", f"{self.build}/vm/out/report"
        env = {name: value for name, value in self.env.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        status, _ = run(["make", f"BUILD={os.path.relpath(self.build)}", "vm-programs"], VM_BUILD_TIMEOUT_S, env, stdout=None)
        if status != 0:
            tally.add({"passed": 0, "failed": [["vm-programs", explain(status, VM_BUILD_TIMEOUT_S)]], "skipped": []})
            return
        if os.path.exists(report):
            os.unlink(report)
        sys.stdout.flush()
        status, _ = run([self.python, "scripts/build/vm/guest.py", "--timeout", str(VM_TIMEOUT_S), vm, VM_COMMAND],
                        VM_TIMEOUT_S + 30, stdout=None)
        self.add_report(tally, "tests/vm", report, status, VM_TIMEOUT_S)

    def add_report(self, tally, name, report, status, timeout_s):
        """The outcome in @report; a command that left none, or ended with a status for no reason in it, has failed."""
        outcome = {"passed": 0, "failed": [], "skipped": []}
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                outcome = json.load(file)
        elif status == 0:
            outcome["failed"].append([name, "told no outcome"])
        if status != 0 and not outcome["failed"]:
            outcome["failed"].append([name, explain(status, timeout_s)])
        tally.add(outcome)

    def has_pytest(self):
        return run([self.python, "-c", "import pytest"], UNIT_TIMEOUT_S, self.python_env)[0] == 0

    def programs(self, pattern):
        sources = {os.path.basename(path)[:-2] for path in glob.glob("tests/*/*.c")}
        found = glob.glob(f"{self.build}/{pattern}")
        return sorted(path for path in found if os.path.basename(path) in sources)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--asan", action="store_true", help="the build has AddressSanitizer")
    names = {"unit": Suites.unit, "fuzz": Suites.fuzz, "checks": Suites.checks, "python": Suites.python_tests,
             "live": Suites.live, "vm": Suites.vm}
    parser.add_argument("suites", nargs="+", choices=names)
    options = parser.parse_args()

    suites, tally = Suites(options.build, options.python, options.asan), Tally()
    for name in options.suites:
        print(f"== {name}", flush=True)
        names[name](suites, tally)
    print()
    tally.show()
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
