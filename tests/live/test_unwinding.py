# SPDX-License-Identifier: MIT
"""Stacks by call frame information of programs that are hard to get at: ended, deleted, in another mount namespace."""

import os
import subprocess
import time
import unittest

from livetest import LiveTestCase, Observer, skip_unless_root, skip_unless_tracepoints

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stack_depth.c")
GETPPID = "syscalls:sys_enter_getppid"
WANTED = ["inner", "step", "middle", "outer", "main"]

STACKS = """
import collections, json
stacks = collections.Counter()
def __sample__(event):
    names = [frame["symbol"] for frame in event._callchain]
    if event._comm == "stack_depth":
        stacks[tuple(names[:5])] += 1
def __exit__():
    print(json.dumps([[list(stack), nr] for stack, nr in stacks.items()]))
"""

LENGTHS = """
import json
lengths = []
def __sample__(event):
    lengths.append(len(event._callchain))
def __exit__():
    print(json.dumps(sorted(lengths)))
"""

# A call at the top, and one 600 calls of 32 bytes or more deeper, of which the top 8 KiB do not have all.
DEEP = """
#include <sys/syscall.h>
#include <unistd.h>
static volatile long sink;
static __attribute__((noinline)) void down(int n)
{
	volatile char room[64] = { 0 };
	if (n)
		down(n - 1);
	else
		syscall(SYS_getppid);
	sink += room[n & 7];
}
int main(void)
{
	syscall(SYS_getppid);
	down(600);
	return 0;
}
"""


@skip_unless_tracepoints
class TestUnwinding(LiveTestCase):
    def setUp(self):
        super().setUp()
        subprocess.run(["gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "stack_depth", SOURCE],
                       cwd=self.folder, check=True)

    def stacks(self, shell, *options):
        """The stacks of the program that @shell runs, by how often they came."""
        run = self.run_command("python", "--call-graph=dwarf", "--inherit", "-e", GETPPID, *options,
                               self.write("script.py", STACKS), "--run", "sh", "-c", shell, cwd=self.folder)
        [stacks] = run.json
        return stacks

    def test_program_that_has_ended(self):
        # Its 20 calls are over long before the first is read.
        self.assertEqual(self.stacks("./stack_depth 20; sleep 0.3"), [[WANTED, 20]])

    def test_program_that_is_deleted(self):
        stacks = self.stacks("./stack_depth 200000 & sleep 0.01; rm stack_depth; wait")
        self.assertEqual([stack for stack, _ in stacks], [WANTED])

    def test_a_stack_that_goes_on_above_what_is_copied_is_told(self):
        source = self.write("deep.c", DEEP)
        subprocess.run(["gcc", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "deep", source],
                       cwd=self.folder, check=True)
        run = self.run_command("python", "--call-graph=dwarf", "-e", GETPPID, self.write("script.py", LENGTHS), "--run",
                               "./deep", cwd=self.folder)
        [[short, long]] = run.json
        self.assertLess(short, 20)
        self.assertTrue(50 < long < 600, long)
        self.assertIn("1 of 2 stacks lack their outermost frames: their callers lie above", run.stderr)
        run = self.run_command("python", "--call-graph=dwarf,65528", "-e", GETPPID, self.write("script.py", LENGTHS), "--run",
                               "./deep", cwd=self.folder)
        self.assertEqual([run.json, run.stderr], [[[short, short + 601]], ""])
        run = self.run_command("python", "--call-graph=dwarf,1024", "-e", GETPPID, self.write("script.py", LENGTHS), "--run",
                               "./deep", cwd=self.folder)
        self.assertLess(run.json[0][1], long / 4)

    def test_a_program_that_runs_on_does_not_hold_up_the_end(self):
        start = time.monotonic()
        run = self.run_command("python", "--call-graph=dwarf", "--inherit", "-N", "100", "-e", GETPPID,
                               self.write("script.py", STACKS), "--run", "./stack_depth", "1000000000", cwd=self.folder)
        self.assertEqual(sum(nr for _, nr in run.json[0]), 100)
        self.assertLess(time.monotonic() - start, 20)

    def test_a_stop_acts_while_stacks_are_unwound(self):
        load = subprocess.Popen([os.path.join(self.folder, "stack_depth"), "1000000000"])
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        observer = Observer(["python", "--call-graph=dwarf", "-m", "64M", "-p", str(load.pid), "-e", GETPPID,
                             self.write("script.py", STACKS)])
        self.addCleanup(observer.close)
        time.sleep(2)
        start = time.monotonic()
        run = observer.stop()
        self.assertLess(time.monotonic() - start, 4)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertGreater(sum(nr for _, nr in run.json[0]), 0)

    @skip_unless_root
    def test_program_in_another_mount_namespace(self):
        shell = "unshare -m sh -c 'mount -t tmpfs none /mnt && cp stack_depth /mnt && exec /mnt/stack_depth 200000'"
        stacks = self.stacks(shell)
        self.assertEqual([stack for stack, _ in stacks], [WANTED])


if __name__ == "__main__":
    unittest.main()
