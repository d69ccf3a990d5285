# SPDX-License-Identifier: MIT
"""Names of functions in programs of all kinds: each frame is what was written."""

import glob
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

from livetest import LiveTestCase, skip_unless_root, skip_unless_tracepoints

FOLDER = os.path.dirname(os.path.abspath(__file__))
GETPPID = "syscalls:sys_enter_getppid"
KEEP_FRAMES = ("-g", "-fno-omit-frame-pointer")
OPTIMISED = ("-g", "-O2", "-fomit-frame-pointer")
DEPTH = ["inner", "step", "middle", "outer", "main"]

SHOW_STACKS = """
import collections, json, os, time
stacks = collections.Counter()
def __sample__(event):
    stacks[tuple((frame["symbol"], os.path.basename(frame["dso"] or ""), frame.get("line")) for frame in event._callchain)] += 1
def __exit__():
    print(json.dumps([[list(map(list, stack)), nr] for stack, nr in stacks.items()]))
"""

# As the others, once the program has ended.
SHOW_STACKS_LATE = SHOW_STACKS.replace("(event):\n", "(event):\n    stacks or time.sleep(0.5)\n")


def find_python_that_tells_perf():
    """A Python that writes a perf map with -X perf, as all from 3.12 on; None where there is none."""
    root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False).stdout.strip() if shutil.which("pyenv") else ""
    versions = glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3")) if root else []
    for name in "python3", "python3.12", "python3.13", "python3.14", *sorted(versions):
        # It may be a script that chooses one: that tells which.
        told = subprocess.run([name, "-X", "perf", "-c", "import sys; sys.is_stack_trampoline_active() and print(sys.executable)"],
                              capture_output=True, text=True, check=False) if shutil.which(name) else None
        if told and not told.returncode and told.stdout.strip():
            return told.stdout.strip()
    return None


