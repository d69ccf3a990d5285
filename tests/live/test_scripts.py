# SPDX-License-Identifier: MIT
"""The shipped scripts on loads of known size."""

import os
import re
import subprocess
import unittest

from livetest import LOAD, ROOT, LiveTestCase, run_load, skip_unless_tracepoints

# How often the thread got a CPU, beside what runqlat says; a name of our own, so that nothing else counts.
RUNQLAT_COUNTED = """
exec(compile(open({path!r}).read(), "runqlat", "exec"))
switches_in = 0
measure = sched__sched_switch
def sched__sched_switch(event):
    global switches_in
    switches_in += event.next_comm == {comm!r}
    measure(event)
def __exit__():
    print([sum(histograms[{comm!r}].values()), switches_in])
"""


@skip_unless_tracepoints
class TestScripts(LiveTestCase):
    def run_shipped(self, name, *arguments, load, options=()):
        run = self.run_command("python", *options, name, *arguments, "--run", LOAD, *load,
                               env={**os.environ, "PERFSCOPE_SCRIPTS": os.path.join(ROOT, "scripts")})
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run

    def rows(self, run, key=0):
        """Rows of a table, by the column @key; the load's own line and the title are none."""
        rows = [line.split() for line in run.lines if not line.startswith("{")]
        return {row[key]: row for row in rows[1:]}

    def test_syscount_counts_each_call(self):
        run = self.run_shipped("syscount", "--top", 100, load=["getppid", 1000, "+", "kill", 0, 7])
        rows = self.rows(run, 1)
        self.assertEqual([rows["getppid"], rows["kill"]], [["load", "getppid", "1000"], ["load", "kill", "7"]])

    def test_regions_shows_those_of_the_option(self):
        run = self.run_shipped("regions", options=["-r", "one=syscalls:sys_enter_getppid..syscalls:sys_exit_getppid"], load=["getppid", 1000])
        self.assertIn(["REGION", "CALLS", "INCOMPLETE", "US", "task-clock", "page-faults"], [line.split() for line in run.lines])
        one = self.rows(run)["one"]
        self.assertEqual(one[:3] + one[5:], ["one", "1000", "0", "0.0"])

    def test_syslat_counts_calls_and_errors(self):
        load = ["getppid", 1000, "+", "kill", 0, 7, "+", "open", "/does/not/exist"]
        few = self.rows(self.run_shipped("syslat", "--top", 100, load=[*load, 0]))
        many = self.rows(self.run_shipped("syslat", "--top", 100, load=[*load, 30]))
        self.assertEqual([many["getppid"][1:3], many["kill"][1:3]], [["1000", "0"], ["7", "0"]])
        self.assertEqual([int(many["openat"][i]) - int(few["openat"][i]) for i in (1, 2)], [30, 30])

    def test_syslat_counts_the_wait(self):
        row = self.rows(self.run_shipped("syslat", load=["sleep", 50]))["clock_nanosleep"]
        self.assertEqual(row[1:3], ["1", "0"])
        self.assertGreaterEqual(float(row[3]), 50)

    def test_execsnoop_shows_each_program_with_its_parent(self):
        run = self.run_shipped("execsnoop", load=["exec", 3], options=["--inherit"])
        pid = re.search(r'"pid": (\d+)', run.stdout)[1]
        rows = [line.split()[2:] for line in run.lines if re.match(r" +\d+\.\d+ ", line)]
        self.assertEqual(rows[1:], [[pid, "load", "/bin/true"]] * 3)
        self.assertEqual(rows[0][-1], LOAD)

    def test_execsnoop_shows_what_one_program_starts(self):
        run = self.run_shipped("execsnoop", "--comm", "starter", options=["--inherit"],
                               load=["exec", 1, "+", "rename", "starter", "+", "exec", 2])
        rows = [line.split()[3:] for line in run.lines if re.match(r" +\d+\.\d+ ", line)]
        self.assertEqual(rows, [["starter", "/bin/true"]] * 2)

    def test_runqlat_measures_each_wait(self):
        comm = f"q{os.getpid()}"
        source = RUNQLAT_COUNTED.format(path=os.path.join(ROOT, "scripts", "runqlat.py"), comm=comm)
        # The CPU is never idle: some kernels tell no switch from an idle thread.
        with subprocess.Popen([LOAD, "--cpu", "0", "spin", "60000"], stdout=subprocess.DEVNULL) as other:
            observer = self.start_script(source, "sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch", "-q")
            run_load("--cpu", 0, "rename", comm, *["+", "sleep", "2"] * 20)
            other.kill()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        waits, switches_in = run.json[-1]
        self.assertEqual(waits, switches_in)
        self.assertGreaterEqual(waits, 20)


if __name__ == "__main__":
    unittest.main()
