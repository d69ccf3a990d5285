# SPDX-License-Identifier: MIT
"""Call stacks of a program whose depth, names, inlined functions and lines are known."""

import json
import os
import subprocess
import time
import unittest

from livetest import TRACEFS, LiveTestCase, skip_unless_tracepoints

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(FOLDER, "stack_depth.c")
GETPPID = "syscalls:sys_enter_getppid"

COUNT_STACKS = """
import collections, json
stacks = collections.Counter()
def __sample__(event):
    stacks[tuple((frame["symbol"], frame.get("line")) for frame in event._callchain)] += 1
def __exit__():
    print(json.dumps([[list(map(list, stack)), nr] for stack, nr in stacks.items()]))
"""


def line_of(text):
    with open(SOURCE, encoding="utf-8") as file:
        return f"stack_depth.c:{next(i for i, line in enumerate(file, 1) if text in line)}"


@skip_unless_tracepoints
class TestStacks(LiveTestCase):
    def build(self, *flags):
        program = os.path.join(self.folder, "stack_depth")
        subprocess.run(["gcc", *flags, "-o", program, SOURCE], check=True)
        return program

    def stacks(self, program, *options, nr=200):
        run = self.run_command("python", *options, self.write("script.py", COUNT_STACKS), "--run", program, nr)
        self.assertEqual([run.status, run.errors], [0, []])
        return json.loads(run.stdout)

    def names(self, stacks):
        """The one stack that all have, up to main, and how often it came."""
        found = {}
        for stack, nr in stacks:
            names = [name for name, _ in stack]
            key = tuple(names[:names.index("main") + 1]) if "main" in names else tuple(names)
            found[key] = found.get(key, 0) + nr
        return found

    def test_frame_pointers(self):
        program = self.build("-O0", "-g", "-fno-omit-frame-pointer")
        stacks = self.stacks(program, "-g", "-e", GETPPID)
        self.assertEqual(self.names(stacks), {("inner", "step", "middle", "outer", "main"): 200})

    def test_attribute_of_one_event(self):
        program = self.build("-O0", "-g", "-fno-omit-frame-pointer")
        stacks = self.stacks(program, "-e", f"{GETPPID}//stack/")
        self.assertEqual(self.names(stacks), {("inner", "step", "middle", "outer", "main"): 200})

    def test_max_stack_ends_the_stack(self):
        program = self.build("-O0", "-g", "-fno-omit-frame-pointer")
        stacks = self.stacks(program, "-g", "--max-stack", "2", "-e", GETPPID)
        self.assertEqual(self.names(stacks), {("inner", "step", "middle"): 200})

    def test_a_stack_deeper_than_the_kernel_allows(self):
        with open("/proc/sys/kernel/perf_event_max_stack", encoding="utf-8") as file:
            most = int(file.read())
        for events, *options in [(GETPPID, "-g", "--max-stack", str(most + 1)), (f"{GETPPID}//max-stack={most + 1}/",)]:
            run = self.run_command("python", "-e", events, *options, self.write("script.py", "def __sample__(event): pass\n"))
            self.assertEqual(run.status, 1)
            self.assertRegex(run.stderr, f"^perfscope: open {GETPPID} on cpu 0: a stack of {most + 1} addresses is more than the "
                                         f"kernel allows \\(at most {most}, sysctl kernel.perf_event_max_stack\\)\n$")

    def test_unwinding_without_frame_pointers(self):
        program = self.build("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
        stacks = self.stacks(program, "--call-graph=dwarf", "-e", GETPPID)
        self.assertEqual(self.names(stacks), {("inner", "step", "middle", "outer", "main"): 200})
        [[stack, _]] = stacks
        self.assertEqual([line for _, line in stack[:5]],
                         [line_of("return result + n"),  # behind the instruction that makes the call
                          line_of("return inner(n)"), line_of("return step(n)"), line_of("return middle(n)"),
                          line_of("sum += outer(i)")])

    def test_each_part_alone_and_none(self):
        program = self.build("-O0", "-fno-omit-frame-pointer")
        source = """
import json
kernel = set()
def __sample__(event):
    kernel.update(frame["kernel"] for frame in event._callchain)
def __exit__():
    print(json.dumps(sorted(kernel)))
"""
        for kind in "-g", "--call-graph=fp", "--call-graph=dwarf":
            for options, parts in ([], [False, True]), (["--no-user-callchain"], [True]), (["--no-kernel-callchain"], [False]), \
                    (["--no-user-callchain", "--no-kernel-callchain"], []), \
                    (["--no-user-callchain", "--user-callchain", "--no-kernel-callchain", "--kernel-callchain"], [False, True]):
                with self.subTest(kind=kind, options=options):
                    run = self.run_command("python", kind, *options, "-e", "kmem:mm_page_alloc",
                                           self.write("script.py", source), "--run", program)
                    self.assertEqual([run.status, run.stderr, run.json], [0, "", [parts]])

    def test_kernel_names_are_those_of_kallsyms(self):
        with open("/proc/kallsyms", encoding="ascii") as file:
            known = {}
            for line in file:
                address, _, name = line.split()[:3]
                known.setdefault(int(address, 16), set()).add(name)
        source = """
import json
frames = {}
def __sample__(event):
    for frame in event._callchain:
        if frame["kernel"]:
            frames[frame["addr"]] = [frame["symbol"], frame["offset"]]
def __exit__():
    print(json.dumps(list(frames.items())))
"""
        run = self.run_command("python", "-g", "-e", "sched:sched_process_exit", self.write("script.py", source),
                               "--run", "/bin/true")
        [frames] = run.json
        self.assertIn("do_exit", [symbol for _, [symbol, _] in frames])
        for address, [symbol, offset] in frames:
            self.assertIn(symbol, known[address - offset])

    def test_kept_stack_is_whole_at_the_end(self):
        program = self.build("-O0", "-g", "-fno-omit-frame-pointer")
        source = """
import atexit, json
kept = []
def __sample__(event):
    kept.append(event)
@atexit.register
def end():
    print(json.dumps([len(kept), [frame["symbol"] for frame in kept[0]._callchain[:5]]]))
"""
        run = self.run_command("python", "-g", "-e", GETPPID, self.write("script.py", source), "--run", program, 50)
        self.assertEqual(run.json, [[50, ["inner", "step", "middle", "outer", "main"]]])

    def test_print_shows_the_frames_below_the_line(self):
        program = self.build("-O0", "-g", "-fno-omit-frame-pointer")
        source = "def __sample__(event):\n    event.print()\n    event.print(callchain=False)\n"
        run = self.run_command("python", "-g", "-e", GETPPID, self.write("script.py", source), "--run", program)
        self.assertRegex(run.lines[1], rf"^ +[0-9a-f]+ inner\+0x[0-9a-f]+ \({program}\) stack_depth\.c:\d+$")
        self.assertRegex(run.lines[3], r" middle\+0x")
        self.assertEqual(len([line for line in run.lines if f"{GETPPID}:" in line]), 2)
        self.assertIn(f"{GETPPID}:", run.lines[-1])

    def test_bpf_programs_have_names_from_their_start_to_their_end(self):
        if not os.path.exists(os.path.join(TRACEFS, "events/bpf_trace/bpf_trace_printk")):
            self.skipTest("this kernel has no bpf_trace:bpf_trace_printk")
        program = os.path.join(self.folder, "bpf_program")
        subprocess.run(["gcc", "-o", program, os.path.join(FOLDER, "bpf_program.c")], check=True)
        source = """
import json
names = []
def __sample__(event):
    names.append([[frame["symbol"].split("_")[-1], frame["offset"] > 0, frame["kernel"]] for frame in event._callchain
                  if frame["dso"] == "[bpf]"])
def __exit__():
    print(json.dumps(names))
"""
        observer = self.start_script(source, "bpf_trace:bpf_trace_printk", "-g")
        subprocess.run([program, "first", "2"], check=True)
        time.sleep(0.5)  # the list of the kernel's symbols is read at the first stack
        subprocess.run([program, "second", "1"], check=True)
        self.assertEqual(observer.stop().json, [[[["first", True, True]], [["first", True, True]],
                                                 [["second", True, True]]]])

    def test_last_branches_need_a_pmu(self):
        run = self.run_command("python", "--call-graph=lbr", "-e", "cpu-clock/freq=99/", "--duration", "0.1",
                               self.write("script.py", COUNT_STACKS))
        self.assertEqual(run.status, 1)
        self.assertIn("branch stacks need a PMU that records branches", run.stderr)


if __name__ == "__main__":
    unittest.main()
