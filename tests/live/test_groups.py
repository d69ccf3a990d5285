# SPDX-License-Identifier: MIT
"""Several events: aliases, filters, globs, groups, and counters whose totals are the kernel's own numbers."""

import os
import time
import unittest

from livetest import LiveTestCase, skip_if_hardware_pmu, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
KILL = "syscalls:sys_enter_kill"
OPENAT = "syscalls:sys_enter_openat"

# Which handler got how many of which event; totals of each interval and of the whole run.
NAMES = """
import collections, json
got, intervals = collections.Counter(), []
def count(handler, event):
    got[handler + ' ' + event._event.split(':')[-1]] += 1
def __sample__(event): count('sample', event)
def __interval__(totals): intervals.append(totals['run'].values)
def __exit__(totals):
    run = totals['run']
    print(json.dumps({'got': got, 'values': run.values, 'scaled': run.scaled, 'coverage': run.coverage,
                      'intervals': intervals}), flush=True)
"""


def handlers(*names):
    return NAMES + "".join(f"def {name}(event): count('{name}', event)\n" for name in names)


class GroupTestCase(LiveTestCase):
    def run_names(self, source, events, *options, load):
        run = self.run_script(source, events, *options, load=load)
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]


@skip_unless_tracepoints
class TestSeveral(GroupTestCase):
    def test_one_event_with_different_filters_and_aliases(self):
        events = f"{KILL}/sig == 0/alias=probe/,{KILL}/sig == 18 || sig == 10/alias=other/,{KILL}/sig > 9/,{KILL}"
        source = handlers("syscalls__probe", "syscalls__other", "syscalls__sys_enter_kill")
        result = self.run_names(source, events, load=["kill", 0, 5, "+", "kill", 18, 7, "+", "kill", 10, 2])
        self.assertEqual(result["got"], {"syscalls__probe sys_enter_kill": 5, "syscalls__other sys_enter_kill": 9,
                                         "syscalls__sys_enter_kill sys_enter_kill": 9 + 14})
        self.assertEqual(result["values"], {"probe": 5, "other": 9, KILL: 9, KILL + "#2": 14})

    def test_options_given_again_add_events(self):
        result = self.run_names(handlers("syscalls__a"), [GETPPID + "//alias=a/", KILL, "page-faults"],
                                load=["getppid", 3, "+", "kill", 0, 4])
        self.assertEqual(result["got"], {"syscalls__a sys_enter_getppid": 3, "sample sys_enter_kill": 4})
        self.assertEqual(list(result["values"]), ["a", KILL, "page-faults"])

    def test_glob_goes_on_without_what_nobody_may_sample(self):
        run = self.run_script("def __sample__(event): pass\n", "irq_vectors:irq_work_e*", "--duration", "0.05")
        self.assertEqual([run.status, run.errors], [
            0, ["perfscope: irq_vectors:irq_work_exit: the kernel lets nobody sample it, it reads None"]])
        run = self.run_script("def __sample__(event): pass\n", "irq_vectors:irq_work_ex*", "--duration", "0.05")
        self.assertEqual(run.status, 1)
        self.assertIn("open irq_vectors:irq_work_exit on cpu 0: permission denied in spite of CAP_PERFMON", run.stderr)

    def test_glob_opens_all_that_match_and_one_handler_is_found_by_name(self):
        result = self.run_names(handlers("syscalls__sys_enter_getppid"), "syscalls:sys_enter_getp?id", load=["getppid", 11])
        self.assertEqual(result["got"], {"syscalls__sys_enter_getppid sys_enter_getppid": 11})
        result = self.run_names(NAMES, "syscalls:sys_e*_getp*", load=["getppid", 11])
        self.assertEqual({name: n for name, n in result["got"].items() if "getppid" in name},
                         {"sample sys_enter_getppid": 11, "sample sys_exit_getppid": 11})
        with open("/sys/kernel/tracing/available_events", encoding="ascii") as file:
            expected = sorted(name for name in file.read().split()
                              if name.startswith("syscalls:sys_e") and "_getp" in name.split(":")[1][7:])
        self.assertEqual(sorted(result["values"]), expected)

    def test_glob_with_an_alias_has_one_handler(self):
        result = self.run_names(handlers("syscalls__any"), "syscalls:sys_enter_get?pid//alias=any/", load=["getppid", 6])
        self.assertEqual(result["got"], {"syscalls__any sys_enter_getppid": 6})

    def test_quotes_commas_and_slashes_in_a_filter(self):
        path = os.path.join(self.folder, "a,b")
        event = f'{OPENAT}/filename.ustring ~ "*/a,b" || filename.ustring == "{path}x"/alias=mine/,{KILL}'
        result = self.run_names(handlers("syscalls__mine"), event,
                                load=["open", path, 5, "+", "open", path + "x", 2, "+", "open", path + "y", 3])
        self.assertEqual(result["got"], {"syscalls__mine sys_enter_openat": 7})

    def test_name_of_the_thread_in_a_filter(self):
        for name, expected in ("load", 3), ("load,x", 4):
            result = self.run_names(NAMES, f"{GETPPID}/comm == '{name}'/",
                                    load=["getppid", 3, "+", "rename", "load,x", "+", "getppid", 4])
            self.assertEqual(result["got"], {"sample sys_enter_getppid": expected})

    def test_blank_filter_lets_all_through(self):
        for event in GETPPID + "//", GETPPID + "/ /", GETPPID + "///":
            self.assertEqual(self.run_names(NAMES, event, load=["getppid", 3])["got"], {"sample sys_enter_getppid": 3})


