# SPDX-License-Identifier: MIT
"""Probes of the kernel, of programs and of data, on a kernel that has them all: each call is an event, and nothing stays."""

import os
import signal
import sys
import unittest

from livetest import BUILD, TRACEFS, LiveTestCase, run_load

PROBED = os.path.join(BUILD, "tests", "probed")
GETPPID = "__arm64_sys_getppid"
KILL = "__arm64_sys_kill"
# Arguments of a system call lie in registers that were saved: x0 points to them.
SIGNAL = "sig=+8(%x0):s32"
NOTHING = "def __sample__(event): pass\n"
SEEN = """
import json
seen = []
def __sample__(event):
    seen.append([event._event, {name: event[name] for name in event.keys() if name[0] != '_' and name[:7] != 'common_'}])
def __exit__(totals): print(json.dumps({'seen': seen, 'values': totals['run'].values}), flush=True)
"""


def read_probes():
    text = ""
    for name in "kprobe_events", "uprobe_events":
        with open(os.path.join(TRACEFS, name), encoding="utf-8") as file:
            text += file.read()
    return text


class ProbeTestCase(LiveTestCase):
    def tearDown(self):
        self.assertEqual(read_probes(), "")

    def run_seen(self, events, *options, load=None, run=None, source=SEEN):
        """Run @source on a load, or on the program @run: what it printed."""
        if run:
            result = self.run_command(*self.script_arguments(source, events, options, ["--run", *map(str, run)]))
        else:
            result = self.run_script(source, events, *options, load=load)
        self.assertEqual([result.status, result.stderr], [0, ""])
        return result.json[0]


class TestKernel(ProbeTestCase):
    def test_each_call_and_each_return_is_an_event(self):
        for target in [], ["-C", "0-1"]:
            for arguments in "", " regs=%x0":
                with self.subTest(target=target, arguments=arguments):
                    events = [f"kprobe:{GETPPID}{arguments}", f"kretprobe:{GETPPID}" + (" $retval" if arguments else "")]
                    self.check_calls(events, target)

    def check_calls(self, events, target):
        if target:
            observer = self.start_script(SEEN, events, *target)
            run_load("getppid", 100)
            run = observer.stop()
            self.assertEqual([run.status, run.stderr], [0, ""])
            result = run.json[0]
        else:
            result = self.run_seen(events, load=["getppid", 100])
        self.assertEqual(result["values"], {f"kprobe:{GETPPID}": 100, f"kretprobe:{GETPPID}": 100})
        self.assertEqual([name for name, _ in result["seen"]], [f"kprobe:{GETPPID}", f"kretprobe:{GETPPID}"] * 100)

    def test_arguments_and_what_is_returned(self):
        source = SEEN + "import os\ndef __init__(): print(os.getpid(), flush=True)\n"
        run = self.run_script(source, [f"kretprobe:{GETPPID} parent=$retval:s32", f"kprobe:{KILL} {SIGNAL}"],
                              load=["getppid", 2, "+", "kill", 18, 2, "+", "kill", 10, 1])
        self.assertEqual([run.status, run.stderr], [0, ""])
        parent = int(run.lines[0])
        self.assertEqual([fields for _, fields in run.json[0]["seen"]],
                         [{"parent": parent}] * 2 + [{"sig": 18}] * 2 + [{"sig": 10}])

    def test_addresses_are_those_of_the_symbols(self):
        with open("/proc/kallsyms", encoding="ascii") as file:
            address = next(int(line.split()[0], 16) for line in file if line.split()[2] == GETPPID)
        source = """
import json
places = set()
def kprobe____arm64_sys_getppid(event): places.add(event["__probe_ip"])
def kretprobe____arm64_sys_getppid(event): places.add(event["__probe_func"])
def __exit__(): print(json.dumps(sorted(places)))
"""
        places = self.run_seen([f"kprobe:{GETPPID}", f"kretprobe:{GETPPID}"], load=["getppid", 5], source=source)
        # Behind the mark for indirect branches, where there is one.
        self.assertTrue(set(places) <= {address, address + 4}, (places, address))

    def test_filters_choose_calls(self):
        result = self.run_seen([f"kprobe:{KILL} {SIGNAL}/sig == 10/alias=ten/", f"kprobe:{KILL} {SIGNAL}/sig > 10/alias=more/",
                                f"kprobe:{KILL}/common_pid > 0/alias=all/"],
                               load=["kill", 10, 3, "+", "kill", 18, 4, "+", "kill", 0, 5])
        self.assertEqual(result["values"], {"ten": 3, "more": 4, "all": 12})

    def test_a_handler_reads_the_counters(self):
        source = """
import json
reads = []
def kprobe____arm64_sys_getppid(event):
    counters, entries = event._counters, event._read["cntr"]
    reads.append([counters, {entry["name"]: entry["value"] for entry in entries} == counters])
def __exit__(): print(json.dumps(reads))
"""
        held = self.hold_load("wait", "+", "getppid", 20, "+", "wait")
        observer = self.start_script(source, f"{{kprobe:{GETPPID},cycles,instructions}}", "-p", held.pid)
        held.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertEqual([[counters[f"kprobe:{GETPPID}"], is_same] for counters, is_same in run.json[0]],
                         [[i + 1, True] for i in range(20)])
        instructions = [counters["instructions"] for counters, _ in run.json[0]]
        self.assertEqual(instructions, sorted(set(instructions)))

    def test_what_cannot_be_probed_is_told(self):
        for event, message in (
                ("kprobe:sys_getppidd", "kprobe:sys_getppidd"),
                ("kprobe:0x12zz", "the kernel has no function 0x12zz"),
                ("kprobe:do_sys_openat2+1 dfd=%x0", "kprobe:do_sys_openat2+1"),
                (f"kprobe:{GETPPID} sig=%di", "Invalid register name")):
            with self.subTest(event):
                run = self.run_command(*self.script_arguments(NOTHING, event, ["--duration", "0.1"], []))
                self.assertIn(run.status, (1, 2))
                self.assertIn(message, run.errors[0])
                self.assertNotIn("Invalid argument", run.stderr)


