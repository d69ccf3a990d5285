# SPDX-License-Identifier: MIT
"""Every value of every kind of event that a load can make fire, against the kernel's own trace of the same moment."""

import collections
import os
import pickle
import re
import subprocess
import sys
import unittest

from kerneltrace import Instance, PrintFormat, Symbols, format_value
from livetest import TRACEFS, LiveTestCase, skip_unless_root, skip_unless_tracepoints

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "every_event.py")

KEEP = """
import pickle, sys
kept = []
def __sample__(event): kept.append(event)
def shown(event):
    return {name: event.symbolic(name) for name in event.keys()[11:]}
def __exit__():
    with open(sys.argv[1], "wb") as file:
        pickle.dump([(e._event, e._cpu, e._time, str(e), e.to_dict(), shown(e)) for e in kept], file)
def __lost__(start, end, lost): print([lost])
"""

# Printed by their fields: pages and texts are told by their addresses in the kernel, or its own functions are called.
FIELDS_ONLY = {
    "kmem:mm_page_alloc", "kmem:mm_page_alloc_zone_locked", "kmem:mm_page_free", "kmem:mm_page_free_batched",
    "maple_tree:ma_op", "maple_tree:ma_read", "maple_tree:ma_write", "mmap:vm_unmapped_area", "rcu:rcu_utilization",
    "writeback:writeback_single_inode", "writeback:writeback_single_inode_start",
}
# Where the kernel leaves bytes of a record as they were, each tracer has others.
UNWRITTEN = {("fib:fib_table_lookup", "gw4"), ("fib:fib_table_lookup", "gw6")}
SYMBOLIC = {
    "kmem:kmalloc gfp_flags", "irq:softirq_entry vec", "sched:sched_switch prev_state", "sock:inet_sock_set_state newstate",
    "sock:inet_sock_set_state protocol", "timer:hrtimer_start mode", "block:block_rq_issue ioprio",
    "tlb:tlb_flush reason", "filelock:flock_lock_inode type", "writeback:writeback_mark_inode_dirty flags",
}
MUST_COMPARE = {(event, field) for event, fields in {
    "kmem:kmalloc": "call_site ptr bytes_req bytes_alloc node",
    "sched:sched_switch": "prev_comm prev_pid prev_prio next_comm next_pid next_prio",
    "sched:sched_wakeup": "comm pid prio target_cpu",
    "sched:sched_process_exec": "filename pid old_pid",
    "sched:sched_process_fork": "parent_comm parent_pid child_comm child_pid",
    "sched:sched_stat_runtime": "comm pid runtime",
    "signal:signal_generate": "sig errno code comm pid group result",
    "task:task_rename": "oldcomm newcomm oom_score_adj",
    "sock:inet_sock_set_state": "sport dport saddr daddr",
    "net:net_dev_queue": "name skbaddr len",
    "exceptions:page_fault_user": "address ip error_code",
    "printk:console": "msg",
    "cgroup:cgroup_mkdir": "root id level path",
    "workqueue:workqueue_queue_work": "work function workqueue req_cpu cpu",
}.items() for field in fields.split()}


def read_events():
    """system:name of every_event.txt that this kernel has; those that each run makes fire; all without a star."""
    with open(LOAD.replace(".py", ".txt"), encoding="ascii") as file:
        words = " ".join(line for line in file if not line.startswith("#")).split()
    events, always, system = [], set(), None
    for word in words:
        if word.endswith(":"):
            system = word[:-1]
            continue
        event = f"{system}:{word.rstrip('*')}"
        if os.path.exists(f"{TRACEFS}/events/{event.replace(':', '/')}/format"):
            events.append(event)
            if not word.endswith("*"):
                always.add(event)
    return events, always


def by_place(items):
    """Lists of (event, cpu, flags, item) by event, CPU and context, each in its order.

    Both tracers are called one after the other at each hit; between the two an interrupt can come, with hits of its own.
    """
    places = collections.defaultdict(list)
    for event, cpu, flags, item in items:
        places[event, cpu, flags[2]].append(item)
    return places


