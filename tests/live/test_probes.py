# SPDX-License-Identifier: MIT
"""Probes on a program of known calls: each call is an event, arguments are what was passed, and nothing is left in tracefs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from livetest import BUILD, COMMAND, TRACEFS, LiveTestCase, skip_unless_root, skip_unless_tracepoints

PROBED = os.path.join(BUILD, "tests", "probed")
EVENTS_FILE = os.path.join(TRACEFS, "uprobe_events")
SEEN = """
import json
seen = []
def __sample__(event):
    seen.append([event._event, {name: event[name] for name in event.keys() if name[0] != '_' and name[:7] != 'common_'}])
def __exit__(totals): print(json.dumps({'seen': seen, 'values': totals['run'].values}), flush=True)
"""
NOTHING = "def __sample__(event): pass\n"
N = 200


def probes_of(pid):
    """The names in uprobe_events that the perfscope of this process made."""
    with open(EVENTS_FILE, encoding="utf-8") as file:
        return [line.split()[0] for line in file if f":perfscope_{pid}_" in line]


def write_events(line):
    """Python's own appending seeks to the end, which tracefs refuses."""
    fd = os.open(EVENTS_FILE, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def address_of(function, program=PROBED):
    """What the symbol table says."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {function}"))


@skip_unless_tracepoints
@skip_unless_root
@unittest.skipUnless(os.path.exists(EVENTS_FILE), "this kernel has no uprobes")
class ProbeTestCase(LiveTestCase):
    def run_probed(self, events, *options, nr=N, program=PROBED, source=SEEN):
        """Run the program on @events; what was seen, and the totals."""
        run = self.run_command(*self.script_arguments(source, events, options, ["--run", program, nr]))
        self.assertEqual([run.status, run.stderr], [0, ""])
        return run.json[0]

    def assert_refused(self, event, status, *lines):
        run = self.run_command(*self.script_arguments(NOTHING, event, [], ["--run", PROBED, 1]))
        self.assertEqual([run.status, run.stdout, run.errors], [status, "", list(lines)])


class TestFunctions(ProbeTestCase):
    def test_each_call_and_each_return_is_an_event(self):
        result = self.run_probed([f"uprobe:probed_function@{PROBED}", f"uretprobe:probed_function@{PROBED}"])
        self.assertEqual(result["values"], {"uprobe:probed_function": N, "uretprobe:probed_function": N})
        names = [name for name, _ in result["seen"]]
        self.assertEqual(names, ["uprobe:probed_function", "uretprobe:probed_function"] * N)

    def test_addresses_lie_where_the_symbol_says(self):
        source = """
import json
ips = set()
def uprobe__probed_function(event): ips.add((event['__probe_ip'], len(event._raw)))
def uretprobe__probed_function(event): ips.add((event['__probe_func'], event['__probe_ret_ip'] > event['__probe_func'], len(event._raw)))
def __exit__(): print(json.dumps(sorted(map(list, ips), key=len)))
"""
        events = [f"uprobe:probed_function@{PROBED}", f"uretprobe:probed_function@{PROBED}"]
        entry, back = self.run_probed(events, source=source)
        address = address_of("probed_function")
        self.assertEqual([entry[0] % 4096, entry[0], entry[1]], [address % 4096, back[0], 20])
        self.assertEqual(back[2], 28)

    def test_argument_values_are_what_was_passed(self):
        event = f"uprobe:probed_function@{PROBED} n=%di:s32 text=+0(%si):ustring high=%dx:x64 plain=%di:u32"
        result = self.run_probed(event, nr=3)
        self.assertEqual([fields for _, fields in result["seen"]], [
            {"n": n, "text": "caf\u00e9", "high": 0xffffffffffffffff - i, "plain": n & 0xffffffff}
            for i, n in enumerate((-1, 0, 1))])
        result = self.run_probed(f"uretprobe:probed_function@{PROBED} $retval:s32 again=$retval:x8", nr=3)
        self.assertEqual([fields for _, fields in result["seen"]],
                         [{"arg1": -2, "again": 0xfe}, {"arg1": 0, "again": 0}, {"arg1": 2, "again": 2}])

    def test_filters_compare_arguments_and_addresses(self):
        result = self.run_probed([f'uprobe:probed_function@"{PROBED}" %di:s32/arg1>100/alias=large/',
                                  f'uprobe:probed_function@"{PROBED}" n=%di:s32/n < 0/alias=negative/',
                                  f'uprobe:probed_function@"{PROBED}"/__probe_ip > 0/alias=all/'])
        self.assertEqual(result["values"], {"large": N - 1 - 101, "negative": 1, "all": N})

    def test_handlers_are_named_by_function_and_alias(self):
        source = """
import json
n = {}
def count(name): n[name] = n.get(name, 0) + 1
def uprobe__probed_function(event): count('function')
def uprobe__other(event): count('alias ' + event._event)
def usdt__tests_step(event): count('usdt')
def __exit__(): print(json.dumps(n))
"""
        result = self.run_probed([f"uprobe:probed_function@{PROBED}", f'uprobe:ns::f@"{PROBED}"//alias=other/',
                                  f"usdt:tests:step@{PROBED}"], source=source)
        self.assertEqual(result, {"function": N, "alias uprobe:_ZN2ns1fEi": N, "usdt": N})

    def test_names_of_cxx_and_globs(self):
        for name in "_ZN2ns1fEi", "ns::f", '"ns::f(int)"', "_ZN2ns*":
            result = self.run_probed(f"uprobe:{name}@{PROBED}")
            self.assertEqual(result["values"], {"uprobe:_ZN2ns1fEi": N})
        result = self.run_probed(f"uprobe:probed_f*@{PROBED},uprobe:step?@{PROBED}")
        self.assertEqual(result["values"], {"uprobe:probed_function": N, "uprobe:steps": N})

    def test_an_address_is_that_of_the_symbol_table(self):
        address = address_of("steps")
        result = self.run_probed(f"uprobe:{address:#x}@{PROBED}")
        self.assertEqual(result["values"], {f"uprobe:{address:#x}": N})

    def test_a_file_whose_name_has_blanks(self):
        program = os.path.join(self.folder, "a b#c")
        shutil.copy(PROBED, program)
        for event in f'uprobe:steps@"{program}"', f'uprobe:steps@"{program}" n=%di':
            result = self.run_probed(event, program=program)
            self.assertEqual(result["values"], {"uprobe:steps": N})

    def test_a_function_of_a_library_in_a_process_that_runs(self):
        code = "import ctypes, sys\nlibc = ctypes.CDLL(None)\nfor line in sys.stdin.buffer.raw:\n for i in range(500): libc.abs(-i)\n"
        load = self.hold_load(command=[sys.executable, "-c", code])
        observer = self.start_script(SEEN, "uprobe:abs@libc.so.6 n=%di:s32", "-p", load.pid)
        load.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertEqual(run.json[0]["seen"], [["uprobe:abs", {"n": -i}] for i in range(500)])

    def test_a_breakpoint_counts(self):
        program = os.path.join(self.folder, "fixed")
        subprocess.run(["gcc", "-O1", "-no-pie", "-fno-inline", "-o", program,
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "probed.c")], check=True)
        address = address_of("steps", program)
        result = self.run_probed(f"mem:{address:#x}:x", program=program)
        self.assertEqual(list(result["values"].values()), [N])


class TestUsdt(ProbeTestCase):
    def test_arguments_are_those_of_the_note(self):
        result = self.run_probed(f"usdt:tests:step@{PROBED} n=$arg1:s32 text=+0($arg2):ustring seven=$arg3:s8", nr=3)
        self.assertEqual(result["seen"], [["usdt:tests:step", {"n": n, "text": "step", "seven": -7}] for n in range(3)])
        result = self.run_probed(f"usdt:tests:step@{PROBED}", nr=2)
        self.assertEqual([(fields["arg1"], fields["arg3"]) for _, fields in result["seen"]], [(0, 2**64 - 7), (1, 2**64 - 7)])

    def test_a_semaphore_is_raised_while_it_is_observed(self):
        result = self.run_probed(f"usdt:tests:guarded@{PROBED}")
        self.assertEqual(result["values"], {"usdt:tests:guarded": N})
        self.assertEqual([fields["arg1"] for _, fields in result["seen"]], [i & 255 for i in range(N)])

    def test_each_place_of_a_name_is_a_source(self):
        result = self.run_probed(f"usdt:tests:twice@{PROBED}")
        self.assertEqual(result["values"], {"usdt:tests:twice": N, "usdt:tests:twice#2": N})
        self.assertEqual(result["seen"], [["usdt:tests:twice", {"arg1": n}] for i in range(N) for n in (i, i + 100)])

    @unittest.skipUnless(os.path.exists("/usr/bin/python3.11"), "no /usr/bin/python3.11 here")
    def test_probes_of_python(self):
        name = "usdt:python:import__find__load__start@/usr/bin/python3.11"
        if name not in self.run_command("list", "usdt:*@/usr/bin/python3.11").stdout:
            self.skipTest("this Python has no probes")
        script = self.write("importing.py", "for i in range(7):\n try: __import__(f'probed_{i}')\n except ImportError: pass\n")
        run = self.run_command(*self.script_arguments(SEEN, name + " name=+0($arg1):ustring", [],
                                                      ["--run", "/usr/bin/python3.11", script]))
        self.assertEqual([run.status, run.stderr], [0, ""])
        names = [fields["name"] for _, fields in run.json[0]["seen"] if fields["name"].startswith("probed")]
        self.assertEqual(names, [f"probed_{i}" for i in range(7)])


class TestTargets(ProbeTestCase):
    def test_a_group_with_a_counter(self):
        source = """
import json
counters = []
def uprobe__steps(event): counters.append(event._counters)
def __exit__(): print(json.dumps(counters))
"""
        for args in "", " n=%di":
            counters = self.run_probed(f"{{task-clock,uprobe:steps@{PROBED}{args}}}", source=source)
            self.assertEqual([values["uprobe:steps"] for values in counters], list(range(1, N + 1)))
            times = [values["task-clock"] for values in counters]
            self.assertEqual(times, sorted(times))

    def test_all_cpus_and_children(self):
        for options in ["-a"], ["-C", "0-1"]:
            observer = self.start_script(SEEN, [f"uprobe:steps@{PROBED}", f"usdt:tests:twice@{PROBED}"], *options)
            for _ in range(3):
                subprocess.run([PROBED, str(N)], check=True)
            self.assertEqual(observer.stop().json[0]["values"],
                             {"uprobe:steps": 3 * N, "usdt:tests:twice": 3 * N, "usdt:tests:twice#2": 3 * N})
        command = ["--inherit", "--run", "sh", "-c", f"{PROBED} 5; {PROBED} 6; true"]
        for args in "", " n=%di":
            run = self.run_command(*self.script_arguments(SEEN, f"uprobe:steps@{PROBED}{args}", [], command))
            self.assertEqual([run.status, run.stderr, run.json[0]["values"]], [0, "", {"uprobe:steps": 11}])

    def test_new_threads_are_observed_and_can_start(self):
        code = ("import ctypes, threading\nlibc = ctypes.CDLL(None)\nfor i in range(5):\n"
                " t = threading.Thread(target=libc.labs, args=(4711,)); t.start(); t.join()\nprint('all started')\n")
        for args in "", " n=%di":
            run = self.run_command(*self.script_arguments(SEEN, f"uprobe:labs@libc.so.6{args}", [],
                                                          ["--run", sys.executable, "-c", code]))
            self.assertEqual([run.status, run.stderr, run.lines[0]], [0, "", "all started"])
            self.assertEqual(run.json[0]["values"], {"uprobe:labs": 5})

    def test_one_probe_twice(self):
        result = self.run_probed([f"uprobe:steps@{PROBED}", f"uprobe:steps@{PROBED} n=%di", f"uprobe:steps@{PROBED} n=%di"])
        self.assertEqual(result["values"], {"uprobe:steps": N, "uprobe:steps#2": N, "uprobe:steps#3": N})


class TestErrors(ProbeTestCase):
    def test_unknown_functions_get_the_nearest(self):
        event = f"uprobe:probed_functoin@{PROBED}"
        self.assert_refused(event, 1, f"perfscope: {event}: {PROBED} has no function probed_functoin; did you mean probed_function?")
        event = f"uretprobe:inlined@{PROBED}"
        self.assert_refused(event, 1, f"perfscope: {event}: {PROBED} has no code of inlined: it was inlined wherever it is called, "
                            "and returns nowhere (build it with __attribute__((noinline)))")
        event = f"usdt:tests:stop@{PROBED}"
        self.assert_refused(event, 1, f"perfscope: {event}: {PROBED} has no usdt probe tests:stop; did you mean tests:step?")

    def test_wrong_arguments_are_shown_where_they_are(self):
        event = f"uprobe:steps@{PROBED} n=%dix"
        self.assert_refused(event, 2, f"perfscope: {event}: the kernel refuses the probe: Invalid register name", "    n=%dix",
                            "      ^")

    def test_more_wrong_arguments(self):
        for args, reason, column in [
                ("common_pid=%di", "This argument name is already used", 0),
                ("a=%di a=%si", "This argument name is already used", 6),
                ("a2345678901234567890123456789012345=%di", "Argument name is too long", 0),
                ("n=%di:s33", "Unknown type is specified", 6),
                ("n=+0(%di", "Dereference brace is not closed", None),
                ("n=%di:string", None, None)]:
            event = f"uprobe:steps@{PROBED} {args}"
            with self.subTest(args[:40]):
                run = self.run_command(*self.script_arguments(NOTHING, event, [], ["--run", PROBED, 1]))
                self.assertEqual([run.status, run.stdout], [2, ""])
                start = f"perfscope: {event}: the kernel refuses the probe: "
                self.assertEqual(run.errors[0][:len(start)], start)
                if reason:
                    self.assertEqual(run.errors[0], start + reason)
                if column is not None:
                    self.assertEqual(run.errors[1:], ["    " + args, "    " + " " * column + "^"])

    def test_as_many_arguments_as_the_kernel_takes(self):
        event = f"uprobe:steps@{PROBED} " + " ".join(f"a{i}=%di" for i in range(129))
        self.assert_refused(event, 2, f"perfscope: {event}: the kernel takes up to 128 arguments")
        result = self.run_probed(f"uprobe:steps@{PROBED} " + " ".join(f"a{i}=%di:s32" for i in range(128)), nr=2)
        self.assertEqual([set(fields.values()) for _, fields in result["seen"]], [{0}, {1}])

    def test_files_that_are_none(self):
        self.write("empty", "")
        for file, reason in [("nothing", "No such file or directory"), ("empty", "not an ELF program or library of this machine"),
                             (".", "not an ELF program or library of this machine")]:
            path = os.path.join(self.folder, file)
            event = f"uprobe:f@{path}"
            self.assert_refused(event, 1, f"perfscope: {event}: {path}: {reason}")

    def test_a_filter_behind_a_file_without_quotes(self):
        for rest, reason in ("/n>1/", "Not a directory"), ("//alias=x/", "Not a directory"):
            event = f"uprobe:steps@{PROBED}{rest}"
            self.assert_refused(event, 1, f"perfscope: {event}: {PROBED}{rest}: {reason} "
                                "(FILE stands in quotes where a filter or attributes follow)")

    def test_offsets_and_addresses_beyond(self):
        event = f"uprobe:steps+5000@{PROBED}"
        run = self.run_command(*self.script_arguments(NOTHING, event, [], ["--run", PROBED, 1]))
        self.assertEqual(run.status, 2)
        self.assertRegex(run.errors[0], rf"^perfscope: {re.escape(event)}: steps: \+5000 lies beyond its end: it has [0-9]+ bytes$")
        event = f"uprobe:0x10@{PROBED}"
        self.assert_refused(event, 1, f"perfscope: {event}: {PROBED} has no code at 0x10 (the address is that of nm and objdump)")

    def test_a_stripped_program_says_so(self):
        program = os.path.join(self.folder, "stripped")
        subprocess.run(["strip", "-o", program, PROBED], check=True)
        event = f"uprobe:steps@{program}"
        self.assert_refused(event, 1, f"perfscope: {event}: {program} has no function steps (it is stripped: only exported "
                            "functions have names)")

    def test_a_function_of_a_library_is_looked_for_there(self):
        event = "uprobe:malloc@/bin/ls"
        self.assert_refused(event, 1, f"perfscope: {event}: /bin/ls calls malloc, but does not have it: name the library that "
                            "has, one of those that ldd lists")

    def test_another_user_is_told_what_it_needs(self):
        # The build may lie where only root comes, as below /root.
        command, probed = (shutil.copy(path, self.folder) for path in (COMMAND, PROBED))
        script = self.write("nothing.py", NOTHING)
        os.chmod(self.folder, 0o755)
        plain = f"uprobe:steps@{probed}"
        for event, reason in ((plain, "open uprobe:steps on cpu 0: permission denied ("),
                              (plain + " n=%di", plain + " n=%di: permission denied (a probe with arguments or a filter, or of a "
                               "process, stands in tracefs, which needs root)")):
            run = self.run_command("python", "-e", event, "-C", "0", script, command=command, user=65534, group=65534,
                                   extra_groups=[])
            self.assertEqual([run.status, len(run.errors)], [1, 1])
            self.assertTrue(run.errors[0].startswith("perfscope: " + reason), run.errors)

    def test_two_at_one_place_of_which_one_has_a_semaphore(self):
        # The first instruction of steps() is the place of tests:step.
        event = f"usdt:tests:step@{PROBED}"
        run = self.run_command(*self.script_arguments(NOTHING, [f"uprobe:steps@{PROBED}", event], [], ["--run", PROBED, 1]))
        self.assertEqual([run.status, run.errors], [1, [
            f"perfscope: {event}: the kernel refuses a probe there (of two at one place, both have a semaphore or none)"]])

    @unittest.skipIf(os.path.exists("/sys/bus/event_source/devices/kprobe") or
                     os.path.exists(os.path.join(TRACEFS, "kprobe_events")), "this kernel has kprobes")
    def test_a_kernel_without_kprobes_says_so(self):
        for event in "kprobe:vfs_read", "kretprobe:vfs_read ret=$retval":
            self.assert_refused(event, 1, f"perfscope: {event}: this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)")


class TestNothingStays(ProbeTestCase):
    event = f"uprobe:steps@{PROBED} n=%di:s32"

    def start(self):
        observer = self.start_script(SEEN, [self.event, f"usdt:tests:twice@{PROBED}"])
        self.assertEqual(len(probes_of(observer.pid)), 3)
        return observer

    def run_to_end(self, source, *options, args=()):
        """Run a script; the names of its probes that stay."""
        process = subprocess.Popen([os.path.join(BUILD, "perfscope"),
                                    *self.script_arguments(source, self.event, options, args)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.communicate(timeout=60)
        return probes_of(process.pid)

    def test_signals(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
            observer = self.start()
            status = observer.stop(number).status
            if number in (signal.SIGINT, signal.SIGTERM):
                self.assertEqual(status, 0)
            self.assertEqual(probes_of(observer.pid), [])

    def test_ends_of_the_program_and_of_the_script(self):
        self.assertEqual(self.run_to_end(NOTHING, args=["--run", PROBED, "3"]), [])
        self.assertEqual(self.run_to_end("import sys\ndef __init__(): sys.exit(3)\n"), [])
        self.assertEqual(self.run_to_end("def __init__(): 1/0\n", "--on-error=stop"), [])
        self.assertEqual(self.run_to_end("def __init__(): 1/0\n", args=["--run", PROBED, "1"]), [])
        self.assertEqual(self.run_to_end("import os\ndef __sample__(event): os.abort()\n", args=["--run", PROBED, "1"]), [])
        self.assertEqual(self.run_to_end("def __sample__(event): raise SystemExit(3)\n", args=["--run", PROBED, "1"]), [])
        self.assertEqual(self.run_to_end(NOTHING, args=["--run", "/nonexistent"]), [])
        self.assertEqual(self.run_to_end("this is no Python\n"), [])
        self.assertEqual(self.run_to_end(NOTHING, "--help"), [])
        self.assertEqual(self.run_to_end(NOTHING, "--user", "nobody", "--duration", "0.1"), [])

    def test_an_event_behind_it_that_is_refused(self):
        process = subprocess.Popen([os.path.join(BUILD, "perfscope"),
                                    *self.script_arguments(NOTHING, [self.event, "sched:nothing"], [], [])],
                                   stderr=subprocess.PIPE)
        process.communicate(timeout=60)
        self.assertEqual([process.returncode, probes_of(process.pid)], [1, []])

    def test_an_end_at_once(self):
        source = "import time\ndef __sample__(event):\n  while True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass\n"
        observer = self.start_script(source, self.event)
        subprocess.run([PROBED, "1"], check=True)
        time.sleep(0.5)
        observer.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertEqual(observer.stop().status, 1)
        self.assertEqual(probes_of(observer.pid), [])

    def test_what_belongs_to_who_runs_stays(self):
        with open(f"/proc/{os.getpid()}/stat", encoding="utf-8") as file:
            start = int(file.read().rpartition(")")[2].split()[19])
        ns = os.stat("/proc/self/ns/pid").st_ino
        groups = {f"perfscope_{os.getpid()}_{start}_{ns}": True,  # of this process
                  f"perfscope_{os.getpid()}_{start + 1}_{ns}": False,  # of an earlier one of this number
                  f"perfscope_{os.getpid()}_{start + 1}_{ns + 1}": True,  # of another namespace: it cannot be known
                  f"perfscopes_{os.getpid()}": True}
        for group in groups:
            write_events(f"p:{group}/e {PROBED}:{address_of('steps'):#x}\n")
            self.addCleanup(self.remove, group)
        self.run_to_end(NOTHING, args=["--run", PROBED, "1"])
        with open(EVENTS_FILE, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual({group: f":{group}/e" in text for group in groups}, groups)

    def remove(self, group):
        try:
            write_events(f"-:{group}/e\n")
        except FileNotFoundError:
            pass  # the sweep was here

    def test_runs_at_once_do_not_disturb_each_other(self):
        first, second = self.start(), self.start()
        subprocess.run([PROBED, str(N)], check=True)
        first = first.stop()
        subprocess.run([PROBED, str(N)], check=True)
        second = second.stop()
        for run, nr in (first, N), (second, 2 * N):
            self.assertEqual([run.status, run.stderr], [0, ""])
            self.assertEqual(json.loads(run.stdout)["values"],
                             {"uprobe:steps": nr, "usdt:tests:twice": nr, "usdt:tests:twice#2": nr})


class TestList(ProbeTestCase):
    def test_probes_of_a_file(self):
        run = self.run_command("list", f"usdt:*@{PROBED}")
        self.assertEqual([run.status, run.lines], [0, ["usdt probes"] + [
            f"  usdt:tests:{name}@{PROBED}" for name in ("guarded", "step", "twice")]])
        run = self.run_command("list", f"uprobe:*_function@{PROBED}")
        self.assertEqual([run.status, run.lines], [0, ["functions", f"  uprobe:probed_function@{PROBED}"]])

    def test_verbose_shows_the_arguments(self):
        run = self.run_command("list", "-v", f"usdt:tests:step@{PROBED}")
        self.assertEqual([run.status, run.lines[:5]], [0, [
            "usdt probes", f"  usdt:tests:step@{PROBED}", "      arg1                     s32",
            "      arg2                     u64", "      arg3                     u64"]])
        program = os.path.join(self.folder, "with-names")
        subprocess.run(["gcc", "-g", "-O0", "-o", program, os.path.join(os.path.dirname(os.path.abspath(__file__)), "probed.c")],
                       check=True)
        run = self.run_command("list", "-v", f"uprobe:probed_f*@{program}")
        self.assertEqual([run.status, run.lines], [0, [
            "functions", f"  uprobe:probed_function@{program}", "      n                        int",
            "      text                     const char *", "      high                     uint64_t"]])
        run = self.run_command("list", f"uprobe:ns::*@{program}")
        line = f"  uprobe:_ZN2ns1fEi@{program}"
        self.assertEqual([run.status, run.lines], [0, ["functions", line.ljust(50 if len(line) < 50 else len(line) + 2) + "ns::f(int)"]])

    def test_functions_of_the_kernel(self):
        run = self.run_command("list", "kprobe:vfs_rea?")
        if os.path.exists("/sys/bus/event_source/devices/kprobe"):
            self.assertEqual([run.status, run.lines], [0, ["functions of the kernel", "  kprobe:vfs_read"]])
        else:
            self.assertEqual([run.status, run.lines, run.errors], [1, [], [
                "perfscope: kprobe:vfs_rea?: this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)"]])

    def test_a_file_that_is_not_there_is_told_once(self):
        run = self.run_command("list", "uprobe:f@/nowhere")
        self.assertEqual([run.status, run.errors], [1, ["perfscope: uprobe:f@/nowhere: /nowhere: No such file or directory"]])

    def test_nothing_that_matches_is_an_error(self):
        run = self.run_command("list", f"usdt:none:*@{PROBED}")
        self.assertEqual([run.status, run.lines, run.errors], [1, [], [f"perfscope: usdt:none:*@{PROBED}: no event matches"]])
        load = os.path.join(BUILD, "tests", "load")
        run = self.run_command("list", f"usdt:*@{load}")
        self.assertEqual([run.status, run.lines, run.errors], [1, [], [f"perfscope: usdt:*@{load}: {load} has no usdt probes"]])


if __name__ == "__main__":
    unittest.main()
