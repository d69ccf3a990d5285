# SPDX-License-Identifier: MIT
"""What is observed: all CPUs or some, processes, threads, a cgroup, a started program. Nothing else, and all of it."""

import os
import signal
import sys
import threading
import time
import unittest

from livetest import LOAD, LiveTestCase, skip_unless_root, skip_unless_tracepoints, skip_unless_two_cpus

GETPPID = "syscalls:sys_enter_getppid"
COUNT = """
import collections, json
counts, cpus, tids, lost = collections.Counter(), collections.Counter(), set(), 0
def __sample__(event):
    counts[event._event.split(':')[-1]] += 1
    cpus[event._cpu] += 1
    tids.add(event._tid)
def __exit__(totals):
    run = totals['run']
    print(json.dumps({'counts': counts, 'cpus': cpus, 'nr_tids': len(tids), 'values': run.values, 'scaled': run.scaled,
                      'coverage': run.coverage}), flush=True)
"""

# Three threads make 100, 200 and 300 calls and end; a fourth, made later, makes 1000; the first thread makes 7.
THREADS = """
import os, sys, threading
def call(n, event):
    event.wait()
    for _ in range(n):
        os.getppid()
event = threading.Event()
threads = [threading.Thread(target=call, args=(n, event)) for n in (100, 200, 300)]
for thread in threads:
    thread.start()
os.read(0, 1)
event.set()
late = threading.Thread(target=call, args=(1000, event))
late.start()
for thread in threads + [late]:
    thread.join()
call(7, event)
os.read(0, 1)
"""


def find_cgroup2():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[2] == "cgroup2" and os.access(words[1], os.W_OK):
                return words[1]
    return None


class TargetTestCase(LiveTestCase):
    def count_between(self, events, load, *options):
        """Run COUNT with @options over one go() of @load; what it printed."""
        observer = self.start_script(COUNT, events, *options)
        load.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def assert_all_covered(self, result, values):
        """The totals have these values; nothing was multiplexed, so that they are the scaled ones too."""
        self.assertEqual(result["values"], values)
        self.assertEqual(result["scaled"], values)
        self.assertEqual(set(result["coverage"].values()), {1.0})


@skip_unless_tracepoints
@skip_unless_two_cpus
class TestCpus(TargetTestCase):
    def count_on(self, *options):
        loads = [self.hold_load("--cpu", cpu, "wait", "+", "getppid", count, "+", "wait")
                 for cpu, count in ((0, 30), (1, 40))]
        mine = " || ".join(f"common_pid == {load.pid}" for load in loads)
        observer = self.start_script(COUNT, f"{GETPPID}/{mine}/", *options)
        for load in loads:
            load.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def test_all_cpus_are_the_default(self):
        result = self.count_on()
        self.assertEqual([result["cpus"], result["counts"]], [{"0": 30, "1": 40}, {"sys_enter_getppid": 70}])
        self.assert_all_covered(result, {GETPPID: 70})

    def test_a_is_all_cpus(self):
        self.assertEqual(self.count_on("-a")["cpus"], {"0": 30, "1": 40})

    def test_list_of_cpus(self):
        for cpus, expected in ("0", {"0": 30}), ("1", {"1": 40}), ("0-1", {"0": 30, "1": 40}), ("1,0", {"0": 30, "1": 40}):
            with self.subTest(cpus=cpus):
                result = self.count_on("-C", cpus)
                self.assertEqual(result["cpus"], expected)
                self.assert_all_covered(result, {GETPPID: sum(expected.values())})

    def test_list_of_cpus_holds_for_processes_and_programs_too(self):
        for target in "-p", "-t":
            load = self.hold_load("--cpu", 0, "wait", "+", "getppid", 30, "+", "wait")
            self.assertEqual(self.count_between(GETPPID, load, target, load.pid, "-C", 1)["counts"], {})
        run = self.run_script(COUNT, GETPPID, "-C", "1", load=["--cpu", "0", "getppid", "30"])
        self.assertEqual(run.json[0]["counts"], {})

    def test_cpus_of_one_event(self):
        load = self.hold_load("--cpu", 1, "wait", "+", "getppid", 30, "+", "wait")
        events = f"{GETPPID}//alias=zero,cpus=0/,{GETPPID}//alias=one,cpus=1/,{GETPPID}//alias=both/"
        for target in ["-p", load.pid], ["-C", "0-1"]:
            load = self.hold_load("--cpu", 1, "wait", "+", "getppid", 30, "+", "wait")
            target = ["-p", load.pid] if target[0] == "-p" else target
            mine = events.replace("//", f"/common_pid == {load.pid}/")
            self.assert_all_covered(self.count_between(mine, load, *target), {"zero": 0, "one": 30, "both": 30})

    def test_cpu_that_does_not_exist(self):
        run = self.run_script(COUNT, GETPPID, "-C", "4095")
        self.assertEqual([run.status, run.stdout, len(run.errors)], [1, "", 1])
        self.assertRegex(run.errors[0], r"^perfscope: cpu 4095 does not exist here \(0")

    @unittest.skipUnless(os.environ.get("PERFSCOPE_HOTPLUG") == "1",
                         "takes CPU 1 offline for a moment: only with PERFSCOPE_HOTPLUG=1")
    def test_cpu_that_is_offline(self):
        path = "/sys/devices/system/cpu/cpu1/online"

        def set_online(text):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        self.addCleanup(set_online, "1")
        set_online("0")
        run = self.run_script(COUNT, GETPPID, "-C", "1")
        self.assertEqual([run.status, run.errors],
                         [1, [f"perfscope: cpu 1 is offline (to bring it back: echo 1 >{path})"]])
        run = self.run_script(COUNT, GETPPID, load=["getppid", "30"])
        self.assertEqual([run.status, run.json[0]["cpus"]], [0, {"0": 30}])


