#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build perfscope for each Python from 3.9 to 3.13 that is found and run the Python tests: check_pythons.py [PATH...].

Looked at are the paths given, then python3.9 to python3.13 on PATH. The newest of a version counts.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

# What the tests import and few Pythons have: pure Python, so that those of the Python that runs this serve all.
BORROWED = ("hypothesis", "attr", "sortedcontainers", "exceptiongroup")
VERSIONS = [(3, minor) for minor in range(9, 14)]
DESCRIBE = """
import json, os, sys, sysconfig
print(json.dumps({"version": sys.version_info[:3], "executable": sys.executable,
                  "has_headers": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
                  "has_gil": not sysconfig.get_config_var("Py_GIL_DISABLED")}))
"""


def describe(path):
    """Version, executable and headers of the Python at @path; None where it does not run."""
    try:
        result = subprocess.run([path, "-c", DESCRIBE], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return json.loads(result.stdout)


def find_pythons(paths):
    """The Python to use for each version: {(3, 9): "/path", ...}."""
    candidates = paths + [shutil.which(f"python{major}.{minor}") for major, minor in VERSIONS]
    found = {}
    for info in map(describe, filter(None, candidates)):
        if not info:
            continue
        version = tuple(info["version"])
        if not info["has_headers"]:
            print(f"passed over {info['executable']}: it has no Python.h")
        elif not info["has_gil"]:
            print(f"passed over {info['executable']}: it is built without the GIL")
        elif version[:2] in VERSIONS and version > found.get(version[:2], ((0,),))[0]:
            found[version[:2]] = version, info["executable"]
    return found


def lend_modules(python, folder):
    """Link hypothesis, and what that needs, into @folder, where @python has none of its own."""
    if subprocess.run([python, "-c", "import hypothesis"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return
    for spec in filter(None, map(importlib.util.find_spec, BORROWED)):
        [source], link = spec.submodule_search_locations, os.path.join(folder, spec.name)
        if not os.path.lexists(link):
            os.symlink(source, link)


def check(version, python):
    """Build and test; the last line of the tests, and whether all is well."""
    build = f"build/py-{version[0]}.{version[1]}"
    make = ["make", "--no-print-directory", f"BUILD={build}", f"PYTHON={python}"]
    # With the descriptors by which the make behind us lends its jobs.
    if subprocess.run([*make, "all", "load", "test-modules", "script-driver"], close_fds=False, check=False).returncode != 0:
        return "does not build", False
    lend_modules(python, f"{build}/tests/python")
    tests = [python, "scripts/build/run_tests.py", "--build", build, "--python", python, "python"]
    with subprocess.Popen(tests, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return last, process.returncode == 0


def main():
    found = find_pythons(sys.argv[1:])
    if not found:
        print("perfscope: no Python 3.9 to 3.13 with its headers; name one: make check-pythons PYTHONS=/path/to/python3")
        return 1
    results = {}
    for short, (version, python) in sorted(found.items()):
        print(f"== Python {'.'.join(map(str, version))}, {python}", flush=True)
        results[version] = check(short, python)
    print()
    for version, (text, _) in results.items():
        print(f"Python {'.'.join(map(str, version))}: {text}")
    return 0 if all(is_good for _, is_good in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
