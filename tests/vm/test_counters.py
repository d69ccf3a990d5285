# SPDX-License-Identifier: MIT
"""Hardware counters, in a guest whose cycles are exactly four times its instructions."""

import os
import unittest

from livetest import LiveTestCase

PAIR = "{cycles,instructions}"
GETPPID = "syscalls:sys_enter_getppid"

TOTALS = """
import json
def show(totals):
    run = totals["run"]
    print(json.dumps({"values": run.values, "scaled": run.scaled, "coverage": run.coverage}), flush=True)
def __exit__(totals): show(totals)
"""
INTERVALS = TOTALS + "def __interval__(totals): show(totals)\n"
KEEP = """
import json
kept = []
def __sample__(event): kept.append(event)
def show(value): print(json.dumps(value))
"""


def pin():
    """One CPU: samples of a thread on several are counted apart."""
    os.sched_setaffinity(0, {0})


class CounterTestCase(LiveTestCase):
    def run_totals(self, events, *options, source=TOTALS, **keywords):
        run = self.run_script(source, events, *options, **keywords)
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json

    def start_and_load(self, source, events, load):
        held = self.hold_load("--cpu", 1, "wait", "+", *load, "+", "wait")
        observer = self.start_script(source, events, "-p", held.pid)
        held.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run

    def assert_exact(self, cycles, instructions):
        self.assertGreater(instructions, 0)
        self.assertEqual(cycles, 4 * instructions)


class TestGroup(CounterTestCase):
    """Of threads: the cycles of a CPU go on while it idles."""

    def test_a_group_is_counted_together(self):
        for events, load in ((PAIR, ["getppid", 500]), (PAIR + ":u", ["spin", 2]), (PAIR + ":k", ["getppid", 500]),
                             (PAIR, ["fork", 3]), (PAIR, ["fork", 100]), (PAIR, ["threads", 3, 50])):
            with self.subTest(events=events, load=load):
                [result] = self.run_totals(events, "--inherit", load=load)
                self.assertEqual(set(result["coverage"].values()), {1.0}, result)
                self.assert_exact(*result["values"].values())
                self.assertEqual(result["scaled"], result["values"])

    def test_each_interval_is_read_together(self):
        *intervals, whole = self.run_totals(PAIR, "-i", "100", source=INTERVALS, load=["spin", 500])
        self.assertGreaterEqual(len(intervals), 3)
        for result in intervals:
            cycles, instructions = result["values"].values()
            # The kernel reads members that count one after the other, half a microsecond apart; two reads are further apart.
            self.assertAlmostEqual(cycles, 4 * instructions, delta=2000)
        self.assert_exact(*whole["values"].values())

    def test_user_and_kernel_are_the_whole(self):
        [result] = self.run_totals("{instructions,instructions:u,instructions:k}", load=["getppid", 1000])
        both, user, kernel = result["values"].values()
        self.assertEqual(both, user + kernel)
        # A call of the wrapper and its loop are some dozen instructions; the kernel's entry and exit some hundreds.
        self.assertTrue(8000 < user < 200000 < kernel, (user, kernel))

    def test_members_that_do_not_fit_are_told(self):
        group = "{" + ",".join(f"instructions/alias=i{i}/" for i in range(9)) + "}"
        run = self.run_script(TOTALS, group, load=["getppid", 100])
        lacking = [line for line in run.errors if "its group does not fit on the hardware PMU, it reads None" in line]
        self.assertEqual([run.status, len(lacking) >= 1, len(lacking)], [0, True, len(run.errors)])
        values = list(run.json[0]["values"].values())
        self.assertEqual(values.count(None), len(lacking))
        self.assertEqual(len(set(values) - {None}), 1)


