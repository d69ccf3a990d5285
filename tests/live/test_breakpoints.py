# SPDX-License-Identifier: MIT
"""Hardware breakpoints: reads, writes and calls of known number at known addresses, counted and sampled."""

import os
import platform
import subprocess
import unittest

from livetest import BUILD, LiveTestCase, skip_unless_tracepoints
from test_targets import find_cgroup2

WATCHED = os.path.join(BUILD, "tests", "watched")
NR = 1000
PAGE_SIZE = os.sysconf("SC_PAGESIZE")
IS_X86 = platform.machine() in ("x86_64", "i686")

SHOW = """
import json
kept = []
def __sample__(event):
    kept.append(event)
def __exit__(totals):
    print(json.dumps([len(kept), list(totals["run"].values.values()), sorted({event.addr for event in kept}),
                      len({event.ip for event in kept}), sorted({event._tid for event in kept})]))
"""
COUNT = "import json\ndef __exit__(totals): print(json.dumps(list(totals['run'].values.values())))\n"


class BreakpointTestCase(LiveTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        symbols = subprocess.run(["nm", "-S", WATCHED], capture_output=True, text=True, check=True).stdout
        words = [line.split() for line in symbols.splitlines()]
        places = {name: (int(address, 16), int(size, 16)) for address, size, _, name in filter(lambda line: len(line) == 4, words)}
        cls.word, cls.bytes, cls.function = (places[f"watched_{name}"][0] for name in ("word", "bytes", "function"))
        cls.main, cls.main_size = places["main"]

    def run_watched(self, source, events, *options):
        """Run the program under --run; what the script printed."""
        run = self.run_command(*self.script_arguments(source, events, options, []), "--run", WATCHED, NR)
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def refusal(self, event):
        run = self.run_command(*self.script_arguments(COUNT, event, [], []), "--run", WATCHED, 1)
        self.assertEqual([run.status, len(run.errors)], [1, 1])
        return run.errors[0]


@skip_unless_tracepoints
class TestBreakpoints(BreakpointTestCase):
    def test_writes_are_sampled_one_by_one(self):
        nr, counted, addresses, nr_places, tids = self.run_watched(SHOW, f"mem:{self.word:#x}/8:w/period=1,addr/u")
        self.assertEqual([nr, counted, addresses, nr_places, len(tids)], [NR, [NR], [self.word], 1, 1])

    def test_reads_and_writes(self):
        nr, counted, addresses, nr_places, _ = self.run_watched(SHOW, f"mem:{self.word:#x}/8:rw/period=1,addr/u")
        self.assertEqual([nr, counted, addresses, nr_places], [3 * NR, [3 * NR], [self.word], 3])

    def test_calls(self):
        source = SHOW.replace("len({event.ip for event in kept})", "kept[0].ip")
        nr, counted, addresses, ip, _ = self.run_watched(source, f"mem:{self.function:#x}:x/period=1,addr/u")
        self.assertEqual([nr, counted, addresses, ip], [NR, [NR], [self.function], self.function])

    def test_a_period_samples_every_so_many(self):
        nr, counted, _, _, _ = self.run_watched(SHOW, f"mem:{self.word:#x}/8:w/period=10,addr/u")
        self.assertEqual([nr, counted], [NR / 10, [NR]])

    @unittest.skipUnless(IS_X86, "elsewhere a call leaves nothing on the stack")
    def test_parts_of_the_place(self):
        source = """
import json
kept = []
def __sample__(event):
    kept.append(event)
def __exit__():
    places = {(event.data_page_size, event.code_page_size, event.addr, event.phys_addr %% %d, event.phys_addr > 0,
               event.regs_user["ip"] == event.regs_intr["ip"] == event.ip) for event in kept}
    callers = {int.from_bytes(event.stack_user[:8], "little") for event in kept}
    print(json.dumps([len(kept), list(places), [%d < caller < %d for caller in callers],
                      {len(event.stack_user) %% 8 for event in kept} == {0}, max(len(event.stack_user) for event in kept) <= 8192]))
""" % (PAGE_SIZE, self.main, self.main + self.main_size)
        event = f"mem:{self.function:#x}:x/period=1,addr,phys-addr,page-size,stack-user,regs/u"
        self.assertEqual(self.run_watched(source, event),
                         [NR, [[PAGE_SIZE, PAGE_SIZE, self.function, self.function % PAGE_SIZE, True, True]], [True], True, True])

    @unittest.skipUnless(find_cgroup2(), "no cgroup2 hierarchy is mounted")
    def test_the_cgroup_is_that_of_the_program(self):
        source = "import json\nseen = set()\ndef __sample__(event): seen.add(event.cgroup)\n" \
                 "def __exit__(): print(json.dumps(list(seen)))\n"
        with open("/proc/self/cgroup", encoding="ascii") as file:
            path = next(line[len("0::"):].strip() for line in file if line.startswith("0::"))
        self.assertEqual(self.run_watched(source, f"mem:{self.word:#x}/8:w/period=1,cgroup/u"),
                         [os.stat(find_cgroup2() + path).st_ino])

    def test_counting_ones_have_totals_and_no_samples(self):
        self.assertEqual(self.run_watched(COUNT, [f"mem:{self.word:#x}/8:w/alias=w/u", f"mem:{self.word:#x}/8:rw/alias=rw/u",
                                                  f"mem:{self.function:#x}:x/alias=x/u"]), [NR, 3 * NR, NR])

    def test_each_length_watches_so_many_bytes(self):
        events = [f"mem:{self.bytes + at:#x}/{length}:w/alias=b{length}/u" for at, length in ((3, 1), (2, 2), (4, 4), (0, 8))]
        self.assertEqual(self.run_watched(COUNT, events), [NR, 2 * NR, 4 * NR, 8 * NR])

    def test_of_a_process_that_runs(self):
        load = self.hold_load(command=[WATCHED, str(NR), "wait"])
        events = [f"mem:{self.word:#x}/8:w/period=1,addr/u", f"mem:{self.function:#x}:x/alias=x/u"]
        observer = self.start_script(SHOW, events, "-p", load.pid)
        load.finish()
        run = observer.wait()
        self.assertEqual([run.status, run.stderr], [0, ""])
        nr, counted, addresses, nr_places, tids = run.json[0]
        self.assertEqual([nr, counted, addresses, nr_places, tids], [NR, [NR, NR], [self.word], 1, [load.pid]])

    def test_what_the_processor_cannot_watch_is_told(self):
        self.assertRegex(self.refusal(f"mem:{self.word + 4:#x}/8:w"),
                         r"^perfscope: open mem:0x\w+/8:w on cpu \d+ of thread \d+: the address of a breakpoint of 8 bytes "
                         r"must be a multiple of 8 \(choose a shorter one\)$")

    def test_more_than_there_are_registers_is_told(self):
        events = [f"mem:{self.bytes + i:#x}/1:w/alias=b{i}/" for i in range(8)] + [f"mem:{self.word + i:#x}/1:w" for i in range(8)]
        self.assertRegex(self.refusal(",".join(events)), r"all breakpoint registers are in use \(choose fewer mem: events\)$")

    def test_reads_alone(self):
        event = f"mem:{self.word:#x}/8:r"
        if IS_X86:
            self.assertRegex(self.refusal(event), r"this processor does not watch reads alone \(use :rw, which has the "
                                                  r"writes too\)$")
        else:
            self.assertEqual(self.run_watched(COUNT, event + "/alias=r/u"), [2 * NR])

    def build_pie(self):
        """The same program, position-independent; its path and the address of watched_word in its file."""
        program = os.path.join(self.folder, "pie")
        source = os.path.join(os.path.dirname(__file__), "watched.c")
        subprocess.run(["cc", "-O1", "-fPIE", "-pie", "-o", program, source], check=True)
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        return program, next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" watched_word"))

    def test_an_address_of_the_file_that_is_not_one_of_memory_is_told_at_the_end(self):
        program, word = self.build_pie()
        events = [f"mem:{word:#x}/8:w", "mem:0x401000/8:w", f"mem:{word + 0x555555554000:#x}/8:w"]
        run = self.run_command(*self.script_arguments(COUNT, events, [], []), "--run", program, 10)
        why = (f"never happened: {program} is position-independent, and in memory each of its addresses is another one than "
               "in its file (link it with -no-pie, or observe it with -p where it runs: /proc/PID/maps tells where it begins)")
        self.assertEqual([run.status, run.json, run.errors],
                         [0, [[0, 0, 0]], [f"perfscope: {event} {why}" for event in events[:2]]])

    def test_one_that_never_happens_in_a_program_of_fixed_addresses_is_not_told(self):
        self.assertEqual(self.run_watched(COUNT, [f"mem:{self.word:#x}/8:w/alias=w/u", f"mem:{self.main:#x}/1:w"]), [NR, 0])

    def test_an_address_that_a_process_has_not_is_told_at_the_start(self):
        program, word = self.build_pie()
        load = self.hold_load(command=[program, str(NR), "wait"])
        with open(f"/proc/{load.pid}/maps", encoding="ascii") as file:
            begin = int(file.readline().split("-")[0], 16)
        observer = self.start_script(COUNT, [f"mem:{word:#x}/8:w", f"mem:{begin + word:#x}/8:w"], "-p", load.pid)
        load.finish()
        run = observer.wait()
        self.assertEqual([run.status, run.json, run.errors], [0, [[0, NR]], [
            f"perfscope: mem:{word:#x}/8:w: nothing is mapped at this address now in thread {load.pid}; /proc/{load.pid}/maps "
            "shows what is, and the address in a file is to be added to where the file begins"]])


if __name__ == "__main__":
    unittest.main()
