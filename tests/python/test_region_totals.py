# SPDX-License-Identifier: MIT
"""What is told of regions: totals, reports, reasons."""

import gc
import io
import json
import os
import subprocess
import sys
import threading
import unittest

import perfscope
from pages import EVENTS, Faults, RegionTestCase


class TestTotals(RegionTestCase):
    def test_names_that_are_none(self):
        for name, kind in (("", ValueError), ("run", ValueError), ("x" * 64, ValueError), (b"x", TypeError), ("a\0b", ValueError)):
            with self.subTest(name=name):
                self.assertRaises(kind, perfscope.region, name)
        self.assertIs(perfscope.region("x" * 63), perfscope.region("x" * 63))
        regions = {name: perfscope.region(name) for name in map(str, range(1000))}
        self.assertEqual([(name, region.name) for name, region in regions.items()], [(str(nr),) * 2 for nr in range(1000)])
        self.assertTrue(all(perfscope.region(str(nr)) is perfscope.region(name) is regions[name] for nr, name in enumerate(regions)))
        self.assertEqual(perfscope.region("ä").name, "ä")

    def test_reset_and_configure_start_from_zero(self):
        for again in (perfscope.reset, lambda: perfscope.configure("page-faults")):
            with perfscope.region("work"):
                self.pages.touch(5)
            again()
            self.assertEqual(perfscope.regions().get("work", perfscope.PerfEventTotals()).calls, 0)
        self.assertRaisesRegex(ValueError, "did you mean page-faults", perfscope.configure, "page-fault")

    def test_passes_that_have_not_ended_are_open(self):
        def told(total):
            return total.open, total.calls
        with perfscope.region("work"):
            self.assertEqual(told(perfscope.regions()["work"]), (1, 0))
        self.assertEqual(told(perfscope.regions()["work"]), (0, 1))
        with perfscope.region("work"):
            self.assertEqual(told(perfscope.regions()["work"]), (1, 1))
            # It may end in another thread.
            self.assertEqual(told(perfscope.regions(by_thread=True)["work"][threading.get_native_id()]), (0, 1))

    def test_a_counter_that_is_refused_reads_none_and_says_why(self):
        perfscope.configure(["page-faults", "cycles"])
        with perfscope.region("work"):
            self.pages.touch(2)
        if perfscope.regions()["work"].values["cycles"] is not None:
            self.skipTest("this machine has a hardware PMU")
        out = io.StringIO()
        perfscope.report(out)
        self.assertIn("cycles: no hardware PMU here", out.getvalue())
        self.assertTrue(out.getvalue().endswith("\nan empty pass counts 0 page-faults\n"), out.getvalue())
        self.assertRaisesRegex(perfscope.PerfEventError, "cycles.*no hardware PMU", perfscope.configure, ["cycles"], strict=True)

    def test_a_counter_that_is_refused_has_no_value_without_a_pass_either(self):
        perfscope.configure(["page-faults", "cycles"])
        perfscope.region("work").__exit__(None, None, None)
        out = io.StringIO()
        perfscope.report(out, format="json")
        told = json.loads(out.getvalue())
        if "cycles" not in told["reasons"]:
            self.skipTest("this machine has a hardware PMU")
        self.assertEqual(told["regions"]["work"]["incomplete"], 1)
        self.assertEqual(told["regions"]["work"]["values"], {"page-faults": 0, "cycles": None})
        self.assertEqual(told["overhead"], {"page-faults": 0, "cycles": None})
        # Without anything left to count it is an error.
        self.assertRaisesRegex(perfscope.PerfEventError, "cycles: no hardware PMU", perfscope.configure, "cycles")

    def test_cost_of_an_empty_pass_is_taken_off(self):
        def empty_ns(subtract):
            perfscope.configure("task-clock", subtract=subtract)
            for _ in range(400):
                with perfscope.region("work"):
                    pass
            return perfscope.regions()["work"].values["task-clock"] / 400
        # The least of some rounds: on a busy machine most cost more than what was calibrated.
        whole, rest = (min(empty_ns(subtract) for _ in range(10)) for subtract in (False, True))
        self.assertGreater(whole, 100)
        self.assertLess(rest, whole / 2)

    def test_totals_stay_whole_when_their_making_configures_anew(self):
        """Objects that regions() makes may set off a collection, and with it any code."""
        class Configurer:
            def __del__(self):
                perfscope.configure("context-switches")

        for nr in range(300):
            with perfscope.region(f"r{nr}"):
                pass
        perfscope.regions()
        threshold = gc.get_threshold()
        gc.disable()
        cycle = [Configurer()]
        cycle.append(cycle)
        del cycle
        gc.set_threshold(50)
        gc.enable()
        try:
            told = perfscope.regions()  # since 3.12 after it, not within
        finally:
            gc.set_threshold(*threshold)
        gc.collect()
        self.assertEqual(perfscope.regions(), {})
        ours = {name: totals for name, totals in told.items() if name.startswith("r")}
        self.assertEqual(len(ours), 300)
        self.assertEqual({tuple(totals.values) for totals in ours.values()}, {EVENTS})

    def test_report_is_a_table_or_json(self):
        with perfscope.region("work"):
            self.pages.touch(12)
        table, text = io.StringIO(), io.StringIO()
        perfscope.report(table)
        perfscope.report(text, format="json")
        head, row, *rest = table.getvalue().splitlines()
        self.assertEqual(head.split(), ["region", "calls", "seconds", *EVENTS])
        self.assertEqual([row.split()[i] for i in (0, 1)], ["work", "1"])
        self.assertEqual(Faults(row.split()[3]), 12)
        self.assertRegex(rest[-1], r"^an empty pass counts 0 page-faults, \d+ task-clock, 0 context-switches$")
        told = json.loads(text.getvalue())
        self.assertEqual([told["events"], Faults(told["regions"]["work"]["values"]["page-faults"])], [list(EVENTS), 12])
        self.assertRaisesRegex(ValueError, "'table' or 'json', not 'xml'", perfscope.report, table, format="xml")

    def test_counters_that_do_not_fit_together_are_told(self):
        text = io.StringIO()
        perfscope.report(text, format="json")
        told = json.loads(text.getvalue())
        self.assertEqual(told["groups"], 1)
        table = sys.modules["perfscope.region_tools"].table
        word = ("the counters do not fit on the PMU together: they are counted in 3 groups, each read at a moment of its own")
        for nr in (0, 1, 3):
            self.assertEqual(word in table({**told, "regions": {}, "groups": nr}), nr == 3)

    def test_a_name_cannot_break_the_table(self):
        with perfscope.region("two\nlines\x1b[31m"):
            pass
        table = io.StringIO()
        perfscope.report(table)
        self.assertIn("\ntwo?lines?[31m  ", table.getvalue())

    def test_a_report_has_names_that_any_terminal_takes(self):
        for name in ("caf\udce9", "a\x1b[31m\n", "\u00e4 b"):
            perfscope.region(name).__exit__(None, None, None)
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        perfscope.report(out)
        out.seek(0)
        lines = out.read().splitlines()
        self.assertEqual([line[:7].rstrip() for line in lines[1:4]], ["caf?", "a?[31m?", "\u00e4 b"])
        self.assertEqual(lines[4:7], ["caf?: 1 pass incomplete", "a?[31m?: 1 pass incomplete", "\u00e4 b: 1 pass incomplete"])

    def test_characters_may_take_two_columns_or_none(self):
        for name in ("12345678", "\u51e6\u7406", "e\u0301\U0001f600"):
            with perfscope.region(name):
                pass
        table = io.StringIO()
        perfscope.report(table)
        rows = [line.partition("  ") for line in table.getvalue().splitlines()[1:4]]
        self.assertEqual([(name, len(rest) - len(rest.lstrip())) for name, _, rest in rows],
                         [("12345678", 4), ("\u51e6\u7406", 8), ("e\u0301\U0001f600", 9)])


class TestInactive(unittest.TestCase):
    def test_a_report_says_that_nobody_counts(self):
        source = "import perfscope\nwith perfscope.region('a'): pass\nperfscope.report()"
        run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "no region is counted: call configure() first\n")

    def test_nothing_is_counted_where_nobody_looks(self):
        source = "import os, perfscope\nfiles = lambda: os.listdir('/proc/self/fd')\nbefore = files()\n" \
                 "with perfscope.region('a'): pass\nprint(perfscope.regions(), perfscope.reset(), files() == before)"
        run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        self.assertEqual([run.stdout, run.stderr], ["{} None True\n", ""])


if __name__ == "__main__":
    unittest.main()