@skip_unless_tracepoints
class TestProcesses(TargetTestCase):
    def hold_threads(self):
        return self.hold_load(command=[sys.executable, "-c", THREADS])

    def test_process_is_all_its_threads_and_none_that_come_later(self):
        load = self.hold_threads()
        result = self.count_between(GETPPID, load, "-p", load.pid)
        self.assertEqual([result["counts"], result["nr_tids"]], [{"sys_enter_getppid": 607}, 4])
        # Also those of the threads that have ended.
        self.assert_all_covered(result, {GETPPID: 607})

    def test_new_threads_too_with_inherit(self):
        load = self.hold_threads()
        result = self.count_between(GETPPID, load, "-p", load.pid, "--inherit")
        self.assertEqual([result["counts"], result["nr_tids"]], [{"sys_enter_getppid": 1607}, 5])
        self.assert_all_covered(result, {GETPPID: 1607})

    def test_children_only_with_inherit(self):
        for options, expected in ([], {"sched_process_fork": 3}), (["--inherit"], {"sched_process_fork": 3,
                                                                                   "sched_process_exit": 3}):
            with self.subTest(options=options):
                load = self.hold_load("wait", "+", "fork", 3, "+", "wait")
                result = self.count_between("sched:sched_process_fork,sched:sched_process_exit", load, "-p", load.pid,
                                            *options)
                self.assertEqual(result["counts"], expected)

    def test_threads_one_by_one(self):
        load = self.hold_threads()
        tids = sorted(map(int, os.listdir(f"/proc/{load.pid}/task")))
        observer = self.start_script(COUNT, GETPPID, "-t", f"{tids[1]},{tids[3]}")
        load.go()
        result = observer.wait(timeout_s=10).json[0]  # both end
        self.assertEqual([result["counts"], result["nr_tids"]], [{"sys_enter_getppid": 400}, 2])
        self.assert_all_covered(result, {GETPPID: 400})

    def test_several_processes(self):
        loads = [self.hold_load("wait", "+", "getppid", n, "+", "wait") for n in (5, 6, 7)]
        observer = self.start_script(COUNT, GETPPID, "-p", f"{loads[0].pid},{loads[2].pid}")
        for load in loads:
            load.go()
        result = observer.stop().json[0]
        self.assertEqual([result["counts"], result["nr_tids"]], [{"sys_enter_getppid": 12}, 2])

    def test_run_ends_when_the_last_thread_has_ended(self):
        load = self.hold_load("wait", "+", "getppid", 9)
        observer = self.start_script(COUNT, GETPPID, "-p", load.pid)
        load.finish()
        run = observer.wait(timeout_s=10)
        self.assertEqual(run.status, 0)
        self.assert_all_covered(run.json[0], {GETPPID: 9})

    def test_process_that_does_not_exist(self):
        load = self.hold_load("wait")
        load.close()
        for option, what in ("-p", "process"), ("-t", "thread"):
            run = self.run_script(COUNT, GETPPID, option, load.pid)
            self.assertEqual([run.status, run.errors], [1, [f"perfscope: {what} {load.pid} does not exist"]])

    def test_thread_in_the_place_of_a_process(self):
        thread = threading.Thread(target=time.sleep, args=(1,))
        thread.start()
        run = self.run_script(COUNT, GETPPID, "-p", thread.native_id)
        thread.join()
        self.assertEqual([run.status, run.errors], [1, [
            f"perfscope: {thread.native_id} is a thread of process {os.getpid()} "
            f"(take -t {thread.native_id} or -p {os.getpid()})"]])


