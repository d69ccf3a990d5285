# SPDX-License-Identifier: MIT
"""Run the unittest tests of a folder with any Python, and write the outcome as JSON: run_unittest.py FOLDER REPORT."""

import json
import sys
import unittest


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    folder, report = sys.argv[1:]
    suite = unittest.defaultTestLoader.discover(folder)
    result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(suite)
    outcome = {
        "passed": result.passed + len(result.expectedFailures),
        "failed": [[str(test), text] for test, text in result.failures + result.errors]
        + [[str(test), "passed, but is marked as an expected failure"] for test in result.unexpectedSuccesses],
        "skipped": [[str(test), reason] for test, reason in result.skipped],
    }
    with open(report, "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    return 1 if outcome["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
