# SPDX-License-Identifier: MIT
"""Regions under the command: those of the program of --run and of its children arrive in the script's totals."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from livetest import BUILD, COMMAND, LiveTestCase, read_paranoid_level, skip_if_hardware_pmu, skip_unless_root, skip_unless_tracepoints

C_PROGRAM = os.path.join(BUILD, "tests", "region_c")
CPP_PROGRAM = os.path.join(BUILD, "tests", "region_cpp")

SCRIPT = """
import json

def tell(kind, totals):
    print(json.dumps({"kind": kind, "totals": {
        name: {"calls": t.calls, "incomplete": t.incomplete, "seconds": t.seconds, **t.values}
        for name, t in totals.items()}}), flush=True)

def __interval__(totals):
    tell("interval", totals)

def __exit__(totals):
    tell("exit", totals)
"""


def tables(pid=None):
    """What is there of shared memory, of the process pid alone or of all: (number, mode, uid)."""
    with open("/proc/sysvipc/shm", encoding="ascii") as file:
        [head, *rows] = [line.split() for line in file]
    segments = [dict(zip(head, row)) for row in rows]
    return {(int(segment["shmid"]), segment["perms"][-3:], int(segment["uid"])) for segment in segments
            if pid is None or int(segment["cpid"]) == pid}


class RegionTestCase(LiveTestCase):
    def observe(self, *command, events="page-faults", options=(), status=0, **process):
        """Run @command under the script; the totals of its __exit__."""
        self.ended = self.run_script(SCRIPT, events, *options, args=("--run", *map(str, command)), **process)
        self.assertEqual(self.ended.status, status, self.ended.stderr)
        self.told = [value for value in self.ended.json if "kind" in value]
        return next(told["totals"] for told in self.told if told["kind"] == "exit")

    def faults(self, totals, name="work"):
        return [totals[name]["calls"], totals[name]["incomplete"], totals[name]["page-faults"]]


class TestPrograms(RegionTestCase):
    def test_fresh_pages_are_counted_exactly(self):
        for nr in (1, 100, 5000):
            self.assertEqual(self.faults(self.observe(C_PROGRAM, "pass", nr)), [1, 0, nr])

    def test_nested_and_recursive_regions_count_each_page_once(self):
        totals = self.observe(C_PROGRAM, "nested", 100)
        self.assertEqual([totals["inner"]["page-faults"], totals["work"]["page-faults"] - 200 in (0, 1)], [100, True])
        totals = self.observe(C_PROGRAM, "recursive", 50)
        self.assertEqual([totals["work"]["calls"], totals["work"]["page-faults"] - 50 in (0, 1, 2)], [50, True])

    def test_threads_are_added_up(self):
        self.assertEqual(self.faults(self.observe(C_PROGRAM, "threads", 300)), [8, 0, 8 * 300])

    def test_cpp_scopes_that_exceptions_leave(self):
        totals = self.observe(CPP_PROGRAM)
        self.assertEqual([totals["throws"]["calls"], totals["throws"]["incomplete"]], [6, 0])
        self.assertGreaterEqual(totals["throws"]["page-faults"], 12)  # the first one pages in the code that unwinds
        calls, incomplete, faults = self.faults(totals, "scope")
        self.assertEqual([calls, incomplete, faults - 40 in range(5)], [4, 0, True])

    def test_the_names_run_first_and_programs_in_their_order(self):
        self.assertEqual(list(self.observe(C_PROGRAM, "nested", 3)), ["run", "warm", "work", "inner"])

    def test_what_the_program_writes_is_its_own(self):
        alone = subprocess.run([C_PROGRAM, "pass", "3"], capture_output=True, text=True, timeout=60, check=True)
        self.observe(C_PROGRAM, "pass", 3)
        rest = [line for line in self.ended.lines if not line.startswith('{"kind": ')]
        self.assertEqual(list(json.loads(rest[0]))[:4], ["calls", "incomplete", "seconds", "before_main"])
        self.assertEqual([len(rest), alone.stderr, self.ended.stderr], [1, "", ""])

    def test_a_program_without_regions_adds_none(self):
        self.assertEqual(list(self.observe("true")), ["run"])

    def test_the_status_is_the_programs(self):
        self.observe("sh", "-c", f"{C_PROGRAM} pass 2; exit 42", status=42)


class TestChildren(RegionTestCase):
    def test_children_by_fork_and_exec_are_added_up(self):
        totals = self.observe("sh", "-c", f"{C_PROGRAM} pass 10 & {C_PROGRAM} pass 20 & wait; {C_PROGRAM} pass 30")
        self.assertEqual(self.faults(totals), [3, 0, 60])

    def test_a_child_of_fork_counts_for_itself(self):
        calls, incomplete, faults = self.faults(self.observe(C_PROGRAM, "forks", 2000))
        self.assertEqual([calls, incomplete], [2, 0])
        self.assertGreaterEqual(faults, 2000)
        self.assertLess(faults, 2100)

    def test_children_that_get_no_descriptors(self):
        program = f"import subprocess; subprocess.run(['{C_PROGRAM}', 'pass', '7'], close_fds=True, check=True)"
        self.assertEqual(self.faults(self.observe("/usr/bin/python3", "-c", program)), [1, 0, 7])

    def test_a_killed_program_keeps_what_it_finished(self):
        self.assertEqual(self.faults(self.observe(C_PROGRAM, "killed", 25, status=137)), [25, 0, 25])

    def test_a_pass_that_a_kill_cuts_is_incomplete(self):
        self.assertEqual(self.faults(self.observe(C_PROGRAM, "killed_inside", 25, status=137)), [25, 1, 25])

    def test_so_does_a_killed_child(self):
        totals = self.observe("sh", "-c", f"{C_PROGRAM} killed_inside 5 2>/dev/null; {C_PROGRAM} pass 3; true")
        self.assertEqual(self.faults(totals), [6, 1, 8])

    def test_an_empty_environment_counts_nothing(self):
        self.assertEqual(list(self.observe("env", "-i", C_PROGRAM, "pass", 3)), ["run"])
        self.assertEqual(self.ended.stderr, "")

    def test_hundreds_of_short_children_fit(self):
        totals = self.observe("sh", "-c", f"i=0; while [ $i -lt 300 ]; do {C_PROGRAM} pass 2 >/dev/null; i=$((i+1)); done")
        self.assertEqual(self.faults(totals), [300, 0, 600])

    def test_the_room_of_children_that_ended_is_used_again(self):
        totals = self.observe("sh", "-c", f"for i in 1 2 3 4 5 6; do {C_PROGRAM} names 2000 >/dev/null; sleep 0.25; done")
        self.assertEqual([len(totals), totals["n0"]["calls"], totals["n1999"]["calls"]], [2002, 6, 6])
        self.assertEqual(self.ended.stderr, "")


class TestTable(RegionTestCase):
    def test_intervals_add_up_to_the_whole(self):
        whole = self.observe(C_PROGRAM, "paced", 40, options=("-i", 50))
        parts = [told["totals"]["work"] for told in self.told if told["kind"] == "interval" and "work" in told["totals"]]
        self.assertEqual(self.faults(whole), [40, 0, 40])
        self.assertGreaterEqual(len(parts), 4)
        self.assertTrue(all(part["calls"] < 40 for part in parts))
        rest = 40 - sum(part["calls"] for part in parts)  # since the last interval
        self.assertEqual(40 - sum(part["page-faults"] for part in parts), rest)
        self.assertIn(rest, range(12))

    def test_another_user_reads_the_programs_table(self):
        os.chmod(self.folder, 0o755)
        totals = self.observe(C_PROGRAM, "threads", 30, options=("--user", "nobody"))
        self.assertEqual(self.faults(totals), [8, 0, 240])

    def test_calls_are_counted_without_counters(self):
        totals = self.observe(C_PROGRAM, "pass", 3, events="sched:sched_process_exit")
        self.assertEqual([totals["work"]["calls"], totals["work"]["seconds"] > 0], [1, True])
        self.assertNotIn("sched:sched_process_exit", totals["work"])

    @skip_if_hardware_pmu
    def test_a_missing_counter_is_none_and_told_once(self):
        totals = self.observe(C_PROGRAM, "pass", 3, events="cycles,page-faults")
        self.assertEqual([totals["work"]["cycles"], totals["work"]["page-faults"]], [None, 3])
        self.assertEqual(len(self.ended.errors), 1)

    def test_a_counter_that_a_program_is_refused_is_none_and_told(self):
        totals = self.observe("sh", "-c", f"{C_PROGRAM} pass 3; ulimit -n 4; {C_PROGRAM} pass 5",
                              events="page-faults,task-clock")
        self.assertEqual([totals["work"]["calls"], totals["work"]["task-clock"], totals["work"]["page-faults"] in (8, None)],
                         [2, None, True])
        self.assertEqual(self.ended.errors[-1], "perfscope: task-clock was not counted in all regions: the kernel refuses it: "
                                                "Too many open files (the limit is 4: raise it, ulimit -n)")

    @skip_unless_root
    @unittest.skipUnless(read_paranoid_level() == 2, "perf_event_paranoid is not 2")
    def test_a_program_without_capabilities_is_refused_in_words(self):
        totals = self.observe("setpriv", "--bounding-set=-perfmon,-sys_admin", C_PROGRAM, "pass", 3)
        self.assertEqual(self.faults(totals), [1, 0, None])
        self.assertEqual(self.ended.errors, [
            "perfscope: page-faults was not counted in all regions: permission denied (perf_event_paranoid is 2; needs "
            "CAP_PERFMON or root, or sysctl kernel.perf_event_paranoid=1, or to count without the kernel)"])

    @skip_unless_root
    def test_a_program_that_runs_as_another_user_finds_no_table(self):
        os.chmod(self.folder, 0o755)  # the build may lie where only root comes
        path = shutil.copy(C_PROGRAM, self.folder)
        program = f"import os; os.setgid(65534); os.setuid(65534); os.execv('{path}', ['region_c', 'pass', '3'])"
        self.assertEqual(list(self.observe("/usr/bin/python3", "-c", program)), ["run"])

    def test_a_full_table_is_told(self):
        totals = self.observe(C_PROGRAM, "names", 9000)
        self.assertEqual(len(totals), 1 + 8192)
        self.assertEqual(self.ended.errors, [
            "perfscope: 809 times a thread's region found the table of 8192 full, and its passes are not counted: fewer names "
            "or threads at a time help"])

    def test_the_summary_ends_with_the_regions(self):
        # A script that has nothing to call is enough.
        run = self.run_script("", "page-faults", "-i", "10000",
                              args=("--run", C_PROGRAM, "killed_inside", "5"))
        rows = [line.split() for line in run.lines[-3:]]
        self.assertEqual(rows[0], ["REGION", "CALLS", "INCOMPLETE", "SECONDS", "page-faults"])
        self.assertEqual([rows[2][0], rows[2][1], rows[2][2], rows[2][4]], ["work", "5", "1", "5"])

    @skip_unless_tracepoints
    def test_the_summary_has_those_of_the_option_first(self):
        run = self.run_script("def __exit__():\n    pass\n", "page-faults,task-clock", "-i", "10000", "-r", f"work=func:main@{C_PROGRAM}",
                              args=("--run", C_PROGRAM, "killed_inside", "5"))
        title, option, _, program = [line.split() for line in run.lines[-4:]]
        self.assertEqual(title, ["REGION", "CALLS", "INCOMPLETE", "SECONDS", "page-faults", "task-clock"])
        # main was killed, too.
        self.assertEqual(option, ["work", "0", "1", "0.000000", "0", "0"])
        self.assertEqual(program[:3] + program[4:5], ["work#2", "5", "1", "5"])
        self.assertEqual(len({len(line) for line in run.lines[-4:]}), 1)

    def test_names_are_bytes_and_run_is_reserved(self):
        totals = self.observe(C_PROGRAM, "odd_names", 3)
        self.assertEqual(self.faults(totals, "caf\udce9"), [1, 0, 3])
        self.assertEqual(totals["run"]["calls"], 1)

    def test_the_variable_is_in_the_programs_environment_alone(self):
        script = SCRIPT + """
