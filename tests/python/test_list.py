# SPDX-License-Identifier: MIT
"""`perfscope list`, over a made-up tracefs and sysfs: names, patterns, fields, exit status."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PS_TEST_BUILD", os.path.join(ROOT, "build"))
COMMAND = os.environ.get("PERFSCOPE", os.path.join(BUILD, "perfscope"))
TIMEOUT_S = 60

FORMAT = """name: {name}
ID: {id}
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:u32 pair[2];\toffset:24;\tsize:8;\tsigned:0;

print fmt: "comm=%s", REC->comm
"""

FIELDS = """  zoo:lion_roars
      common_type              unsigned short                   int
      common_flags             unsigned char                    int
      common_preempt_count     unsigned char                    int
      common_pid               int                              int
      comm                     char[16]                         str
      pair                     u32[2]                           tuple[int, ...]
""".splitlines()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class TestList(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        tracing, pmus = (os.path.join(cls.folder.name, name) for name in ("tracing", "pmus"))
        # Ids that no kernel has: none can be opened.
        for number, event in enumerate(("zoo/lion_roars", "zoo/lion_sleeps", "ftrace/print"), 60000):
            write(f"{tracing}/events/{event}/id", f"{number}\n")
            write(f"{tracing}/events/{event}/format", FORMAT.format(name=os.path.basename(event), id=number))
        write(f"{pmus}/den/type", "4000000\n")
        write(f"{pmus}/den/events/naps", "config=1\n")
        cls.environment = {**os.environ, "PERFSCOPE_TRACEFS": tracing, "PERFSCOPE_PMUS": pmus}

    def list(self, *arguments, status=0, errors=(), **options):
        """The lines of stdout of a run that ends with @status and the lines @errors on stderr."""
        options.setdefault("stdout", subprocess.PIPE)
        run = subprocess.run([COMMAND, "list", *arguments], env=self.environment, stderr=subprocess.PIPE, text=True,
                             check=False, timeout=TIMEOUT_S, **options)
        self.assertEqual((run.returncode, run.stderr.splitlines()), (status, [f"perfscope: {e}" for e in errors]))
        return (run.stdout or "").splitlines()

    def test_sections_stand_in_the_order_of_their_kinds(self):
        titles = [line.split(" (")[0] for line in self.list() if line and line[0] != " "]
        self.assertEqual(titles, ["hardware counters", "cache counters", "software counters", "events of PMUs",
                                  "events of your own, by what stands in capitals", "tracepoints"])

    def test_a_counter_stands_with_its_alias(self):
        names = [line.split("  ")[1] for line in self.list("software") if line.startswith("  ")]
        self.assertEqual(names, ["alignment-faults", "bpf-output", "cgroup-switches", "context-switches or cs",
                                 "cpu-clock", "cpu-migrations or migrations", "dummy", "emulation-faults",
                                 "major-faults", "minor-faults", "page-faults or faults", "task-clock"])

    def test_a_counter_that_cannot_be_opened_is_marked_and_the_title_says_why(self):
        lines = self.list("den/*")
        self.assertEqual(lines[0].split(" (")[0], "events of PMUs")
        self.assertNotEqual(lines[0], "events of PMUs")
        self.assertEqual(lines[1:], ["  den/naps/".ljust(50) + "not here"])

    def test_forms_without_names_are_marked_too(self):
        self.assertEqual(self.list("custom", "den/*")[3:],
                         ["events of your own, by what stands in capitals", "  profile",
                          *(line for line in self.list("rHEX")[1:]), *(line for line in self.list("mem:*")[1:])] + [
                              f"  {name:<48}not here: this kernel has none (CONFIG_{option}_EVENTS is off)"
                              for name, option in (("uprobe:FUNC[+OFFSET]@FILE", "UPROBE"), ("uretprobe:FUNC@FILE", "UPROBE"),
                                                   ("usdt:PROVIDER:NAME@FILE", "UPROBE"), ("kprobe:FUNC[+OFFSET]", "KPROBE"),
                                                   ("kretprobe:FUNC", "KPROBE"))])
        write(f"{self.environment['PERFSCOPE_PMUS']}/kprobe/type", "8\n")
        self.addCleanup(shutil.rmtree, f"{self.environment['PERFSCOPE_PMUS']}/kprobe")
        self.assertIn("  kprobe:FUNC[+OFFSET]", self.list("custom"))

    def test_raw_events_need_a_pmu_and_breakpoints_none(self):
        name = "mem:ADDRESS[/LENGTH][:rwx]"
        self.assertEqual(self.list(name.split("[", maxsplit=1)[0])[1:], [f"  {name}"])
        has_pmu = any(name.startswith(("cpu", "armv8")) for name in os.listdir("/sys/bus/event_source/devices"))
        if not has_pmu:
            self.assertEqual(self.list("rhex")[1:], ["  rHEX".ljust(50) + "not here: no hardware PMU here"])

    def test_an_alias_is_found_too(self):
        lines = [line.split("  ")[1] for line in self.list("faults", "migrations") if line.startswith("  ")]
        self.assertEqual(lines, ["alignment-faults", "cpu-migrations or migrations", "emulation-faults",
                                 "major-faults", "minor-faults", "page-faults or faults"])

    def test_a_part_of_a_name_and_a_glob_are_patterns(self):
        self.assertEqual(self.list("LION_s")[1:], ["  zoo:lion_sleeps"])
        self.assertEqual(self.list("zoo:*")[1:], ["  zoo:lion_roars", "  zoo:lion_sleeps"])
        self.assertEqual(self.list("?oo:*roar?")[1:], ["  zoo:lion_roars"])

    def test_verbose_shows_the_fields_of_a_tracepoint(self):
        self.assertEqual(self.list("-v", "roars")[1:], FIELDS)

    def test_records_of_ftrace_are_no_events(self):
        self.list("ftrace:*", status=1, errors=["ftrace:*: no event matches"])

    def test_a_pattern_without_match_gets_the_nearest_names(self):
        self.list("lion_raors", status=1, errors=["lion_raors: no event matches; did you mean lion_roars?"])
        lines = self.list("lion_sl", "tsk-clock", status=1,
                          errors=["tsk-clock: no event matches; did you mean task-clock or cpu-clock?"])
        self.assertEqual(lines[1:], ["  zoo:lion_sleeps"])

    def test_an_unknown_option_is_wrong_usage(self):
        self.list("-x", status=2, errors=["list: unknown option -x; perfscope list --help lists them"])

    def test_help_is_on_stdout(self):
        self.assertEqual(self.list("--help")[0], "Usage: perfscope list [-v] [PATTERN...]")

    def test_a_reader_who_leaves_is_no_failure(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as stdout:
            self.list(stdout=stdout)

    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as stdout:
            self.list(status=1, errors=["the list cannot be written: No space left on device"], stdout=stdout)

    def test_without_tracefs_the_counters_are_listed(self):
        environment = {**self.environment, "PERFSCOPE_TRACEFS": "/nonexistent"}
        run = subprocess.run([COMMAND, "list", "task-clock"], env=environment, capture_output=True, text=True,
                             check=False, timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertTrue(run.stderr.startswith("perfscope: tracepoints: /nonexistent"), run.stderr)


if __name__ == "__main__":
    unittest.main()
