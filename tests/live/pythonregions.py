# SPDX-License-Identifier: MIT
"""What tests of regions in Python share: scripts and programs that make page faults of known number in regions."""

import os
import sys

from livetest import BUILD, ROOT
from test_regions import RegionTestCase

PAGES = os.path.join(ROOT, "tests", "python")

# What scripts and programs of these tests begin with. The first pass of a thread opens its counters.
WORK = """
import asyncio, gc, json, os, signal, sys, threading, time
sys.path.insert(0, PAGES)
import perfscope
from pages import Pages

pages = Pages(20000)
gc.disable()
# Room in pages that the interpreter has touched: a fresh one of its own would be a page fault of the pass that takes it.
room = [bytes(size) for size in range(0, 512, 8) for _ in range(256)]
del room[::2]

def work(nr, name="work"):
    with perfscope.region(name):
        pages.touch(nr)

def in_threads(nr_threads, function, *args):
    threads = [threading.Thread(target=function, args=args) for _ in range(nr_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""".replace("PAGES", repr(PAGES))

TELL = """
import json
import perfscope

def row(total):
    return [total.calls, total.incomplete, *total.values.values()]

def by_thread():
    return {name: {tid: row(total) for tid, total in threads.items()}
            for name, threads in perfscope.regions(by_thread=True).items()}

def __exit__(totals):
    print(json.dumps({"totals": {name: row(total) for name, total in totals.items()}, "by_thread": by_thread()}))
"""


class PythonTestCase(RegionTestCase):
    def run_own(self, source, *options, events="page-faults", args=("--run", "true"), **process):
        """Run a script that passes regions in what @source defines; what its __exit__ told."""
        self.ended = self.run_script(WORK + TELL + source, events, *options, args=args, **process)
        self.assertEqual(self.ended.status, 0, self.ended.stderr)
        return next(told for told in self.ended.json if "by_thread" in told)

    def run_program(self, source, *args, script=TELL, options=(), status=0):
        """Run a Python program by --run; what the __exit__ of @script told of it."""
        program = self.write("program.py", WORK + source)
        environment = dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"))
        self.ended = self.run_script(script, "page-faults", *options, env=environment,
                                     args=("--run", sys.executable, program, *map(str, args)))
        self.assertEqual(self.ended.status, status, self.ended.stderr)
        return next(told for told in self.ended.json if "by_thread" in told)
