# SPDX-License-Identifier: MIT
"""What goes wrong outside of the script: closed and full outputs, broken specs, few descriptors, foreign environments."""

import os
import random
import re
import resource
import shutil
import subprocess
import unittest

from livetest import COMMAND, LOAD, LiveTestCase, skip_if_hardware_pmu, skip_unless_root, skip_unless_tracepoints

GETPPID = "syscalls:sys_enter_getppid"
PASS = "def __sample__(event): pass\n"
PRINT = "def __sample__(event): print('[1]')\n"
TEN = ["--run", LOAD, "getppid", "10"]


class ErrorTestCase(LiveTestCase):
    def shell(self, redirection, source, *options, events=GETPPID):
        """Run a script on ten events with @redirection of bash behind the command."""
        words = [COMMAND, "python", "-e", events, *options, self.write("script.py", source), *TEN]
        return subprocess.run(["bash", "-c", f'"$@" {redirection}', "bash", *words], capture_output=True, text=True,
                              check=False, timeout=30, cwd=self.folder,
                              env=dict(os.environ, PYTHONUNBUFFERED=""))


@skip_unless_tracepoints
class TestStandardStreams(ErrorTestCase):
    def test_closed_ones_do_not_catch_what_is_opened(self):
        run = self.shell(">&-", "import os\ntext = 'stdout %s' % os.readlink('/proc/self/fd/1')\n"
                         "open('told', 'w').write(text)\n" + PRINT)
        self.assertEqual([run.returncode, run.stderr], [0, ""])
        with open(os.path.join(self.folder, "told"), encoding="ascii") as file:
            self.assertEqual(file.read(), "stdout /dev/null")

    def test_all_closed_is_no_error(self):
        run = self.shell("<&- >&- 2>&-", PRINT, "-o", "out")
        self.assertEqual(run.returncode, 0)
        with open(os.path.join(self.folder, "out"), encoding="ascii") as file:
            self.assertEqual(file.read().count("[1]\n"), 10)

    def test_full_disk_under_the_script_is_an_error(self):
        run = self.shell(">/dev/full", PRINT)
        self.assertEqual([run.returncode, run.stdout], [1, ""])
        self.assertIn("OSError: [Errno 28] No space left on device", run.stderr)

    def test_full_disk_under_the_summary_is_told_once(self):
        for options in ["-i", "5000"], ["-i", "10", "-p", str(os.getpid()), "--duration", "0.2"]:
            with self.subTest(options=options):
                words = [COMMAND, "python", "-e", GETPPID, *options, self.write("script.py", PASS)]
                words += TEN if "-p" not in options else []
                with open("/dev/full", "wb") as full:
                    run = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30)
                self.assertEqual([run.returncode, run.stderr], [1, "perfscope: stdout: No space left on device\n"])

    def test_full_disk_under_messages_changes_nothing(self):
        run = self.shell("2>/dev/full", "def __sample__(event): 1 / 0\ndef __exit__(): print('[2]')\n")
        self.assertEqual([run.returncode, run.stdout.splitlines()[1:]], [1, ["[2]"]])

    def test_reader_of_the_summary_who_leaves_is_a_clean_stop(self):
        words = [COMMAND, "python", "-e", GETPPID, "-i", "20", self.write("script.py", PASS)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual([process.wait(timeout=10), process.stderr.read()], [0, ""])


class TestEnvironment(ErrorTestCase):
    def run_as_nobody(self, *arguments, **options):
        # The build may lie where only root comes, as below /root.
        os.chmod(self.folder, 0o755)
        command = shutil.copy(COMMAND, self.folder)
        return self.run_command(*arguments, command=command, user=65534, group=65534, extra_groups=[], **options)

    def test_foreign_home_of_python_is_named(self):
        run = self.run_command("python", "-e", "page-faults", "-p", str(os.getpid()), self.write("script.py", PASS),
                               env=dict(os.environ, PYTHONHOME="/nowhere"))
        self.assertEqual(run.status, 1)
        self.assertRegex(run.errors[-1], r"^perfscope: start Python 3.*\(PYTHONHOME is /nowhere: unset it\)$")

    def test_folder_that_is_no_tracefs_is_named(self):
        run = self.run_command("python", "-e", GETPPID, self.write("script.py", PASS),
                               env=dict(os.environ, PERFSCOPE_TRACEFS="/nowhere"))
        self.assertEqual([run.status, run.stdout, run.errors],
                         [1, "", ["perfscope: /nowhere/events: No such file or directory (PERFSCOPE_TRACEFS names this folder)"]])

    @skip_unless_tracepoints
    @skip_unless_root
    def test_closed_tracefs_is_told_with_the_knob(self):
        if os.stat("/sys/kernel/tracing").st_mode & 0o007:
            self.skipTest("tracefs is open to everybody here")
        script = self.write("script.py", PASS)
        for arguments in ["python", "-e", GETPPID, script], ["python", "-e", GETPPID, script, "--run", "/bin/true"]:
            run = self.run_as_nobody(*arguments)
            self.assertEqual([run.status, run.stdout, len(run.errors)], [1, "", 1])
            self.assertRegex(run.errors[0], r"^perfscope: tracefs at /sys/kernel/tracing: Permission denied \(run as root, or ")

    @skip_unless_root
    def test_closed_counters_are_told_with_the_knob(self):
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            level = int(file.read())
        if level < 1:
            self.skipTest(f"counters of all CPUs are open to everybody here (perf_event_paranoid is {level})")
        run = self.run_as_nobody("python", "-e", "page-faults", self.write("script.py", PASS))
        self.assertEqual([run.status, run.stdout, len(run.errors)], [1, "", 1])
        self.assertRegex(run.errors[0], rf"^perfscope: open page-faults on cpu \d+: permission denied \(perf_event_paranoid "
                                        rf"is {level}; needs CAP_PERFMON or root, or sysctl kernel.perf_event_paranoid=0\)$")

    @skip_unless_root
    def test_script_that_the_user_may_not_read_is_told(self):
        script = self.write("script.py", PASS)
        os.chmod(script, 0)
        os.chmod(self.folder, 0o755)
        for run in (self.run_as_nobody("python", "-e", "page-faults:u", script),
                    self.run_command("python", "-e", "page-faults", "--user", "nobody", script)):
            self.assertEqual([run.status, run.stdout, run.errors],
                             [1, "", [f"perfscope: script {script}: Permission denied"]])

    @skip_unless_tracepoints
    def test_too_few_descriptors_are_told_with_the_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

        run = self.run_command("python", "-e", "syscalls:sys_enter_*", self.write("script.py", PASS), preexec_fn=limit)
        self.assertEqual([run.status, run.stdout, len(run.errors)], [1, "", 1])
        self.assertRegex(run.errors[0], r"^perfscope: open syscalls:sys_enter_\w+ on cpu \d+: too many open files "
                                        r"\(RLIMIT_NOFILE is 24, these events need \d+; raise it with ulimit -n, or choose ")

    def test_shebang_runs_the_script(self):
        script = self.write("script", f"#!/usr/bin/env -S perfscope python -e page-faults:u -N 1\n"
                                      "import sys\nprint(sys.argv[1:])\nsys.exit(5)\n")
        os.chmod(script, 0o755)
        path = os.pathsep.join([os.path.dirname(COMMAND), os.environ["PATH"]])
        run = subprocess.run([script, "a", "--b"], env=dict(os.environ, PATH=path), capture_output=True, text=True,
                             check=False, timeout=30)
        self.assertEqual([run.returncode, run.stdout, run.stderr], [5, "['a', '--b']\n", ""])


@skip_unless_tracepoints
@skip_if_hardware_pmu
class TestWhatTheMachineLacks(ErrorTestCase):
    """Each is refused, or reads None, or is told to say nothing, in one sentence: what, why, what to do."""

    def observe(self, *arguments):
        """Status, what the script printed, and the messages, without the places of descriptors."""
        source = "def __sample__(event): pass\ndef __exit__(totals): print(list(totals['run'].values.values())[:1])\n"
        run = self.run_command("python", *arguments, self.write("script.py", source), "--run", LOAD, "touch", "3")
        printed = [line for line in run.lines if line.startswith("[")]
        return run.status, printed, [re.sub(r" on cpu \d+ of thread \d+", "", line) for line in run.errors]

    def test_counters_of_a_pmu(self):
        for event, nearest in {"cycles": "cpu-clock", "cycles:ppp": "cpu-clock", "instructions/period=1000/p": "task-clock",
                               "r1a8": "task-clock", "r1a8/freq=99/": "task-clock", "L1-dcache-loads": "page-faults",
                               "LLC-load-misses/freq=99/": "page-faults", "cpu/event=0x3c/": "task-clock"}.items():
            with self.subTest(event):
                status, printed, errors = self.observe("-e", event, "-e", "page-faults")
                self.assertEqual([status, printed, len(errors)], [0, ["[None]"], 1])
                self.assertRegex(errors[0], rf"^perfscope: \S+: no hardware PMU here, it reads None; nearest: {nearest}$")

    def test_branch_stacks(self):
        said = "branch stacks need a PMU that records branches"
        for event in "cpu-clock/freq=99,branch/", "page-faults/period=1,branch/", "syscalls:sys_enter_getppid//branch/":
            name = event.split("/")[0]
            self.assertEqual(self.observe("-e", event), (1, [], [f"perfscope: open {name}: {said} (leave out branch)"]))
        self.assertEqual(self.observe("-e", "cpu-clock/freq=99/", "--call-graph=lbr"),
                         (1, [], [f"perfscope: open cpu-clock: {said} (--call-graph=fp and dwarf do not)"]))

    def test_precise_samples_of_what_is_no_pmu(self):
        for event in "page-faults/period=1/:pp", "syscalls:sys_enter_getppid:p":
            status, _, errors = self.observe("-e", event)
            self.assertEqual([status, len(errors)], [0, 1])
            self.assertRegex(errors[0], r": only a hardware PMU places samples precisely; p changes nothing here \(leave it out\)$")
        self.assertEqual(self.observe("-e", "{page-faults/period=1/,context-switches}:p")[2], [])

    def test_parts_that_only_a_pmu_tells(self):
        rows = {"weight": ["weight; without one 0"], "data-src": ["data-src; without one N/A"],
                "data-src,transaction": ["transaction; without one 0", "data-src; without one N/A"]}
        for attributes, said in rows.items():
            status, _, errors = self.observe("-e", f"page-faults/period=1,{attributes}/")
            self.assertEqual([status, errors], [0, [f"perfscope: page-faults: only a hardware PMU tells {one} is all it says "
                                                    "(leave it out)" for one in said]])
        self.assertEqual(len(self.observe("-e", "syscalls:sys_enter_getp*id//weight/")[2]), 1)

    def test_parts_that_need_none_say_nothing(self):
        status, _, errors = self.observe("-e", "page-faults/period=1,addr,phys-addr,page-size,cgroup,regs,stack-user,id,stream-id,raw/")
        self.assertEqual([status, errors], [0, []])

    def test_kprobes(self):
        if os.path.exists("/sys/bus/event_source/devices/kprobe"):
            self.skipTest("this kernel has kprobes")
        for event in "kprobe:vfs_read", "kretprobe:vfs_read":
            status, _, errors = self.observe("-e", event)
            self.assertEqual([status, errors],
                             [1, [f"perfscope: {event}: this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)"]])


class TestBrokenSpecs(ErrorTestCase):
    """Whatever stands behind -e ends in a list of events, or in one message with a caret where it is no list at all."""

    SEEDS = ['sched:sched_switch/pid>1000 && comm~"ba*"/alias=x,stack/', "{cycles,page-faults}:u", "cpu-clock/freq=997,stack/",
             "cpu/event=0x3c,umask=0/u", "r1a8", "mem:0x1000/8:rw", 'uprobe:f@"/usr/bin/x"/arg1>0/stack/', "kprobe:f+8 a=%di:u32",
             "usdt:p:n@/bin/x", "profile/freq=997/", "sched:sched_*", "page-faults:u,sched:sched_wakeup//stack/"]
    CHARACTERS = "/:,{}\"'\\@=*?[] \t\n%+-()&|!~0x\x01\x7f\u00ff\u20ac\udcff"

    def mutate(self, text, random):
        at, kind = random.randrange(len(text) + 1), random.randrange(5)
        if kind == 0:
            return text[:at] + random.choice(self.CHARACTERS) + text[at:]
        if kind == 1:
            return text[:at] + text[at + random.randrange(1, 6):]
        if kind == 2:
            return text[:at] + random.choice(self.SEEDS) + text[at:]
        if kind == 3:
            return text[:at] + text[at:] * random.randrange(1, 40)
        return text[:at]

    def test_any_text_ends_in_events_or_a_message(self):
        generator = random.Random(1)
        for _ in range(250):
            text = generator.choice(self.SEEDS)
            for _ in range(generator.randrange(1, 7)):
                text = self.mutate(text, generator)
            spec = os.fsencode(text)[:4096]
            run = subprocess.run([COMMAND, "python", "-e", spec, "--help"], capture_output=True, check=False, timeout=20)
            lines = run.stderr.splitlines()
            with self.subTest(spec=spec):
                self.assertIn(run.returncode, (0, 1, 2))
                if run.returncode == 0:
                    compile(run.stdout, "template", "exec")
                    continue
                self.assertEqual([run.stdout, lines[0][:11]], [b"", b"perfscope: "])
                # The text and its caret are the only lines below a message.
                others = [line for line in lines if not line.startswith(b"perfscope: ")]
                self.assertIn(len(others), (0, 2))
                self.assertTrue(not others or others[1].strip(b" ~") == b"^", others)


if __name__ == "__main__":
    unittest.main()