class TestPrograms(ProbeTestCase):
    def test_arguments_of_a_function(self):
        event = f"uprobe:probed_function@{PROBED} n=%x0:s32 text=+0(%x1):ustring high=%x2:x64"
        result = self.run_seen([event, f"uretprobe:probed_function@{PROBED} back=$retval:s32"], run=[PROBED, 3])
        self.assertEqual([fields for _, fields in result["seen"]],
                         [fields for i, n in enumerate((-1, 0, 1))
                          for fields in ({"n": n, "text": "caf\u00e9", "high": 2**64 - 1 - i}, {"back": 2 * n})])

    def test_calls_without_arguments(self):
        for target in [], ["--inherit"]:
            result = self.run_seen(f"uprobe:steps@{PROBED},uretprobe:steps@{PROBED}", *target, run=[PROBED, 50])
            self.assertEqual(result["values"], {"uprobe:steps": 50, "uretprobe:steps": 50})

    def test_arguments_that_the_program_declared(self):
        result = self.run_seen([f"usdt:tests:step@{PROBED} n=$arg1:s32 text=+0($arg2):ustring seven=$arg3:s8",
                                f"usdt:tests:guarded@{PROBED}"], run=[PROBED, 2])
        self.assertEqual(result["values"], {"usdt:tests:step": 2, "usdt:tests:guarded": 2})
        self.assertEqual([fields for name, fields in result["seen"] if name == "usdt:tests:step"],
                         [{"n": n, "text": "step", "seven": -7} for n in range(2)])


# Reads a line, and then stores to the word whose address it printed, and calls the function, N times each.
STORES = """
import ctypes, sys
word, labs = ctypes.c_long(), ctypes.CDLL(None).labs
print(ctypes.addressof(word), ctypes.cast(labs, ctypes.c_void_p).value, flush=True)
for line in sys.stdin.buffer.raw:
    for i in range(%d):
        word.value = i
        labs(i)
"""


class TestBreakpoints(ProbeTestCase):
    def test_each_store_and_each_call_counts(self):
        held = self.hold_load(command=[sys.executable, "-c", STORES % 70])
        word, function = map(int, held.process.stdout.readline().split())
        source = """
import json
addresses = []
def __sample__(event): addresses.append(event.addr)
def __exit__(totals): print(json.dumps([list(totals["run"].values.values()), sorted(set(addresses)), len(addresses)]))
"""
        observer = self.start_script(source, [f"mem:{word:#x}/8:w/period=1,addr/", f"mem:{function:#x}:x"], "-p", held.pid)
        held.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertEqual(run.json[0], [[70, 70], [word], 70])


class TestNothingStays(ProbeTestCase):
    events = [f"kprobe:{KILL} {SIGNAL}", f"uprobe:steps@{PROBED} n=%x0:s32"]

    def nr_probes(self, observer):
        return sum(f"perfscope_{observer.pid}_" in line for line in read_probes().splitlines())

    def test_signals(self):
        for number in signal.SIGINT, signal.SIGTERM:
            observer = self.start_script(NOTHING, self.events)
            self.assertEqual(self.nr_probes(observer), 2)
            self.assertEqual(observer.stop(number).status, 0)
            self.assertEqual(read_probes(), "")

    def test_what_a_killed_run_leaves_the_next_removes(self):
        killed, other = (self.start_script(NOTHING, self.events) for _ in range(2))
        killed.stop(signal.SIGKILL)
        self.assertEqual([self.nr_probes(killed), self.nr_probes(other)], [2, 2])
        run = self.run_script(NOTHING, "sched:sched_switch", load=["getppid", 1])
        self.assertEqual([run.status, self.nr_probes(killed), self.nr_probes(other)], [0, 0, 2])
        self.assertEqual(other.stop().status, 0)


if __name__ == "__main__":
    unittest.main()