@skip_unless_tracepoints
class TestFilterErrors(LiveTestCase):
    def assert_refused(self, text, message, column):
        run = self.run_script(NAMES, f"{KILL}/{text}/", load=["kill", 0])
        lines = [f"perfscope: {KILL}: filter '{text}': {message}"]
        if column is not None:
            lines += ["    " + text, "    " + " " * column + "^"]
        self.assertEqual([run.status, run.stdout, run.errors], [2, "", lines])

    def test_each_is_told_by_what_is_wrong(self):
        for text, message, column in (
                ("((pid>1)", "a parenthesis is open; close it", 0),
                ('comm == "(" && (pid > 1', "a parenthesis is open; close it", 15),
                ("pid>1)", "a parenthesis is closed that was not opened", 5),
                ("pid > 1 && sag == 0", "unknown field sag; did you mean sig?", 11),
                ("pid > 1 ||", "|| joins two comparisons; one is missing", 8),
                ("|| pid > 1", "|| joins two comparisons; one is missing", 0),
                ("pid > 1 sig == 0", "something follows a comparison; join two by && or ||", None),
                ("pid", 'the kernel refuses it; compare as in prev_pid == 1 or comm ~ "ba*", a string with == != ~ only, an '
                        "unsigned field with no negative number", None)):
            with self.subTest(filter=text):
                self.assert_refused(text, message, column)

    def test_open_quote_is_found_before_the_kernel_sees_it(self):
        text = f'{KILL}/comm == "x/'
        run = self.run_script(NAMES, text, load=["kill", 0])
        self.assertEqual([run.status, run.errors],
                         [2, ["perfscope: this quote is not closed", "    " + text, "    " + " " * text.index('"') + "^"]])

    def test_long_string_says_how_long_it_may_be(self):
        run = self.run_script(NAMES, f'{KILL}/comm == "{"a" * 300}"/', load=["kill", 0])
        self.assertEqual([run.status, len(run.errors)], [2, 1])
        self.assertTrue(run.errors[0].endswith(
            ": a string in it is longer than the 255 bytes that the kernel takes; make it shorter"), run.errors)

    def test_script_is_not_started(self):
        run = self.run_script(NAMES + "def __init__(): print('started')\n", f"{KILL}/sag == 0/", load=["kill", 0])
        self.assertEqual([run.status, run.stdout], [2, ""])


class CounterTestCase(GroupTestCase):
    def count_held(self, source, events, load, *options):
        """Run @source over one go() of @load. What it printed, and by how much the kernel's own numbers grew."""
        faults, switches = load.nr_faults(), load.nr_switches()
        observer = self.start_script(source, events, "-p", load.pid, *options)
        load.go()
        faults, switches = load.nr_faults() - faults, load.nr_switches() - switches
        if "-i" in options:
            time.sleep(0.2)  # until the last interval holds nothing more
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0], faults, switches


@skip_unless_tracepoints
class TestCounters(CounterTestCase):
    def test_totals_are_the_kernels_own_numbers(self):
        load = self.hold_load("wait", "+", "touch", 1000, "+", "sleep", 5, "+", "wait")
        result, faults, switches = self.count_held(NAMES, "page-faults,minor-faults,major-faults,context-switches", load)
        self.assertEqual(result["values"], {"page-faults": faults, "minor-faults": faults, "major-faults": 0,
                                            "context-switches": switches})
        self.assertEqual(result["scaled"], result["values"])
        self.assertEqual(set(result["coverage"].values()), {1.0})
        self.assertTrue(1000 <= faults < 1020, faults)
        self.assertGreaterEqual(switches, 2)

    def test_switches_are_counted_where_the_kernel_is_excluded(self):
        for events, options in (["context-switches:u"], []), (["context-switches"], ["--exclude-kernel"]):
            load = self.hold_load("wait", "+", "sleep", 1, "+", "sleep", 1, "+", "wait")
            result, _, switches = self.count_held(NAMES, events, load, *options)
            self.assertEqual(result["values"], {events[0]: switches})

    def test_intervals_add_up_to_the_whole(self):
        load = self.hold_load("wait", "+", "touch", 300, "+", "sleep", 120, "+", "touch", 200, "+", "getppid", 77, "+", "wait")
        for inherit in [], ["--inherit"]:
            load = self.hold_load("wait", "+", "touch", 300, "+", "sleep", 120, "+", "touch", 200, "+", "getppid", 77,
                                  "+", "wait")
            result, faults, _ = self.count_held(NAMES, f"page-faults,{GETPPID}", load, "-i", "50", *inherit)
            self.assertEqual(result["values"], {"page-faults": faults, GETPPID: 77})
            for name, whole in result["values"].items():
                self.assertEqual(sum(interval[name] for interval in result["intervals"]), whole)
            self.assertGreaterEqual(sum(interval["page-faults"] >= 200 for interval in result["intervals"]), 2)

    def test_clocks_of_a_program_agree(self):
        result = self.run_names(NAMES, "task-clock,cpu-clock", load=["spin", 100])
        for name in "task-clock", "cpu-clock":
            # At least the CPU time that it spun; starting it took some more.
            self.assertTrue(100e6 <= result["values"][name] < 160e6, result)
            self.assertEqual(result["scaled"][name], result["values"][name])

    @unittest.skipUnless(os.path.exists("/sys/bus/event_source/devices/msr/events/tsc"), "no msr PMU here")
    def test_named_event_of_a_pmu(self):
        result = self.run_names(NAMES, "{msr/tsc/},task-clock", load=["spin", 100])
        self.assertEqual(result["coverage"], {"msr/tsc/": 1.0, "task-clock": 1.0})
        ghz = result["values"]["msr/tsc/"] / result["values"]["task-clock"]
        self.assertTrue(0.5 < ghz < 8, result)


