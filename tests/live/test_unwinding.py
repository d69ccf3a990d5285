# SPDX-License-Identifier: MIT
"""Stacks by call frame information of programs that are hard to get at: ended, deleted, in another mount namespace."""

import os
import subprocess
import unittest

from livetest import LiveTestCase, skip_unless_root, skip_unless_tracepoints

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

    @skip_unless_root
    def test_program_in_another_mount_namespace(self):
        shell = "unshare -m sh -c 'mount -t tmpfs none /mnt && cp stack_depth /mnt && exec /mnt/stack_depth 200000'"
        stacks = self.stacks(shell)
        self.assertEqual([stack for stack, _ in stacks], [WANTED])


if __name__ == "__main__":
    unittest.main()
