# SPDX-License-Identifier: MIT
"""The scripts of the build: what they find wrong, and what they let pass."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.relpath(os.environ.get("PS_TEST_BUILD", os.path.join(ROOT, "build")), ROOT)
sys.path.insert(0, os.path.join(ROOT, "scripts", "build"))

import check_docs
import check_includes
import python_flags
import run_tests


class TreeTestCase(unittest.TestCase):
    def make_tree(self, files):
        folder = tempfile.TemporaryDirectory(prefix="perfscope-test-")
        self.addCleanup(folder.cleanup)
        for path, text in files.items():
            full = os.path.join(folder.name, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return folder.name


class TestIncludes(TreeTestCase):
    def check(self, **files):
        tree = self.make_tree({path.replace("__", "/").replace("_dot_", "."): text for path, text in files.items()})
        return [fault for _, _, fault in check_includes.check(tree)]

    def test_a_room_to_the_left_may_be_included(self):
        self.assertEqual(self.check(src__stream__merge_dot_c="#include <perfscope/sample.h>\n"), [])

    def test_a_room_to_the_right_may_not(self):
        self.assertEqual(self.check(src__event__pmu_dot_c="#include <perfscope/session.h>\n"),
                         ["includes perfscope/session.h: event does not stand to the right of stream"])

    def test_a_header_without_a_room_is_told(self):
        [fault] = self.check(src__event__pmu_dot_c="\n#include <perfscope/nobody.h>\n")
        self.assertTrue(fault.startswith("includes perfscope/nobody.h, which is of no room"), fault)

    def test_libraries_stay_in_their_rooms(self):
        self.assertEqual(self.check(src__event__format_dot_c="#include <traceevent/event-parse.h>\n",
                                    src__stream__session_open_dot_c="#include <internal/evsel.h>\n",
                                    src__script__interp_dot_c="#include <Python.h>\n"), [])
        self.assertEqual(self.check(src__event__schema_dot_c="#include <traceevent/event-parse.h>\n"),
                         ["uses libtraceevent, which belongs to src/event/format[^/]*\\.[ch]"])
        self.assertEqual(self.check(src__cli__main_dot_c="#include <Python.h>\n"),
                         ["uses Python, which belongs to src/(python|script)/.*|include/perfscope/python\\.h",
                          "reaches Python.h through its headers"])

    def test_cli_may_not_reach_python_through_a_header(self):
        faults = self.check(include__perfscope__python_dot_h="#include <Python.h>\n",
                            include__perfscope__dispatch_dot_h="#include <perfscope/python.h>\n",
                            src__cli__loop_dot_c="#include <perfscope/dispatch.h>\n")
        self.assertEqual(faults, ["reaches Python.h through its headers"])

    def test_stderr_in_code_counts_and_in_a_comment_does_not(self):
        self.assertEqual(self.check(src__task__a_dot_c="// not to stderr, ever\n", src__cli__b_dot_c="f(stderr);\n"), [])
        self.assertEqual(self.check(src__task__a_dot_c='fprintf(stderr, "x");\n'),
                         ["uses stderr, which belongs to src/base/log\\.c|src/cli/.*"])

    def test_a_fault_names_its_line(self):
        tree = self.make_tree({"src/base/log.c": "/* a\n b */\n#include <perfscope/spec.h>\n"})
        self.assertEqual([(path, line) for path, line, _ in check_includes.check(tree)], [("src/base/log.c", 3)])


class TestDocs(TreeTestCase):
    def check(self, text):
        tree = self.make_tree({"Makefile": "all: x\n", "scripts/build/a.mk": "check-docs:\n", "docs/a.md": "# One two\n",
                               "README.md": text})
        return [fault for _, fault in check_docs.check(tree)]

    def test_true_pages_have_no_fault(self):
        self.assertEqual(self.check("[a](docs/a.md#one-two) `make all` `make check-docs` `docs/a.md` [w](https://x.y)\n"), [])

    def test_links_goals_and_paths_are_followed(self):
        self.assertEqual(self.check("[a](docs/b.md)\n"), ["link to docs/b.md, which does not exist"])
        self.assertEqual(self.check("[a](docs/a.md#two)\n"), ["link to docs/a.md#two: no such heading"])
        self.assertEqual(self.check("```\nmake X=1 al\n```\n"), ["`make al`: no such goal"])
        self.assertEqual(self.check("in `src/gone.c`\n"), ["`src/gone.c` does not exist"])

    def test_prose_about_making_is_not_a_goal(self):
        self.assertEqual(self.check("They make haste.\n"), [])


class TestTally(unittest.TestCase):
    def test_tap_of_cmocka_is_counted_with_reasons(self):
        output = ("1..4\nok 1 - a: ok\nnot ok 2 - a: bad\n# 0x1 != 0x2\n# x.c:3: error: Failure!\n"
                  "# skip: no tracefs\nnot ok 3 # SKIP a: sk\nok 4 # SKIP b: sk\n# not ok - tests\n")
        outcome = run_tests.parse_tap(output)
        self.assertEqual(outcome["passed"], 1)
        self.assertEqual(outcome["failed"], [["a: bad", "0x1 != 0x2\nx.c:3: error: Failure!\n"]])
        self.assertEqual(outcome["skipped"], [["a: sk", "no tracefs"], ["b: sk", "no reason given"]])

    def test_a_program_that_hangs_is_killed_with_its_children(self):
        start = time.monotonic()
        status, output = run_tests.run(["sh", "-c", "echo begun; sleep 60 & wait"], 0.3)
        self.assertEqual((status, output), (None, "begun\n"))
        self.assertLess(time.monotonic() - start, 30)  # a child that lives holds the pipe open for 60 s
        self.assertEqual(run_tests.explain(status, 3), "killed after 3 s")

    def test_signals_that_came_ignored_are_as_a_terminal_gives_them(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_IGN))
        _, output = run_tests.run(["grep", "SigIgn", "/proc/self/status"], 10)
        ignored = int(output.split()[1], 16)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self.assertEqual(ignored >> (number - 1) & 1, 0)

    def test_a_crash_is_named_by_its_signal(self):
        status, _ = run_tests.run(["sh", "-c", "kill -KILL $$"], 10)
        self.assertEqual(run_tests.explain(status, 10), "ended by SIGKILL")


class TestInstall(TreeTestCase):
    def make(self, goal, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        run = subprocess.run(["make", goal, f"BUILD={BUILD}", f"DESTDIR={folder}", f"PYTHON={sys.executable}"],
                             cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
        self.assertEqual(run.returncode, 0, run.stderr)
        return {os.path.relpath(os.path.join(path, name), folder)
                for path, _, names in os.walk(folder) for name in names}

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "a build with flags of its own is not what make install takes")
    def test_what_is_installed_works_and_goes_again(self):
        folder = self.make_tree({})
        files = self.make("install", folder)
        [module] = [file for file in files if re.search(r"/perfscope\..*\.so$", file)]
        shipped = {os.path.join("usr/local/share/perfscope/scripts", name)
                   for name in os.listdir(os.path.join(ROOT, "scripts")) if name.endswith(".py")}
        stubs = {os.path.join(os.path.dirname(module), name)
                 for name in ("perfscope.pyi", "perfscope-stubs/__init__.pyi", "perfscope-stubs/perf_events.pyi")}
        self.assertEqual(files, shipped | stubs | {module, "usr/local/bin/perfscope", "usr/local/share/man/man1/perfscope.1",
                                                   "usr/local/include/perfscope/region.h",
                                                   "usr/local/lib/libperfscope-region.a",
                                                   "usr/local/lib/pkgconfig/perfscope-region.pc"})
        version = subprocess.run([os.path.join(folder, "usr/local/bin/perfscope"), "--version"], capture_output=True,
                                 text=True, check=True).stdout.split()[-1]
        imported = subprocess.run([sys.executable, "-c", "import perfscope; print(perfscope.__version__)"],
                                  env=dict(os.environ, PYTHONPATH=os.path.join(folder, os.path.dirname(module))),
                                  capture_output=True, text=True, check=True).stdout.strip()
        self.assertEqual(imported, version)
        self.assertEqual(self.build_with_regions(folder), "page-faults: 1 call\n" + version + "\n")
        self.assertEqual(self.make("uninstall", folder), set())

    def build_with_regions(self, folder):
        """What a C and a C++ program with a region say that knows only what is installed, and the library's version."""
        source = os.path.join(self.make_tree({"program.c": """
            #include <perfscope/region.h>
            int ps_error_format; // a name that the library has too
            int main(void)
            {
                struct perfscope_region_total totals;
                if (perfscope_region_configure("page-faults", PERFSCOPE_REGION_USER_ONLY))
                    return puts(perfscope_region_error());
                perfscope_region_begin("x");
                perfscope_region_end("x");
                perfscope_region_totals("x", &totals);
                printf("%s: %d call\\n", totals.values[0].name, (int)totals.calls);
                return 0;
            }"""}), "program.c")
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(folder, "usr/local/lib/pkgconfig"),
                           PKG_CONFIG_SYSROOT_DIR=folder)
        def pkg_config(option):
            return subprocess.run(["pkg-config", option, "perfscope-region"], env=environment, capture_output=True,
                                  text=True, check=True).stdout
        flags = (pkg_config("--cflags") + pkg_config("--libs")).split()
        outputs = set()
        for compiler in (["gcc", "-x", "c", "-flto", "-O2"], ["g++", "-x", "c++"], ["gcc", "-x", "c", "-fPIE", "-pie"]):
            program = source + ".out"
            subprocess.run([*compiler, source, "-x", "none", "-o", program, *flags], check=True)
            outputs.add(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
        [output] = outputs
        return output + pkg_config("--modversion")


class TestRegionHeader(TreeTestCase):
    WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror")
    PROGRAM = """
        #include <perfscope/region.h>
        int main(void)
        {
            PERFSCOPE_REGION("outer");
            {
                PERFSCOPE_REGION("inner");
            }
            TOTAL total;
            return perfscope_region_totals("outer", &total);
        }"""

    def compile(self, program, *compiler):
        source = os.path.join(self.make_tree({"program": program}), "program")
        run = subprocess.run([*compiler, *self.WARNINGS, "-fsyntax-only", "-I", os.path.join(ROOT, "include"), source],
                             capture_output=True, text=True)
        self.assertEqual([run.stderr, run.returncode], ["", 0])

    def test_it_is_c_without_a_warning(self):
        for standard in ("c99", "c11", "gnu17"):
            with self.subTest(standard):
                self.compile(self.PROGRAM.replace("TOTAL", "struct perfscope_region_total"), "gcc", "-x", "c", "-std=" + standard)

    def test_it_is_cpp_without_a_warning_and_its_types_need_no_struct(self):
        for standard in ("c++11", "c++17", "c++20"):
            with self.subTest(standard):
                self.compile(self.PROGRAM.replace("TOTAL", "perfscope_region_total"), "g++", "-x", "c++", "-std=" + standard,
                             "-Wold-style-cast")


class TestDoors(TreeTestCase):
    def test_the_make_behind_a_door_shares_its_jobs(self):
        build = os.path.join(self.make_tree({}), "build")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        run = subprocess.run(["make", "-n", "demo", f"BUILD={build}", f"PYTHON={sys.executable}"], cwd=ROOT,
                             env=environment, capture_output=True, text=True, timeout=60)
        # make follows a recipe with -n, as it lends it its jobs: only where it knows that a make is behind it.
        self.assertIn(f"-o {build}/perfscope ", run.stdout)
        self.assertNotIn("jobserver", run.stderr)


class TestPythonFlags(unittest.TestCase):
    def site(self, prefix, *folders, is_default=False):
        with mock.patch("site.getsitepackages", return_value=list(folders)):
            return python_flags.site_folder(prefix, is_default)

    def test_modules_go_where_this_python_looks_below_the_prefix(self):
        debian = ["/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages"]
        self.assertEqual(self.site("/usr/local", *debian), debian[0])
        self.assertEqual(self.site("/usr", *debian), debian[1])

    def test_below_another_prefix_they_go_to_its_site_packages(self):
        version = "python%d.%d" % sys.version_info[:2]
        self.assertEqual(self.site("/opt/x", "/usr/lib/python3/dist-packages"), f"/opt/x/lib/{version}/site-packages")

    def test_where_nobody_chose_a_prefix_they_go_into_a_python_that_is_no_distribution_s(self):
        own = sysconfig.get_path("platlib")
        with mock.patch("sys.prefix", "/opt/python"):
            self.assertEqual(self.site("/usr/local", "/opt/python/lib/x", is_default=True), own)
        version = "python%d.%d" % sys.version_info[:2]
        with mock.patch("sys.prefix", "/usr"):
            self.assertEqual(self.site("/usr/local", "/usr/lib/x", is_default=True), f"/usr/local/lib/{version}/site-packages")

    def refusal(self):
        with self.assertRaises(SystemExit) as raised:
            python_flags.check_kind()
        return str(raised.exception)

    def test_other_pythons_are_refused_in_a_sentence(self):
        python_flags.check_kind()
        for version in ((3, 8), (3, 14)):
            with mock.patch("sys.version_info", version), mock.patch("sysconfig.get_python_version", return_value="3.%d" % version[1]):
                self.assertEqual(self.refusal(), f"perfscope: {sys.executable} is CPython 3.{version[1]}; "
                                                 "perfscope is for CPython 3.9 to 3.13")
        variables = {**sysconfig.get_config_vars(), "Py_GIL_DISABLED": 1}
        with mock.patch("sysconfig.get_config_var", variables.get):
            self.assertEqual(self.refusal(), f"perfscope: {sys.executable} is built without the GIL (free-threaded), on which "
                                             "perfscope relies; perfscope is for CPython 3.9 to 3.13 with it")

    def test_the_module_does_not_compile_without_the_gil(self):
        run = subprocess.run(["gcc", "-DPy_GIL_DISABLED", "-fsyntax-only", *python_flags.cflags().split(), "-Iinclude", "-x", "c",
                              "include/perfscope/python_types.h"], cwd=ROOT, capture_output=True, text=True)
        self.assertIn('#error "perfscope relies on the GIL, which this Python is built without"', run.stderr)

    def test_all_flags_are_one_word_each(self):
        script = os.path.join(ROOT, "scripts", "build", "python_flags.py")
        words = subprocess.run([sys.executable, script, "--prefix", "/p", "make"], capture_output=True, text=True,
                               check=True).stdout.split()
        names = [word.partition("=")[0] for word in words]
        self.assertEqual(sorted(set(names)), sorted(names))
        self.assertLessEqual({"cflags", "libs", "executable", "suffix", "site"}, set(names))


if __name__ == "__main__":
    unittest.main()