COUNTERS = """
import json
seen = []
def sched__sched_switch(event): seen.append(event._counters)
def __exit__(totals): print(json.dumps({'seen': seen, 'values': totals['run'].values}), flush=True)
"""


@skip_unless_tracepoints
class TestGroups(CounterTestCase):
    def test_event_of_a_group_tells_the_counters_at_that_moment(self):
        load = self.hold_load("wait", "+", "touch", 500, "+", "sleep", 5, "+", "touch", 100, "+", "wait")
        result, faults, switches = self.count_held(COUNTERS, "{cpu-clock,page-faults,sched:sched_switch}", load)
        seen = result["seen"]
        self.assertEqual(len(seen), switches)
        for counters in seen:
            self.assertEqual(list(counters), ["cpu-clock", "page-faults", "sched:sched_switch"])
        self.assertEqual([counters["sched:sched_switch"] for counters in seen], list(range(1, switches + 1)))
        # The last switch is the one to the second wait: nothing came after it.
        self.assertEqual(seen[-1]["page-faults"], faults)
        self.assertEqual([result["values"][name] for name in ("page-faults", "sched:sched_switch")], [faults, switches])
        times = [counters["cpu-clock"] for counters in seen]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[-1], result["values"]["cpu-clock"])

    @skip_if_hardware_pmu
    def test_missing_counter_of_all_cpus_is_told_once(self):
        source = NAMES + "import perfscope\ndef sched__sched_switch(event): perfscope.stop()\n"
        script = self.write("script.py", source)
        run = self.run_command("python", "-e", "cycles,sched:sched_switch", script)
        self.assertEqual([run.status, run.errors],
                         [0, ["perfscope: cycles: no hardware PMU here, it reads None; nearest: cpu-clock"]])
        self.assertIsNone(run.json[0]["values"]["cycles"])
        self.assertGreaterEqual(run.json[0]["values"]["sched:sched_switch"], 1)

    @skip_if_hardware_pmu
    def test_missing_counter_leaves_the_rest_of_its_group(self):
        run = self.run_script(NAMES, f"{{cycles,page-faults,{GETPPID}}}", load=["getppid", 4])
        self.assertEqual(run.errors, ["perfscope: cycles: no hardware PMU here, it reads None; nearest: cpu-clock"])
        self.assertEqual([run.status, run.json[0]["got"]], [0, {"sample sys_enter_getppid": 4}])
        values = run.json[0]["values"]
        self.assertEqual([values["cycles"], values[GETPPID]], [None, 4])
        self.assertEqual([run.json[0]["scaled"]["cycles"], run.json[0]["coverage"]["cycles"]], [None, 0.0])

    @skip_if_hardware_pmu
    def test_strict_refuses_a_missing_counter(self):
        for events in f"cycles,{GETPPID}", f"{{cycles,{GETPPID}}}":
            run = self.run_script(NAMES, events, "--strict", load=["getppid", 4])
            self.assertEqual([run.status, run.stdout, run.errors],
                             [1, "", ["perfscope: cycles: no hardware PMU here; nearest: cpu-clock (--strict)"]])

    @skip_if_hardware_pmu
    def test_nothing_but_missing_counters_ends_the_run(self):
        run = self.run_script(NAMES, "cycles", load=["getppid", 4])
        self.assertEqual([run.status, run.stdout, run.errors], [1, "", [
            "perfscope: cycles: no hardware PMU here, it reads None; nearest: cpu-clock",
            "perfscope: not one event can be opened (cycles: no hardware PMU here; nearest: cpu-clock)"]])


if __name__ == "__main__":
    unittest.main()