class TestLeaders(CounterTestCase):
    def samples(self, leader, load, name):
        source = KEEP + f"""
def __exit__(totals):
    show([[event._counters for event in kept], totals["run"].values, {{event._event for event in kept}} == {{{name!r}}}])
"""
        run = self.start_and_load(source, f"{{{leader},cycles,instructions}}", load)
        rows, values, is_same = run.json[0]
        self.assertTrue(is_same)
        return rows, values

    def check(self, rows, values, leader, nr):
        self.assertEqual([row[leader] for row in rows], list(range(1, nr + 1)))
        self.assertEqual(values[leader], nr)
        self.assert_exact(values["cycles"], values["instructions"])
        for name in "cycles", "instructions":
            seen = [row[name] for row in rows]
            self.assertEqual(seen, sorted(set(seen)))
            self.assertLessEqual(seen[-1], values[name])
        # At a sample the members are read one after the other.
        for row in rows:
            self.assertAlmostEqual(row["cycles"] / row["instructions"], 4, delta=0.25)

    def test_a_tracepoint_leads(self):
        rows, values = self.samples(GETPPID, ["getppid", 50], GETPPID)
        self.check(rows, values, GETPPID, 50)

    def test_the_scheduler_leads(self):
        rows, values = self.samples("sched:sched_switch", ["sleep", 1], "sched:sched_switch")
        self.assertGreaterEqual(len(rows), 2)
        self.check(rows, values, "sched:sched_switch", len(rows))

    def test_a_probe_of_the_kernel_leads(self):
        for arguments in "", " regs=%x0":
            rows, values = self.samples("kprobe:__arm64_sys_getppid" + arguments, ["getppid", 50],
                                        "kprobe:__arm64_sys_getppid")
            self.check(rows, values, "kprobe:__arm64_sys_getppid", 50)

    def test_a_started_program_before_new_threads_can_be_read(self):
        """Linux 6.12 reads groups in samples of inherited events; Debian's 6.1 does not."""
        source = KEEP + "def __exit__(totals): show([len(kept), totals['run'].values])\n"
        run = self.run_script(source, "{%s,cycles,instructions}" % GETPPID, load=["getppid", 30])
        self.assertEqual([run.status, run.errors], [0, [
            f"perfscope: {GETPPID}: this kernel reads no counters in samples of new threads (Linux 6.12 does), only the "
            "program's first thread is observed"]])
        nr, values = run.json[0]
        self.assertEqual([nr, values[GETPPID]], [30, 30])
        self.assert_exact(values["cycles"], values["instructions"])
        run = self.run_script(source, "{%s,cycles}" % GETPPID, "--inherit", load=["getppid", 30])
        self.assertEqual(run.status, 1)
        self.assertIn("this kernel cannot read a group that children inherit (Linux 6.12 can; leave out --inherit", run.stderr)


