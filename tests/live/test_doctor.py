# SPDX-License-Identifier: MIT
"""perfscope doctor: each ability is tried for the user that runs it, and each no comes with its knob."""

import os
import re
import resource
import subprocess
import tempfile
import unittest

from livetest import (COMMAND, TRACEFS, has_hardware_pmu, read_paranoid_level, skip_if_hardware_pmu, skip_unless_root,
                      skip_unless_tracepoints)

NAMES = ["tracefs", "tracepoint sampling", "system-wide", "own counters", "hardware PMU", "precise samples",
         "branch stacks", "memory samples", "breakpoints", "kprobes", "uprobes", "time stamp counter", "locked memory", "descriptors", "kernel symbols", "Python"]

# A root without a capability: files are its own still, so that tracefs is open, and the kernel treats it as any user.
WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
RING_KIB = 4096


def parse(text):
    """{name: (yes or no, detail)} in the order of the lines."""
    lines = [re.fullmatch(r"(.{19})  (yes|no )  (\S.*)", line) for line in text.splitlines()]
    return {line[1].rstrip(): (line[2].rstrip(), line[3]) for line in lines}


def read_probes(name):
    path = os.path.join(TRACEFS, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                          **options)


class DoctorTestCase(unittest.TestCase):
    def examine(self, *prefix, **options):
        """Run the doctor behind the command @prefix: its status and its parsed lines."""
        result = run(*prefix, COMMAND, "doctor", **options)
        self.assertEqual(result.stderr, "")
        return result.returncode, parse(result.stdout)


class TestDoctor(DoctorTestCase):
    def test_each_ability_has_its_aligned_line(self):
        _, found = self.examine()
        self.assertEqual(list(found), NAMES)

    def test_the_status_tells_whether_tracepoints_can_be_sampled(self):
        status, found = self.examine()
        self.assertEqual(status, 0 if found["tracepoint sampling"][0] == "yes" else 1)

    def test_each_no_has_one_knob(self):
        _, found = self.examine()
        for name, (answer, detail) in found.items():
            if name != "tracefs":  # its message has the knob in parentheses
                self.assertEqual(detail.count("knob: "), 1 if answer == "no" else 0, name)

    def test_the_pmu_is_the_one_of_sysfs(self):
        _, found = self.examine()
        self.assertEqual(found["hardware PMU"][0], "yes" if has_hardware_pmu() else "no")

    @skip_if_hardware_pmu
    def test_what_needs_a_pmu_points_to_its_line(self):
        _, found = self.examine()
        for name in "precise samples", "branch stacks", "memory samples":
            self.assertEqual(found[name], ("no", "needs a hardware PMU; knob: see there"))

    def test_breakpoints_are_tried(self):
        _, found = self.examine()
        self.assertEqual(found["breakpoints"], ("yes", "mem:ADDRESS"))

    def test_the_line_of_the_tsc_is_what_the_option_meets(self):
        _, found = self.examine()
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write("def __exit__(): print('ran')\n")
            script.flush()
            result = run(COMMAND, "python", "-e", "page-faults", "--tsc", script.name, "--run", "true")
        if found["time stamp counter"][0] == "yes":
            self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))
        else:
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))
            self.assertIn("--tsc: the kernel does not say here how its clock relates to the time stamp counter; use --clock",
                          result.stderr)

    def test_no_probe_stays_behind(self):
        before = read_probes("kprobe_events"), read_probes("uprobe_events")
        self.examine()
        self.assertEqual((read_probes("kprobe_events"), read_probes("uprobe_events")), before)

    def test_too_few_descriptors_are_told_with_the_number_to_set(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

        cpus = os.sysconf("SC_NPROCESSORS_ONLN")
        _, found = self.examine(preexec_fn=lower)
        self.assertEqual(found["descriptors"],
                         ("no", f"20 at most, and an event takes one for each of {cpus} CPUs; "
                                f"knob: ulimit -n {16 * cpus + 64}, as root"))

    def test_without_tracefs_the_line_of_tracepoints_points_to_it(self):
        status, found = self.examine(env={**os.environ, "PERFSCOPE_TRACEFS": "/no/such"})
        self.assertEqual(status, 1)
        self.assertEqual(found["tracefs"][0], "no")
        self.assertIn("/no/such", found["tracefs"][1])
        self.assertEqual(found["tracepoint sampling"], ("no", "needs tracefs; knob: see there"))

    def test_help_is_on_stdout(self):
        result = run(COMMAND, "doctor", "--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines()[0], "Usage: perfscope doctor")

    def test_an_argument_is_wrong_usage(self):
        result = run(COMMAND, "doctor", "now")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr,
                         'perfscope: doctor takes no arguments, but got "now"; see: perfscope doctor --help\n')


@skip_unless_tracepoints
class TestDoctorWithPrivilege(DoctorTestCase):
    def test_the_main_job_can_run(self):
        status, found = self.examine()
        self.assertEqual(status, 0)
        self.assertEqual(found["tracefs"], ("yes", TRACEFS))
        self.assertEqual(found["tracepoint sampling"], ("yes", "sched:sched_switch"))
        self.assertEqual(found["system-wide"], ("yes", f"{os.sysconf('SC_NPROCESSORS_ONLN')} CPUs"))
        self.assertEqual(found["own counters"], ("yes", "in user space and in the kernel"))


@skip_unless_root
@skip_unless_tracepoints
class TestDoctorWithoutCapabilities(DoctorTestCase):
    def setUp(self):
        super().setUp()
        self.level = read_paranoid_level()
        if self.level <= 1:
            self.skipTest(f"perf_event_paranoid is {self.level}: nothing is closed")

    def test_each_level_that_is_too_high_is_told_with_the_one_to_set(self):
        status, found = self.examine(*WITHOUT_CAPABILITIES)
        self.assertEqual(status, 1)
        self.assertEqual(found["tracefs"], ("yes", TRACEFS))
        self.assertEqual(found["tracepoint sampling"],
                         ("no", f"perf_event_paranoid is {self.level}; knob: sysctl kernel.perf_event_paranoid=-1"))
        self.assertEqual(found["system-wide"],
                         ("no", f"perf_event_paranoid is {self.level}; knob: sysctl kernel.perf_event_paranoid=0"))
        self.assertEqual(found["own counters"],
                         ("yes", "in user space only; the kernel's share: sysctl kernel.perf_event_paranoid=1"))

    def test_locked_memory_that_is_too_small_is_told_with_the_size_to_set(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

        cpus, needed = os.sysconf("SC_NPROCESSORS_ONLN"), RING_KIB + resource.getpagesize() // 1024
        with open("/proc/sys/kernel/perf_event_mlock_kb", encoding="ascii") as file:
            if int(file.read()) * cpus >= needed:
                self.skipTest("a ring fits into perf_event_mlock_kb")
        _, found = self.examine(*WITHOUT_CAPABILITIES, preexec_fn=lower)
        self.assertEqual(found["locked memory"],
                         ("no", f"ring 1 of {cpus}, {RING_KIB} KiB each, is refused; "
                                f"knob: sysctl kernel.perf_event_mlock_kb={needed}"))

    def test_a_container_that_refuses_is_not_blamed_on_the_level(self):
        if run("unshare", "--user", "--map-root-user", "true").returncode:
            self.skipTest("no user namespace can be made here, as in a chroot")
        _, found = self.examine("unshare", "--user", "--map-root-user")
        self.assertEqual(found["system-wide"], ("no", "refused in spite of CAP_PERFMON, as containers do; "
                                                      "knob: run the container with --privileged"))


if __name__ == "__main__":
    unittest.main()
