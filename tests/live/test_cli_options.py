# SPDX-License-Identifier: MIT
"""The command line of `perfscope python`: what is refused, what is printed, and the exit status."""

import os
import subprocess
import unittest

from livetest import COMMAND, LOAD, LiveTestCase, skip_unless_root, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
COUNT = """
n = 0
def __sample__(event):
    global n
    n += 1
def __exit__():
    print('{"n": %d}' % n)
"""
ARGUMENTS = "import sys, json\nprint(json.dumps(sys.argv[1:]))\ndef __sample__(event): pass\n"


def shell(text):
    return subprocess.run(text, shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
                          timeout=30)


class TestUsage(LiveTestCase):
    def assert_refused(self, run, status, *messages):
        self.assertEqual([run.status, run.stdout, run.errors], [status, "", [f"perfscope: {m}" for m in messages]])

    def test_no_argument_at_all_shows_the_commands(self):
        run = self.run_command()
        self.assertEqual([run.status, run.stdout, run.errors[0]], [2, "", "Usage: perfscope COMMAND [ARG...]"])

    def test_unknown_command_names_the_nearest(self):
        self.assert_refused(self.run_command("pyton"), 2, "pyton: no such command; did you mean python?")

    def test_version_is_on_stdout(self):
        run = self.run_command("--version")
        self.assertEqual([run.status, run.stdout, run.stderr], [0, "perfscope 0.1.0\n", ""])

    def test_help_without_events_is_that_of_the_command(self):
        run = self.run_command("python", "--help")
        self.assertEqual([run.status, run.stderr, run.lines[0]],
                         [0, "", "Usage: perfscope python [OPTION...] -e EVENT[,EVENT...] [--] SCRIPT [ARG...]"])

    def test_missing_script_is_named_before_anything_is_opened(self):
        self.assert_refused(self.run_command("python", "-e", "no:such_event", "/nowhere/x.py"), 1,
                            "script /nowhere/x.py: no such file")

    def test_script_without_events_says_how_to_give_them(self):
        run = self.run_command("python", self.write("x.py", ARGUMENTS))
        self.assert_refused(run, 2, "no event: give -e EVENT, or __options__ in the script (perfscope list shows events)")

    def test_fault_in_the_options_of_the_script_names_it(self):
        script = self.write("x.py", "__options__ = '--evnt a'\n" + ARGUMENTS)
        self.assert_refused(self.run_command("python", script), 2,
                            f"__options__ of {script}: --evnt: no such option; did you mean --event?")

    def test_unknown_user_is_wrong_usage(self):
        run = self.run_command("python", "-e", "page-faults", "--user", "nobody-knows-me", self.write("x.py", COUNT))
        self.assert_refused(run, 2, "--user nobody-knows-me: there is no such user")

    def test_broken_pipe_of_the_help_is_a_clean_end(self):
        result = shell(f"{COMMAND} python -h | head -c 1; echo ${{PIPESTATUS[0]}}")
        self.assertEqual([result.stdout, result.stderr], ["U0\n", ""])

    def test_full_disk_is_told(self):
        result = shell(f"{COMMAND} python -h >/dev/full")
        self.assertEqual([result.returncode, result.stderr], [1, "perfscope: stdout: No space left on device\n"])