@skip_unless_tracepoints
@skip_unless_root
@unittest.skipIf(find_cgroup2() is None, "no cgroup2 hierarchy that can be written to is mounted")
class TestCgroup(TargetTestCase):
    def setUp(self):
        super().setUp()
        self.name = f"perfscope-live-{os.getpid()}-{id(self):x}"
        self.path = os.path.join(find_cgroup2(), self.name)
        os.mkdir(self.path)
        self.addCleanup(self.remove)

    def remove(self):
        for _ in range(1000):
            try:
                return os.rmdir(self.path)
            except OSError:  # a process is ending in it
                time.sleep(0.01)
        return None

    def join(self, pid):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))

    def test_only_what_is_in_it_is_observed(self):
        inside = self.hold_load("wait", "+", "getppid", 40, "+", "wait")
        outside = self.hold_load("wait", "+", "getppid", 9, "+", "wait")
        self.join(inside.pid)
        for cgroup in self.name, self.path:
            with self.subTest(cgroup=cgroup):
                inside = self.hold_load("wait", "+", "getppid", 40, "+", "fork", 2, "+", "wait")
                self.join(inside.pid)
                observer = self.start_script(COUNT, [GETPPID, "sched:sched_process_exit"], "--cgroup", cgroup)
                inside.go()
                if cgroup == self.name:
                    outside.go()
                result = observer.stop().json[0]
                self.assertEqual(result["counts"], {"sys_enter_getppid": 40, "sched_process_exit": 2})
                self.assert_all_covered(result, {GETPPID: 40, "sched:sched_process_exit": 2})

    def test_process_that_joins_later(self):
        load = self.hold_load("wait", "+", "getppid", 5, "+", "wait", "+", "getppid", 6, "+", "wait")
        observer = self.start_script(COUNT, GETPPID, "--cgroup", self.name)
        load.go()
        self.join(load.pid)
        load.go()
        self.assertEqual(observer.stop().json[0]["counts"], {"sys_enter_getppid": 6})

    def test_counters_are_those_of_the_cgroup(self):
        load = self.hold_load("wait", "+", "touch", 500, "+", "wait")
        self.join(load.pid)
        before = load.nr_faults()
        result = self.count_between("page-faults", load, "--cgroup", self.name)
        self.assert_all_covered(result, {"page-faults": load.nr_faults() - before})
        self.assertGreaterEqual(result["values"]["page-faults"], 500)

    def test_cgroup_that_does_not_exist(self):
        run = self.run_script(COUNT, GETPPID, "--cgroup", self.name + "x")
        self.assertEqual([run.status, run.errors], [1, [f"perfscope: cgroup {self.path}x does not exist"]])


@skip_unless_tracepoints
class TestProgram(TargetTestCase):
    def count_run(self, events, *options, load):
        run = self.run_script(COUNT, events, *options, load=load)
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def test_threads_belong_to_it_always(self):
        result = self.count_run(GETPPID, load=["threads", 5, 7, "+", "getppid", 3])
        self.assertEqual([result["counts"], result["nr_tids"]], [{"sys_enter_getppid": 38}, 6])
        self.assert_all_covered(result, {GETPPID: 38})

    def test_children_only_with_inherit(self):
        events = "sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit"
        load = ["fork", 3, "+", "exec", 2]
        self.assertEqual(self.count_run(events, load=load)["counts"],
                         {"sched_process_exec": 1, "sched_process_fork": 5, "sched_process_exit": 1})
        self.assertEqual(self.count_run(events, "--inherit", load=load)["counts"],
                         {"sched_process_exec": 3, "sched_process_fork": 5, "sched_process_exit": 6})

    def test_its_exec_and_its_exit_are_delivered(self):
        source = "import json\ndef __sample__(event): print(json.dumps([event._event, event._comm]))\n"
        run = self.run_script(source, ["sched:sched_process_exec", "sched:sched_process_exit"], args=["--run", "/bin/true"])
        self.assertEqual([run.status, run.json],
                         [0, [["sched:sched_process_exec", "true"], ["sched:sched_process_exit", "true"]]])

    def test_arguments_of_script_and_program_are_told_apart(self):
        source = "import sys, json\nprint(json.dumps(sys.argv[1:]), flush=True)\ndef __sample__(event): pass\n"
        run = self.run_script(source, GETPPID, args=["a", "-b", "--run", "/bin/echo", "-e", "x", "--run", "-N", "1"])
        self.assertEqual([run.status, run.lines], [0, ['["a", "-b"]', "x --run -N 1"]])

    def test_program_that_cannot_be_started(self):
        plain = self.write("plain", "")
        script = self.write("broken", "#!/nowhere/interpreter\n")
        os.chmod(script, 0o755)
        for program, message in (
                (plain, f"run {plain}: Permission denied (is it executable? chmod +x)"),
                (self.folder, f"run {self.folder}: Is a directory"),
                ("/nowhere/prog", "run /nowhere/prog: No such file or directory"),
                ("no-such-prog", "run no-such-prog: no such program in PATH (for one in this folder: ./no-such-prog)"),
                (script, f"run {script}: the interpreter that its first line or header names does not exist")):
            with self.subTest(program=program):
                run = self.run_script("def __sample__(event): pass\n", GETPPID, args=["--run", program])
                self.assertEqual([run.status, run.errors], [1, [f"perfscope: {message}"]])

    def test_status_is_that_of_the_program(self):
        self.assertEqual(self.run_script(COUNT, GETPPID, load=["getppid", 4, "+", "exit", 9]).status, 9)
        run = self.run_script(COUNT, GETPPID, args=["--run", "/bin/sh", "-c", "kill -SEGV $$"])
        self.assertEqual(run.status, 128 + signal.SIGSEGV)


if __name__ == "__main__":
    unittest.main()