@skip_unless_root
@skip_unless_tracepoints
class TestEveryEvent(LiveTestCase):
    """One load under two tracers: the kernel's own, and perfscope."""

    @classmethod
    def setUpClass(cls):
        cls.case = cls("record")
        cls.case.setUp()
        cls.addClassCleanup(cls.case.doCleanups)
        cls.symbols = Symbols()
        cls.events, cls.always = read_events()
        cls.formats = {event: PrintFormat(event) for event in cls.events if not event.startswith("syscalls:")}
        with Instance("values") as instance:
            cls.case.record(instance)
            cls.lost = instance.lost()
            cls.lines = by_place((cls.event_of(line), line.cpu, line.flags, line) for line in instance.lines(cls.pid))
        with open(f"{cls.case.folder}/kept", "rb") as file:
            kept = pickle.load(file)
        cls.kept = by_place((event, cpu, cls.flags_of(line), (time, line, fields, shown))
                            for event, cpu, time, line, fields, shown in kept)

    def record(self, instance):
        cls = type(self)
        with subprocess.Popen([sys.executable, LOAD, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as load:
            cls.pid = int(load.stdout.readline())
            observer = self.start_script(KEEP, [f"{event}/common_pid=={cls.pid}/" for event in self.events],
                                         "-m", "32M", args=[f"{self.folder}/kept"])
            instance.enable(self.events, f"common_pid=={cls.pid}")
            load.communicate("\n", timeout=60)
            instance.write("events/enable", "0")
            cls.status = load.returncode
            cls.run_ = observer.stop()

    @classmethod
    def event_of(cls, line):
        if re.match(r"sys_\w+( -> |\()", line.name + line.text):
            return f"syscalls:sys_{'exit' if line.text.startswith(' -> ') else 'enter'}_{line.name[4:]}"
        return next(event for event in cls.events if event.endswith(f":{line.name}"))

    @classmethod
    def flags_of(cls, line):
        return re.search(rf" {cls.pid} (\S{{5}}) \[", line)[1]

    def pairs(self):
        """(event, the kernel's line, time, our line, fields, symbolic of each field)"""
        for place, lines in self.lines.items():
            for line, kept in zip(lines, self.kept[place]):
                yield place[0], line, *kept

    def test_both_saw_the_same(self):
        self.assertEqual([self.status, self.run_.status, self.run_.stderr, self.run_.stdout, self.lost], [0, 0, "", "", 0])
        self.assertEqual(sorted((*place, len(items)) for place, items in self.kept.items()),
                         sorted((*place, len(items)) for place, items in self.lines.items()))

    def test_each_event_that_can_fire_did(self):
        self.assertEqual(self.always - {event for event, _, _ in self.lines}, set())
        self.assertGreaterEqual(len(self.always), 100)

    def test_system_calls(self):
        for event, line, _, _, fields, _ in self.pairs():
            if not event.startswith("syscalls:"):
                continue
            with self.subTest(event=event, line=line.text):
                if " -> " in line.text:
                    self.assertEqual(f"{fields['ret'] & 2**64 - 1:#x}", line.text[4:])
                    continue
                shown = re.findall(r"(\w+): (?:0x)?([0-9a-f]+)", line.text)
                names = [name for name in fields if not name.startswith(("_", "common_"))]
                self.assertEqual([name for name, _ in shown], names)
                for name, text in shown:
                    self.assert_same_argument(fields[name], int(text, 16))

    def assert_same_argument(self, value, register):
        """The type of an argument is as wide as it is; the kernel shows the whole register."""
        self.assertIn(value & 2**64 - 1, {register, register & 2**32 - 1, register & 2**16 - 1,
                                          register | 0xffffffff00000000 if register & 2**31 else register})

    def assert_names(self, text, address):
        """@text is what the kernel makes of a function's address, or the address where there is no function."""
        if text.startswith("0x"):
            self.assertEqual(text, f"{address:#x}")
        else:
            self.assertIn(re.sub(r"\+0x.*| \[.*", "", text), self.symbols.find(address))

    def test_values_shown_by_the_kernel(self):
        compared = set()
        for event, line, _, _, fields, _ in self.pairs():
            if event.startswith("syscalls:"):
                continue
            with self.subTest(event=event, line=line.text):
                for conversion, field, _, text in self.formats[event].values(line.text):
                    if not field or (event, field) in UNWRITTEN:
                        continue
                    if conversion[3] in ("ps", "pS"):
                        self.assert_names(text, fields[field])
                    elif (expected := format_value(conversion, fields[field])) is None:
                        continue
                    else:
                        self.assertEqual(expected, text, field)
                    compared.add((event, field))
        self.assertEqual(sorted(f"{event} {field}" for event, field in MUST_COMPARE - compared), [])

    def test_symbolic_values(self):
        """Of __print_symbolic and __print_flags of one field: event.symbolic is the kernel's text."""
        compared = set()
        for event, line, _, _, fields, shown in self.pairs():
            if event.startswith("syscalls:"):
                continue
            with self.subTest(event=event, line=line.text):
                for _, _, argument, text in self.formats[event].values(line.text):
                    names = set(re.findall(r"REC->(\w+)", argument))
                    if len(names) == 1 and re.search("__print_(symbolic|flags)", argument):
                        name = names.pop()
                        self.assertEqual(shown[name], text)
                        compared.add(f"{event} {name}")
        self.assertEqual(SYMBOLIC - compared, set())

    def test_lines_are_the_kernels(self):
        for event, line, _, text, fields, _ in self.pairs():
            ours = text.partition(f" {event}: ")[2]
            if event.startswith("syscalls:") or any(event == unwritten for unwritten, _ in UNWRITTEN):
                continue
            with self.subTest(event=event):
                if event in FIELDS_ONLY:
                    self.assertEqual(ours, " ".join(f"{name}={value}" for name, value in fields.items()
                                                    if not name.startswith(("_", "common_"))))
                elif self.formats[event].has_symbols:
                    self.assert_same_but_symbols(self.formats[event], ours, line.text, fields)
                else:
                    self.assertEqual(ours, line.text)

    def assert_same_but_symbols(self, print_format, ours, kernels, fields):
        """Functions are shown by their addresses."""
        for (conversion, field, _, own), (_, _, _, text) in zip(print_format.values(ours), print_format.values(kernels)):
            self.assertEqual(own, f"{fields[field]:#x}" if conversion[3] in ("ps", "pS") else text)

    def test_interrupts_off(self):
        """The first letter of the flags. The third is compared by pairing; the others can change between two tracers."""
        for event, line, _, text, _, _ in self.pairs():
            with self.subTest(event=event):
                self.assertEqual(self.flags_of(text)[0], line.flags[0])

    def test_times_are_of_the_same_clock(self):
        """The kernel's trace was set to CLOCK_MONOTONIC. A stolen CPU between two tracers can take long."""
        self.assertEqual([(event, line.time_us, time) for event, line, time, _, _, _ in self.pairs()
                          if abs(line.time_us - time // 1000) > 1_000_000], [])


if __name__ == "__main__":
    unittest.main()