@skip_unless_tracepoints
class TestOptions(LiveTestCase):
    def test_template_runs_unchanged(self):
        run = self.run_command("python", "-e", "sched:sched_process_exit", "--help")
        self.assertEqual([run.status, run.stderr], [0, ""])
        script = self.write("template.py", run.stdout)
        again = self.run_command("python", "-e", "sched:sched_process_exit", script, "--run", "/bin/true")
        self.assertEqual([again.status, again.stderr], [0, ""])
        self.assertEqual(again.stdout.count("sched:sched_process_exit: comm=true"), 1)

    def test_template_of_stacks_has_the_options_and_shows_them(self):
        run = self.run_command("python", "-e", "page-faults,dummy", "-g", "-c", 1, "--max-stack", 9, "--no-kernel-callchain", "--help")
        self.assertEqual(run.lines[0], "# perfscope python -e page-faults,dummy -g --no-kernel-callchain --max-stack 9 -c 1 this_file.py")
        self.assertIn("    _callchain  list[dict]       the call stack with names, innermost first", run.lines)
        script = self.write("template.py", run.stdout)
        run = self.run_command(*run.lines[0].split()[2:-1], script, "-N", 3, "--run", "true")
        self.assertEqual([run.status, run.errors], [0, []])
        self.assertIn("execve+0x", run.stdout)

    def test_help_in_the_place_of_the_script_is_the_template_too(self):
        first = self.run_command("python", "-e", "sched:sched_switch", "--help")
        second = self.run_command("python", "-e", "sched:sched_switch", "help")
        self.assertEqual(first.stdout, second.stdout)

    def test_exit_n_is_exact(self):
        run = self.run_script(COUNT, GETPPID, "-N", "7", load=["getppid", "100"])
        self.assertEqual([run.status, run.json], [0, [{"n": 7}]])

    def test_options_of_the_script_are_defaults(self):
        script = self.write("x.py", f"__options__ = '-e {GETPPID} -N 3'\n" + COUNT)
        run = self.run_command("python", script, "--run", LOAD, "getppid", "10")
        self.assertEqual([run.status, run.json], [0, [{"n": 3}]])
        run = self.run_command("python", "-N", "2", script, "--run", LOAD, "getppid", "10")
        self.assertEqual([run.status, run.json], [0, [{"n": 2}]])

    def test_arguments_reach_the_script_without_our_options(self):
        run = self.run_script(ARGUMENTS, GETPPID, args=["--color", "a", "-q", "b", "--run", "/bin/true"])
        self.assertEqual([run.status, run.json], [0, [["--color", "a", "b"]]])

    def test_two_dashes_give_all_to_the_script(self):
        script = self.write("x.py", ARGUMENTS + "sys.exit(4)\n")
        run = self.run_command("python", "-e", GETPPID, "--", script, "-q", "--run", "x", "-h")
        self.assertEqual([run.status, run.json], [4, [["-q", "--run", "x", "-h"]]])

    def test_status_is_that_of_the_program(self):
        run = self.run_script(COUNT, GETPPID, args=["--run", "/bin/sh", "-c", "exit 7"])
        self.assertEqual(run.status, 7)

    def test_status_of_a_killed_program_is_that_of_a_shell(self):
        run = self.run_script(COUNT, GETPPID, args=["--run", "/bin/sh", "-c", "kill -KILL $$"])
        self.assertEqual(run.status, 137)

    def test_program_that_we_end_is_no_failure(self):
        run = self.run_script(COUNT, GETPPID, "--duration", "0.2", args=["--run", "/bin/sleep", "20"], timeout_s=5)
        self.assertEqual([run.status, run.json, run.stderr], [0, [{"n": 0}], ""])

    def test_program_that_does_not_exist_is_named(self):
        run = self.run_script(COUNT, GETPPID, args=["--run", "/nowhere/prog"])
        self.assertEqual([run.status, len(run.errors)], [1, 1])
        self.assertIn("/nowhere/prog", run.errors[0])

    def test_raised_handler_is_status_1_and_system_exit_is_kept(self):
        run = self.run_script("def __sample__(event): raise ValueError('x')\n", GETPPID, load=["getppid", "1"])
        self.assertEqual(run.status, 1)
        run = self.run_script("import sys\ndef __sample__(event): sys.exit(3)\n", GETPPID, load=["getppid", "1"])
        self.assertEqual(run.status, 3)

    def test_system_exit_while_loading_keeps_its_status(self):
        run = self.run_script("import sys\nsys.exit(5)\n", GETPPID)
        self.assertEqual([run.status, run.stderr], [5, ""])

    def test_output_takes_what_the_script_prints(self):
        path = self.write("out", "what was there before\n")
        run = self.run_script(COUNT, GETPPID, "-N", "5", "-o", path, load=["getppid", "5"])
        self.assertEqual([run.status, run.lines[1:]], [0, []])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), '{"n": 5}\n')

    def test_output_can_be_a_pipe_that_has_no_path(self):
        run = self.run_script(COUNT, GETPPID, "-N", "5", "-o", "/dev/stdout", load=["getppid", "5"])
        self.assertEqual([run.status, '{"n": 5}' in run.lines, run.errors], [0, True, []])

    def test_output_that_cannot_be_opened_says_why(self):
        run = self.run_script(COUNT, GETPPID, "-o", "/nowhere/out")
        self.assertEqual([run.status, run.errors], [1, ["perfscope: -o /nowhere/out: No such file or directory"]])

    def test_rounded_ring_is_told_with_v(self):
        run = self.run_script(COUNT, GETPPID, "-m", "3", "-v", load=["getppid", "1"])
        self.assertIn("perfscope: -m: rounded up to 4 pages, a power of two", run.errors)

    def test_verbose_tells_what_is_opened_and_twice_each_record(self):
        for option, nr_records in ("-v", 0), ("-vv", 3):
            run = self.run_script(COUNT, GETPPID, option, "-N", "3", load=["getppid", "3"])
            self.assertEqual([run.status, run.json[-1]], [0, {"n": 3}])
            records = [line for line in run.errors if line.startswith("perfscope: record type=9 ")]
            self.assertEqual(len(records), nr_records)
            for line in records:
                self.assertRegex(line, rf"^perfscope: record type=9 misc=0x\w+ size=\d+ time=\d+ ring=\d+ {GETPPID}$")
            self.assertRegex(run.errors[0], r"^perfscope: opened: events 1, descriptors \d+, rings \d+$")
            self.assertEqual(run.errors[-1], "perfscope: events taken: 3")

    def test_quiet_says_errors_only(self):
        source = COUNT + "def __lost__(start, end): pass\nimport time\ntime.sleep(0.01)\n"
        slow = source.replace("    n += 1\n", "    n += 1\n    if n == 1: time.sleep(0.1)\n")
        for options, nr in ([], 1), (["-q"], 0):
            run = self.run_script(slow, GETPPID, "-m", "1", *options, load=["getppid", "1000"])
            self.assertEqual([run.status, len(run.errors)], [0, nr])

    def test_time_stamp_counter_is_refused_where_the_kernel_does_not_tell_it(self):
        run = self.run_script(COUNT, GETPPID, "--tsc", load=["getppid", "3"])
        if run.status == 0:
            self.skipTest("the kernel tells here how its clock relates to the time stamp counter")
        self.assertEqual([run.status, run.stdout, run.errors], [1, "", [
            "perfscope: --tsc: the kernel does not say here how its clock relates to the time stamp counter; use --clock"]])

    def test_output_takes_the_summary_too(self):
        path = os.path.join(self.folder, "out")
        run = self.run_script("def __sample__(event): pass\n", GETPPID, "-i", "1000", "-o", path, load=["getppid", "5"])
        self.assertEqual([run.status, len(run.lines), run.stderr], [0, 1, ""])
        with open(path, encoding="utf-8") as file:
            title, row = (line.split() for line in file)
        self.assertEqual([title, row[1:3], row[4:]],
                         [["TIME", "EVENT", "COUNT", "RATE/s", "LOST", "COVERAGE"], [GETPPID, "5"], ["0", "-"]])

    def test_time_is_that_of_each_clock(self):
        source = '''
import json, time
def __sample__(event):
    clocks = {name: getattr(time, "CLOCK_" + name.upper()) for name in NAMES}
    print(json.dumps({name: time.clock_gettime_ns(id) - event._time for name, id in clocks.items()}))
'''
        names = ["monotonic", "monotonic_raw", "boottime", "realtime", "tai"]
        source = source.replace("NAMES", repr(names))
        # Some of these clocks show the same time here; each is within ten seconds of its own.
        for name in names:
            with self.subTest(clock=name):
                run = self.run_script(source, GETPPID, f"--clock={name}", "-N", "1", load=["getppid", "1"])
                self.assertEqual([run.status, run.stderr], [0, ""])
                self.assertTrue(0 <= run.json[0][name] < 10**10, run.json)

    def test_what_is_excluded_is_not_counted_and_tracepoints_come_all_the_same(self):
        source = "import json\nn = 0\ndef __sample__(event):\n    global n\n    n += 1\n" \
                 "def __exit__(totals): print(json.dumps([n, totals['run'].values]))\n"
        leave, enter = "sched:sched_process_exit", "raw_syscalls:sys_enter"
        events = ["page-faults", leave, f"{enter}/id==110/", GETPPID]
        # Nearly all faults are in user space; software events know neither hosts nor guests.
        touched, others = range(300, 500), range(0, 100)
        for option, faults in {"": touched, "--exclude-user": others, "--exclude-kernel": touched, "--exclude-host": touched,
                               "--exclude-guest": touched}.items():
            with self.subTest(option=option):
                run = self.run_script(source, events, *filter(None, [option]), load=["touch", "300", "+", "getppid", "10"])
                [[n, values]] = run.json[-1:]
                self.assertEqual([run.status, run.stderr, n], [0, "", 21])
                self.assertIn(values.pop("page-faults"), faults)
                self.assertEqual(values, {leave: 1, enter: 10, GETPPID: 10})
        run = self.run_script(source, [leave + ":u", GETPPID + ":u"], load=["getppid", "10"])
        self.assertEqual(run.json[-1], [11, {leave + ":u": 1, GETPPID + ":u": 10}])

    def test_clock_offset_is_added_to_the_time(self):
        source = "import time\ndef __sample__(event):\n    print('{\"d\": %d}' % (time.monotonic_ns() - event._time))\n"
        run = self.run_script(source, GETPPID, "--clock-offset", "-1000000000000", "-N", "1", load=["getppid", "1"])
        self.assertEqual([value["d"] // 10**12 for value in run.json], [1])

    def test_broken_pipe_is_a_clean_stop(self):
        script = self.write("x.py", "def __sample__(event): print(event)\n")
        result = shell(f"{COMMAND} python -e raw_syscalls:sys_enter {script} | head -c 1; echo; echo ${{PIPESTATUS[0]}}")
        self.assertEqual([result.stdout.splitlines()[-1], result.stderr], ["0", ""])


@skip_unless_tracepoints
@skip_unless_root
class TestUser(LiveTestCase):
    def test_script_runs_as_the_user_for_good(self):
        os.chmod(self.folder, 0o755)
        source = """
import os, json
try:
    os.setuid(0)
    back = True
except PermissionError:
    back = False
print(json.dumps({"ids": list(os.getresuid()), "groups": os.getgroups(), "back": back}))
""" + COUNT
        run = self.run_script(source, GETPPID, "--user", "nobody", load=["getppid", "9"])
        self.assertEqual([run.json[0], run.status],
                         [{"ids": [65534] * 3, "groups": [65534], "back": False}, 0])


if __name__ == "__main__":
    unittest.main()