class NamesTestCase(LiveTestCase):
    def build(self, source, name, *flags, compiler="gcc"):
        """Compile a source of this folder into that of the test; its path."""
        program = os.path.join(self.folder, name)
        # Rust keeps its older mangling for nightly compilers, and for those that this makes one.
        subprocess.run([compiler, *flags, "-o", program, os.path.join(FOLDER, source)], check=True,
                       env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
        return program

    def observe(self, *command, options=("-g",), script=SHOW_STACKS):
        """The stacks of @command as [[symbol, file, line], ...], each with how often it came."""
        run = self.run_command("python", *options, "-e", GETPPID, "--inherit", self.write("script.py", script), "--run",
                               *command)
        self.assertEqual([run.status, run.errors], [0, []])
        return run.json[0]

    def names(self, stacks, last="main"):
        """[[symbol, ...] up to @last, times] of each kind of stack with it."""
        found = {}
        for stack, nr in stacks:
            symbols = [symbol for symbol, _, _ in stack]
            if last in symbols:
                key = tuple(symbols[:symbols.index(last) + 1])
                found[key] = found.get(key, 0) + nr
        return [[list(key), nr] for key, nr in found.items()]

    def strip(self, program, *flags):
        """Strip @program; its debug info is then in the file that is returned."""
        subprocess.run(["objcopy", "--only-keep-debug", program, program + ".debug"], check=True)
        subprocess.run(["strip", program], check=True)
        return program + ".debug"


@skip_unless_tracepoints
class TestPrograms(NamesTestCase):
    def test_programs_of_all_places(self):
        for flags in ["-pie", "-fPIE"], ["-no-pie", "-fno-PIE"], ["-static"], ["-static-pie", "-fPIE"]:
            with self.subTest(flags):
                program = self.build("stack_depth.c", "program", *KEEP_FRAMES, *flags)
                self.assertEqual(self.names(self.observe(program, 50)), [[DEPTH, 50]])
                program = self.build("stack_depth.c", "program", *OPTIMISED, *flags)
                self.assertEqual(self.names(self.observe(program, 50, options=["--call-graph=dwarf"])), [[DEPTH, 50]])

    def test_a_function_that_went_on_into_another_is_not_on_the_stack(self):
        source = self.write("tail.c", f'''
#include "{FOLDER}/getppid.h"
#define APART __attribute__((noipa))
APART long inner(long n) {{ long result; GETPPID(result); return result + n; }}
APART long goes_on(long n) {{ return inner(n + 1); }}
APART long outer(long n) {{ return goes_on(n) + 1; }}
int main(void) {{ return outer(1) == 42; }}
''')
        program = self.build(source, "tail", *OPTIMISED)
        self.assertEqual(self.names(self.observe(program, options=["--call-graph=dwarf"])),
                         [[["inner", "outer", "main"], 1]])

    def test_cxx(self):
        expected = ["(anonymous namespace)::inner(long)",
                    "space::box<long>::get(long) const::{lambda(long)#1}::operator()(long) const",
                    "space::box<long>::get(long) const", "space::box<long>::operator+(int) const",
                    "space::overloaded(int)", "space::overloaded(char const*)", "main"]
        program = self.build("names.cc", "names", *KEEP_FRAMES, compiler="g++")
        self.assertEqual(self.names(self.observe(program, 50)), [[expected, 50]])
        program = self.build("names.cc", "names", *OPTIMISED, compiler="g++")
        self.assertEqual(self.names(self.observe(program, 50, options=["--call-graph=dwarf"])), [[expected, 50]])

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("needs rustc")
        for mangling, generic in ("legacy", "names::generic"), ("v0", "names::generic::<names::deep::Thing>"):
            with self.subTest(mangling):
                program = self.build("names.rs", "names", "-g", "-Copt-level=2", "-Cforce-frame-pointers=yes",
                                     "-Csymbol-mangling-version=" + mangling,
                                     *(["-Zunstable-options"] if mangling == "legacy" else []), compiler="rustc")
                expected = ["names::inner", "<names::deep::Thing as names::deep::Work>::work", generic, "names::main"]
                for option in "-g", "--call-graph=dwarf":
                    self.assertEqual(self.names(self.observe(program, 50, options=[option]), "names::main"),
                                     [[expected, 50]])

    def test_a_library_that_was_opened(self):
        for flags, option in (KEEP_FRAMES, "-g"), (OPTIMISED, "--call-graph=dwarf"):
            library = self.build("names_library.c", "library.so", *flags, "-shared", "-fPIC")
            program = self.build("names_library.c", "program", *flags, "-DPROGRAM")
            [[stack, nr]] = self.observe(program, library, 50, options=[option])
            self.assertEqual([[symbol, file] for symbol, file, _ in stack[:4]],
                             [["callback", "program"], ["library_inner", "library.so"], ["library_call", "library.so"],
                              ["main", "program"]])
            self.assertEqual(nr, 50)

    def test_a_library_that_was_written_over_gives_no_names(self):
        library = self.build("names_library.c", "library.so", *KEEP_FRAMES, "-shared", "-fPIC")
        program = self.build("names_library.c", "program", *KEEP_FRAMES, "-DPROGRAM")
        other = self.build("stack_depth.c", "other", *KEEP_FRAMES)
        write_over = f"(event):\n    if not stacks:\n        time.sleep(0.5)\n        __import__('shutil').copyfile({other!r}, {library!r})\n"
        [[stack, _]] = self.observe(program, library, script=SHOW_STACKS.replace("(event):\n", write_over))
        self.assertEqual([[symbol, file] for symbol, file, _ in stack[:4]],
                         [["callback", "program"], [None, "library.so [deleted]"], [None, "library.so [deleted]"],
                          ["main", "program"]])

    def assert_whole(self, program):
        for option in "-g", "--call-graph=dwarf":
            [[stack, nr]] = self.observe(program, 50, options=[option])
            self.assertEqual([[symbol for symbol, _, _ in stack[:5]], nr], [DEPTH, 50])
            self.assertEqual({line.split(":")[0] for _, _, line in stack[:5]}, {"stack_depth.c"})

    def test_a_debug_file_by_debuglink(self):
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES, "-Wl,--build-id=none")
        debug = self.strip(program)
        self.assertEqual(self.names(self.observe(program, 1)), [])
        subprocess.run(["objcopy", "--add-gnu-debuglink=" + debug, program], check=True)
        os.mkdir(os.path.join(self.folder, ".debug"))
        os.rename(debug, os.path.join(self.folder, ".debug", os.path.basename(debug)))
        self.assert_whole(program)

    @skip_unless_root
    def test_a_debug_file_by_build_id(self):
        # A folder that nobody else's program has.
        folder = "/usr/lib/debug/.build-id/5c"
        name = os.urandom(19).hex()
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES, "-Wl,--build-id=0x5c" + name)
        debug = self.strip(program)
        self.assertEqual(self.names(self.observe(program, 1)), [])
        os.makedirs(folder, exist_ok=True)
        self.addCleanup(subprocess.run, ["rmdir", "-p", "--ignore-fail-on-non-empty", folder], check=False)
        self.addCleanup(os.unlink, os.path.join(folder, name + ".debug"))
        shutil.copy(debug, os.path.join(folder, name + ".debug"))
        self.assert_whole(program)