import os, subprocess
print([os.environ.get("PERFSCOPE_REGIONS"), subprocess.run("echo $PERFSCOPE_REGIONS", shell=True, text=True,
                                                          capture_output=True).stdout])
"""
        run = self.run_script(script, "page-faults", args=("--run", "sh", "-c", "echo $PERFSCOPE_REGIONS"))
        self.assertIn("[None, '\\n']", run.lines)
        self.assertEqual(sum(bool(re.fullmatch(r"\d+:[0-9a-f]+", line)) for line in run.lines), 1)


class TestLeftovers(RegionTestCase):
    def start(self, *command):
        observer = self.start_script(SCRIPT, "page-faults", args=("--run", *command))
        self.addCleanup(subprocess.run, ["pkill", "-P", str(observer.pid)], check=False)
        return observer

    def test_the_table_is_its_users_alone_and_goes_with_the_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            observer = self.start("sleep", "2" if number == signal.SIGKILL else "30")
            [(_, mode, uid)] = tables(observer.pid)
            self.assertEqual([mode, uid], ["600", os.getuid()])
            if number == signal.SIGKILL:
                observer.process.kill()
                observer.process.wait()
            else:
                observer.stop(number)
            self.assertEqual(tables(observer.pid), set())

    @skip_unless_root
    @unittest.skipUnless(shutil.which("unshare"), "no unshare here")
    def test_where_there_is_no_memory_for_a_table_the_knob_is_named(self):
        arguments = ["python", "-e", "page-faults", self.write("script.py", SCRIPT), "--run", C_PROGRAM, "pass", "3"]
        for knob, value in (("shmmax", 4096), ("shmmni", 0), ("shmall", 1)):
            limit = f'echo {value} >/proc/sys/kernel/{knob} && exec "$@"'
            run = self.run_command("--ipc", "sh", "-c", limit, "sh", COMMAND, *arguments, command="unshare")
            self.assertEqual([run.status, list(run.json[-1]["totals"]), len(run.errors)], [0, ["run"], 1], run.stderr)
            self.assertIn(f"kernel.{knob}", run.stderr)

    @skip_unless_root
    def test_with_user_the_table_is_that_users(self):
        os.chmod(self.folder, 0o755)
        observer = self.start_script(SCRIPT, "page-faults", "--user", "nobody", args=("--run", "sleep", "2"))
        [(_, mode, uid)] = tables(observer.pid)
        self.assertEqual([mode, uid], ["600", 65534])
        observer.stop(signal.SIGTERM)

    def test_a_program_outlives_a_killed_perfscope_with_the_table(self):
        with tempfile.NamedTemporaryFile(dir=self.folder) as ready:
            program = f"import time, perfscope\nwith perfscope.region('x'):\n    open({ready.name!r}, 'w').write('1')\n" \
                      f"time.sleep(1)\nwith perfscope.region('y'):\n    pass\nopen({ready.name!r}, 'w').write('22')"
            environment = dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"))
            observer = self.start("env", f"PYTHONPATH={environment['PYTHONPATH']}", "/usr/bin/python3", "-c", program)
            self.wait_for_size(ready.name, 1)
            observer.process.kill()
            observer.process.wait()
            self.wait_for_size(ready.name, 2)

    def wait_for_size(self, path, size):
        deadline = time.monotonic() + 30
        while os.path.getsize(path) < size and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertGreaterEqual(os.path.getsize(path), size)


if __name__ == "__main__":
    unittest.main()
