# SPDX-License-Identifier: MIT
"""Counters that sample, and the parts of samples, on loads of known size."""

import os
import pathlib
import re
import unittest

from livetest import LiveTestCase, skip_if_hardware_pmu, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
PAGE_SIZE = os.sysconf("SC_PAGESIZE")

KEEP = """
import json
kept = []
def __sample__(event):
    kept.append(event)
def show(value):
    print(json.dumps(value))
"""


@skip_unless_tracepoints
class TestSampling(LiveTestCase):
    def test_period_of_1_samples_each_occurrence(self):
        source = KEEP + """
def __exit__(totals):
    show([len(kept), totals["run"].values["page-faults"], {event.period for event in kept} == {1},
          {event._tid for event in kept} == {event.tid for event in kept}])
"""
        run = self.run_script(source, "page-faults/period=1/", load=["touch", 100])
        [[nr, counted, is_one, is_same]] = run.json
        self.assertEqual([run.status, nr == counted, is_one, is_same], [0, True, True, True])

    def test_addresses_of_faults_are_those_of_the_pages(self):
        source = KEEP + """
def __exit__():
    show(sorted({event.addr // %d for event in kept}))
""" % PAGE_SIZE
        run = self.run_script(source, "page-faults/period=1,addr/", load=["touch", 300])
        pages = run.json[0]
        longest = length = 1
        for one, other in zip(pages, pages[1:]):
            length = length + 1 if other == one + 1 else 1
            longest = max(longest, length)
        self.assertGreaterEqual(longest, 300)

    def test_period_of_10_samples_every_tenth(self):
        source = KEEP + "def __exit__(totals): show([len(kept), list(totals['run'].values.values()), kept[0]._period])\n"
        run = self.run_script(source, f"{GETPPID}//period=10/", load=["getppid", 1000])
        self.assertEqual(run.json, [[100, [1000], 10]])

    def test_option_c_is_for_the_counters_without_a_period(self):
        source = KEEP + """
import collections
def __exit__():
    show(collections.Counter(event._event + str(event._period) for event in kept))
"""
        run = self.run_script(source, [GETPPID, "page-faults"], "-c", "1", load=["getppid", 50])
        counts = run.json[0]
        self.assertEqual(counts[GETPPID + "1"], 50)
        self.assertEqual(set(counts), {GETPPID + "1", "page-faults1"})

    def test_frequency_gives_as_many_samples_as_time_passes(self):
        source = KEEP + "def __exit__(totals): show([len(kept), totals['run'].values['cpu-clock']])\n"
        run = self.run_script(source, "cpu-clock/freq=1000/", "-C", "0", "--duration", "1")
        [[nr, clock_ns]] = run.json
        self.assertAlmostEqual(nr, clock_ns / 1e6, delta=clock_ns / 1e6 * 0.3)

    def test_every_part_that_has_no_place_of_its_own_can_be_asked_for(self):
        source = KEEP + """
def __exit__():
    show([{(event.raw.hex(), event.transaction, event.id == event.identifier == event.stream_id) for event in kept} ==
          {("00000000", 0, True)}, len(kept), kept[0]._raw.hex(), "raw" in kept[0], kept[0].ip > 0, kept[0]._pid == kept[0].pid])
"""
        run = self.run_script(source, "page-faults/period=1,raw,transaction,id,stream-id/", "-q", load=["touch", 100])
        is_zero, nr, *rest = run.json[0]
        self.assertEqual([is_zero, nr >= 100, rest], [True, True, ["00000000", True, True, True]])

    def test_ids_of_a_tracepoint_and_of_what_inherited_it(self):
        source = KEEP + """
def __exit__():
    show([len({event.id for event in kept}), len({event.stream_id for event in kept}), len({event._tid for event in kept}),
          {event.identifier == event.id for event in kept} == {True}, len(kept)])
"""
        for attribute in "id,stream-id", "identifier,stream-id":
            run = self.run_script(source, f"{GETPPID}//{attribute}/", load=["--cpu", "0", "threads", 4, 5])
            self.assertEqual([run.json[0], run.stderr], [[1, 4, 4, True, 20], ""])

    def test_group_is_read_with_each_sample(self):
        source = KEEP + """
def __exit__():
    show([[event._counters["page-faults"], event.read["cntr"][1]["value"], event.read["cntr"][1]["name"],
           event.read["nr"]] for event in kept])
"""
        run = self.run_script(source, "{cpu-clock,page-faults/period=1,read/}", load=["touch", 20])
        rows = run.json[0]
        self.assertEqual(rows, [[i + 1, i + 1, "page-faults", 2] for i in range(len(rows))])

    def test_registers_at_the_sample(self):
        source = KEEP + """
def __exit__():
    show([sorted({event.regs_user["abi"] for event in kept}), all(event.regs_intr["ip"] == event.ip for event in kept),
          len(kept[0].regs_user)])
"""
        run = self.run_script(source, "page-faults/period=1,regs/u", load=["touch", 20])
        [[abis, is_same, nr]] = run.json
        self.assertEqual([abis, is_same, nr], [[2], True, 21 if os.uname().machine == "x86_64" else 34])

    def test_options_of_profile_are_those_of_the_command(self):
        source = KEEP + """
def __exit__(totals):
    show([len(kept), totals["run"].values["profile"], {event._period for event in kept} <= {10**9 // 499, 10**9 // 499 + 1},
          sum("main" in [frame["symbol"] for frame in event._callchain] for event in kept)])
"""
        for events, *options in ["profile/-F 499 -g/"], ["profile/freq=499,stack/"], ["profile/-F 499/", "-g"]:
            run = self.run_script(source, events, *options, load=["spin", 500])
            [[nr, clock_ns, is_period, nr_main]] = [row for row in run.json if isinstance(row, list)]
            self.assertAlmostEqual(nr, clock_ns * 499 / 1e9, delta=clock_ns * 499 / 1e9 * 0.3)
            self.assertTrue(is_period)
            self.assertGreater(nr_main, nr / 2)  # the others are of the start

    def test_option_f_is_for_the_counters_without_a_frequency(self):
        source = KEEP + """
import collections
def __exit__(): show(collections.Counter(f"{event._event} {event.period}" for event in kept))
"""
        run = self.run_script(source, ["cpu-clock", "task-clock/freq=250/"], "-F", "500", load=["spin", 300])
        counts = next(row for row in run.json if "pid" not in row)
        self.assertEqual(set(counts), {"cpu-clock 2000000", "task-clock 4000000"})

    def test_tracepoint_shows_what_it_is_asked_for(self):
        source = KEEP + """
def __exit__():
    show([sorted(set(kept[0].keys()) - {name for name in kept[0].keys() if name.startswith(("_", "common_"))}),
          kept[0].cgroup == kept[-1].cgroup, len(kept)])
"""
        run = self.run_script(source, "syscalls:sys_enter_close//ip,cgroup/", load=["getppid", 1])
        names, is_same, nr = run.json[0]
        self.assertEqual([names, is_same], [["cgroup", "fd", "ip"], True])
        self.assertGreaterEqual(nr, 1)

    @skip_if_hardware_pmu
    def test_sampling_cycles_without_a_pmu_become_cpu_clock(self):
        source = KEEP + "def __exit__(totals): show([len(kept), kept[0]._event, totals['run'].values['cycles']])\n"
        run = self.run_script(source, "cycles/freq=1000/", "-C", "0", "--duration", "0.5")
        nr, name, clock_ns = run.json[0]
        self.assertEqual(name, "cycles")
        # A host that takes its CPUs away lets ticks of the timer go.
        self.assertAlmostEqual(nr, clock_ns / 1e6, delta=clock_ns / 1e6 * 0.3)
        self.assertEqual(run.errors,
                         ["perfscope: cycles: no hardware PMU here, cpu-clock samples in its place"])
        run = self.run_script(source, "cycles/freq=1000/", "--strict", "--duration", "0.5")
        self.assertEqual([run.status, run.errors], [1, ["perfscope: cycles: no hardware PMU here; nearest: cpu-clock "
                                                        "(--strict)"]])

    def test_profile_samples_997_times_a_second(self):
        source = KEEP + "def __exit__(totals): show([len(kept), totals['run'].values['profile'], kept[0].keys()[-1]])\n"
        run = self.run_script(source, "profile", "-C", "0", "--duration", "1")
        nr, _, _ = run.json[0]
        self.assertAlmostEqual(nr, 997, delta=300)

    def lower_max_sample_rate(self, rate):
        path = pathlib.Path("/proc/sys/kernel/perf_event_max_sample_rate")
        self.addCleanup(path.write_text, path.read_text(encoding="ascii"), encoding="ascii")
        path.write_text(str(rate), encoding="ascii")

    def test_samples_that_the_kernel_holds_back_are_told(self):
        source = KEEP + "def __exit__(totals): show([len(kept), totals['run'].values, totals['run'].coverage])\n"
        self.lower_max_sample_rate(1000)
        run = self.run_script(source, "cpu-clock/period=100000/,task-clock", "--usage", "50", load=["spin", 100])
        self.assertEqual(run.status, 0)
        told = re.fullmatch(r"perfscope: cpu-clock: (\d+) times held back by the kernel's limit of samples "
                            r"\(kernel.perf_event_max_sample_rate is 1000\); ask for fewer", run.errors[-1])
        nr_held = int(told[1])
        [[nr, values, coverage]] = run.json
        # So many of 1000 a second are a tick's share, at 1000, 300 or 250, and 100 ticks a second; the last may be short.
        self.assertIn(nr // nr_held, (1, 4, 10))
        # What is held back does not count: of 100 ms it would be 40 or less.
        self.assertEqual([values["cpu-clock"], coverage["cpu-clock"]], [None, 0.0])
        self.assertGreater(values["task-clock"], 100000000)
        self.assertRegex(run.errors[0], r"perfscope: cpu .*, \d+ events, 0 lost, \d+ times held back")

    def test_what_the_machine_lacks_is_told(self):
        rows = {
            "cpu-clock/freq=99,branch/": "branch stacks need a PMU that records branches",
            "cpu-clock/freq=9999999/": "a frequency of 9999999 is more than the kernel allows",
            "cpu-clock/addr/": "a counter that only counts has no samples",
        }
        for event, message in rows.items():
            with self.subTest(event):
                run = self.run_script("def __sample__(event): pass\n", event, "-C", "0", "--duration", "0.1")
                self.assertNotEqual(run.status, 0)
                self.assertEqual(len(run.errors), 1)
                self.assertIn(message, run.errors[0])


if __name__ == "__main__":
    unittest.main()