class DebugServer(http.server.BaseHTTPRequestHandler):
    """Has the file of one build-id; remembers what it was asked for."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.is_slow:
            self.server.end.wait(60)
            return
        is_known = self.path == self.server.known
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(self.server.content) if is_known else 0))
        self.end_headers()
        if is_known:
            self.wfile.write(self.server.content)

    def log_message(self, *_):
        pass


@skip_unless_tracepoints
class TestDebuginfod(NamesTestCase):
    def setUp(self):
        super().setUp()
        build_id = os.urandom(20).hex()
        self.program = self.build("stack_depth.c", "program", *KEEP_FRAMES, "-Wl,--build-id=0x" + build_id)
        debug = self.strip(self.program)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DebugServer)
        self.server.asked, self.server.is_slow, self.server.end = [], False, threading.Event()
        self.server.known = f"/buildid/{build_id}/debuginfo"
        with open(debug, "rb") as file:
            self.server.content = file.read()
        os.unlink(debug)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.end.set)
        variables = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{self.server.server_port}",
                     "DEBUGINFOD_CACHE_PATH": os.path.join(self.folder, "cache"), "no_proxy": "*"}
        patch = unittest.mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_nothing_goes_to_the_network_unless_told(self):
        for option in "-g", "--call-graph=dwarf":
            [[stack, nr]] = self.observe(self.program, 50, options=[option])
            self.assertEqual([stack[:4], nr], [[[None, "program", None]] * 4, 50])
        self.assertEqual(self.server.asked, [])

    def test_a_debug_file_is_fetched_when_told(self):
        for option in "-g", "--call-graph=dwarf":
            [[stack, nr]] = self.observe(self.program, 50, options=[option, "--debuginfod"])
            self.assertEqual([[symbol for symbol, _, _ in stack[:5]], nr], [DEPTH, 50])
            self.assertEqual({line.split(":")[0] for _, _, line in stack[:5]}, {"stack_depth.c"})
        # The second time it was in the cache.
        self.assertEqual(self.server.asked.count(self.server.known), 1)

    def test_a_stop_ends_a_fetch(self):
        self.server.is_slow = True
        observer = self.start_script(SHOW_STACKS, GETPPID, "-g", "--debuginfod")
        subprocess.run([self.program], check=False)
        while self.server.known not in self.server.asked:
            time.sleep(0.01)
        start = time.monotonic()
        run = observer.stop()
        self.assertLess(time.monotonic() - start, 10)  # the server answers after a minute
        self.assertEqual([run.status, len(run.json)], [0, 1])

    def test_no_server(self):
        del os.environ["DEBUGINFOD_URLS"]
        run = self.run_command("python", "-g", "--debuginfod", "-e", GETPPID, self.write("script.py", SHOW_STACKS))
        self.assertEqual([run.status, run.errors],
                         [2, ["perfscope: --debuginfod: no server is named; set DEBUGINFOD_URLS, as to "
                              "https://debuginfod.debian.net"]])


@skip_unless_root
@skip_unless_tracepoints
class TestElsewhere(NamesTestCase):
    def test_a_program_in_memory_alone(self):
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES)
        start = ("import os, sys\nfd = os.memfd_create('in-memory', 0)\nos.write(fd, open(sys.argv[1], 'rb').read())\n"
                 "os.execve(fd, sys.argv[1:], {})\n")
        [[stack, nr]] = self.observe(sys.executable, "-c", start, program, 50, 800)
        self.assertEqual([[[symbol, file] for symbol, file, _ in stack[:5]], nr],
                         [[[name, "memfd:in-memory"] for name in DEPTH], 50])

    def test_a_program_in_another_mount_namespace(self):
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES)
        inside = os.path.join(self.folder, "inside")
        os.mkdir(inside)
        for case, script in ("lives", "50 800"), ("has ended", "50; sleep 0.8"):
            with self.subTest(case):
                stacks = self.observe("unshare", "-m", "sh", "-c",
                                      f"mount -t tmpfs none {inside} && cp {program} {inside}/only-here && "
                                      f"{inside}/only-here {script}; true")
                self.assertEqual(self.names(stacks), [[DEPTH, 50]])
                self.assertEqual(os.listdir(inside), [])

    def test_a_program_in_another_root(self):
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES, "-static")
        self.assertEqual(self.names(self.observe("chroot", self.folder, "/program", 50, 800)), [[DEPTH, 50]])
        shutil.copy("/bin/true", program)
        os.chmod(program, 0o755)

    def observe_replaced(self, milliseconds, script, replace):
        program = self.build("stack_depth.c", "program", *KEEP_FRAMES)
        other = self.build("names.cc", "other", *KEEP_FRAMES, compiler="g++")
        load = self.hold_load(command=[program, "50", str(milliseconds), "wait"])
        replace(other, program)
        observer = self.start_script(script, GETPPID, "-g", "-p", load.pid)
        load.finish()
        return observer.wait().json[0]

    def test_a_program_that_was_replaced_is_read_as_long_as_it_runs(self):
        for replace in os.rename, lambda other, program: os.unlink(program):
            self.assertEqual(self.names(self.observe_replaced(800, SHOW_STACKS, replace)), [[DEPTH, 50]])

    def test_a_program_that_was_replaced_and_has_ended_has_no_names(self):
        for replace in os.rename, lambda other, program: os.unlink(program):
            [[stack, nr]] = self.observe_replaced(0, SHOW_STACKS_LATE, replace)
            self.assertEqual([stack[:4], nr], [[[None, "program [deleted]", None]] * 4, 50])


@skip_unless_tracepoints
class TestMadeAtRunTime(NamesTestCase):
    EXPECTED = [[["callback", name, "call", "main"], 1] for name in ("first", "second", "beside it")]

    def test_names_that_come_while_it_runs_and_in_a_child(self):
        program = self.build("names_jit.c", "names_jit", *KEEP_FRAMES)
        self.assertEqual(self.names(self.observe(program)), self.EXPECTED)
        in_both = [[names, 2 if "beside it" in names else 1] for names, _ in self.EXPECTED]
        self.assertEqual(self.names(self.observe(program, "fork")), in_both)

    @skip_unless_root
    def test_in_another_pid_namespace(self):
        program = self.build("names_jit.c", "names_jit", *KEEP_FRAMES)
        self.assertEqual(self.names(self.observe("unshare", "-p", "-f", "sh", "-c", f"{program}; true")), self.EXPECTED)

    def test_python(self):
        python = find_python_that_tells_perf()
        if not python:
            self.skipTest("no Python from 3.12 on, for -X perf")
        pid = os.path.join(self.folder, "pid")
        script = self.write("traced.py", f"import os\nopen({pid!r}, 'w').write(str(os.getpid()))\n"
                                         "def inner():\n    os.getppid()\ndef outer():\n    inner()\n"
                                         "outer()\n")
        [[stack, _]] = self.observe(python, "-X", "perf", script, options=["--call-graph=dwarf"])
        with open(pid, encoding="ascii") as file:
            os.unlink(f"/tmp/perf-{file.read()}.map")
        names = [symbol for symbol, file, _ in stack if file == "[perf map]"]
        # A Python that keeps no frame pointers hides the callers behind its trampoline.
        self.assertGreater(len(names), 0)
        self.assertEqual(names, [f"py::{name}:{script}" for name in ("inner", "outer", "<module>")][:len(names)])


if __name__ == "__main__":
    unittest.main()