class TestSampling(CounterTestCase):
    def test_each_million_of_a_thread_is_sampled_but_in_a_switch(self):
        """Linux' arm PMU driver forgets a period that ends while the kernel switches threads, interrupts off."""
        source = KEEP + """
def __exit__(totals):
    cycles = [event for event in kept if event._event == "cycles"]
    show([[event.read["value"] for event in cycles], sorted({(event.period, event._cpu) for event in cycles}),
          [event._counters["counted"] for event in kept if event._event != "cycles"], totals["run"].values["cycles"]])
"""
        run = self.start_and_load(source, ["cycles/period=1000000,read/", "{sched:sched_switch,cycles/alias=counted/}"],
                                  ["spin", 40])
        sampled, kinds, switched, cycles = run.json[0]
        self.assertGreater(cycles, 39000000)  # one a nanosecond
        self.assertEqual(kinds, [[1000000, 1]])
        missing = set(range(1, cycles // 1000000 + 1)) - {at // 1000000 for at in sampled}
        self.assertEqual(len(sampled) + len(missing), cycles // 1000000)
        self.assertLess(len(switched), 50)
        for nr in missing:
            # The end of the thread is one more.
            self.assertLess(min(abs(at - nr * 1000000) for at in [*switched, cycles]), 50000, (nr, switched))

    def test_profile_samples_cycles(self):
        source = KEEP + """
def __exit__(totals):
    values = totals["run"].values
    show([len(kept), kept[0]._event, values["profile:u"], values["cycles:u"], values["cpu-clock"]])
"""
        run = self.run_script(source, ["profile:u", "cycles:u", "cpu-clock"], load=["getppid", 5000, "+", "spin", 50],
                              preexec_fn=pin)
        self.assertEqual([run.status, run.stderr], [0, ""])
        nr, name, profiled, cycles, clock_ns = run.json[0]
        self.assertGreater(nr, 5)
        self.assertEqual([name, profiled], ["profile", cycles])
        # A clock goes on in the kernel, where these calls spend most of their time.
        self.assertLess(cycles, clock_ns * 0.95)

    def test_registers_have_the_names_of_the_machine(self):
        source = KEEP + """
def __exit__():
    event = kept[-1]
    show([list(event.regs_user), sorted({event.regs_user["abi"] for event in kept}),
          sum(event.regs_user["pc"] == event.ip for event in kept), sum(event.regs_intr["pc"] == event.ip for event in kept),
          len(kept)])
"""
        run = self.run_script(source, "cycles/period=1000000,regs/u", load=["spin", 30])
        self.assertEqual([run.status, run.stderr], [0, ""])
        names, abis, nr_user, nr_interrupted, nr = run.json[0]
        self.assertEqual(sorted(names), sorted(["abi", "lr", "sp", "pc", *(f"x{i}" for i in range(30))]))
        self.assertGreaterEqual(nr, 10)  # of 30, without those that end beside a switch
        self.assertEqual([abis, nr_user, nr_interrupted], [[2], nr, nr])


class TestMultiplexing(CounterTestCase):
    def test_what_counted_for_a_part_of_the_time_is_no_total(self):
        events = ",".join(f"instructions/alias=i{i:02}/" for i in range(16))
        [result] = self.run_totals(f"{events},task-clock", load=["spin", 300])
        names = [f"i{i:02}" for i in range(16)]
        coverage = [result["coverage"][name] for name in names]
        self.assertTrue(all(0 < part < 0.8 for part in coverage), coverage)
        # As many as the PMU has counters count at a time: 6 and that of cycles.
        self.assertAlmostEqual(sum(coverage), 6, delta=1.2)
        self.assertEqual({result["values"][name] for name in names}, {None})
        self.assertEqual(result["coverage"]["task-clock"], 1.0)
        # A quarter of the nanoseconds, scaled from what each saw of an even load.
        for name in names:
            self.assertAlmostEqual(result["scaled"][name], result["values"]["task-clock"] / 4,
                                   delta=result["values"]["task-clock"] / 4 * 0.2)

    def test_each_interval_is_told_as_a_part(self):
        events = ",".join(f"instructions/alias=i{i:02}/" for i in range(16))
        *intervals, whole = self.run_totals(events, "-i", "100", source=INTERVALS, load=["spin", 500])
        # The thread is on the other CPU: where the guest's CPUs have to wait for their host, the reads of one interval
        # are spread over tens of milliseconds, and each event has an interval of its own, as short as one turn.
        for result in [*intervals, whole]:
            for name, part in result["coverage"].items():
                self.assertEqual(result["values"][name] is None, part < 1, (name, result))
        parts = [result for result in intervals if max(result["coverage"].values()) < 1]
        self.assertGreaterEqual(len(parts), 3, intervals)
        self.assertLess(max(whole["coverage"].values()), 0.8, whole)

    def test_as_many_as_there_are_counters_are_whole(self):
        for nr, load in ((5, ["spin", 50]), (6, ["fork", 3]), (6, ["fork", 100]), (6, ["threads", 3, 50])):
            events = ",".join(f"instructions/alias=i{i}/" for i in range(nr))
            with self.subTest(nr=nr, load=load):
                *intervals, result = self.run_totals(events, "--inherit", "-i", "20", source=INTERVALS, load=load)
                # What is read while it runs is right to what lies between the reads of two CPUs, and that is no gap.
                for totals in [*intervals, result]:
                    self.assertEqual(set(totals["coverage"].values()), {1.0}, totals)
                    self.assertNotIn(None, totals["values"].values())
                self.assertGreater(min(result["values"].values()), 0)

    def test_a_process_that_runs_already_is_whole(self):
        """Its events are enabled one after the other while its threads run."""
        held = self.hold_load("--cpu", 1, "wait", "+", "threads", 3, 200, "+", "wait")
        held.go()
        observer = self.start_script(INTERVALS, PAIR, "-p", held.pid, "--inherit", "-i", "50")
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        for result in run.json:
            self.assertEqual(set(result["coverage"].values()), {1.0}, result)


if __name__ == "__main__":
    unittest.main()
