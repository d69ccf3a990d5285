# SPDX-License-Identifier: MIT
"""Forms of SCRIPT, how a script is imported, and what is said when it cannot be."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import unittest

from scripttest import DRIVER, ScriptTestCase

SHOW = "print(__name__, __file__)\ndef __exit__(): pass\n"
BOUND = ["__exit__ 0", "sched__sched_switch: none"]


LIBC = ctypes.CDLL(None)
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def obey_file_modes():
    """Take from root what lets it read any file; others have nothing to lose."""
    LIBC.prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
    LIBC.prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH)


def ignore_sigint():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class TestForms(ScriptTestCase):
    def assert_loads(self, script, shown, **options):
        run = self.bind(script, **options)
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, [shown, *BOUND])
        self.assertEqual(run.status, 0)

    def test_path(self):
        self.write("x.py", SHOW)
        self.assert_loads("x.py", "x ./x.py")
        self.assert_loads("./x.py", "x ./x.py")
        self.assert_loads(self.path("x.py"), "x ./x.py")

    def test_path_in_a_folder(self):
        self.write("a/x.py", SHOW)
        self.assert_loads("a/x.py", "x ./a/x.py")

    def test_path_without_suffix(self):
        self.write("tool", SHOW)
        self.assert_loads("tool", "tool ./tool")

    def test_name_with_dots_and_other_characters(self):
        self.write("a.b-c.py", SHOW)
        self.assert_loads("a.b-c.py", "a_b_c ./a.b-c.py")

    def test_name_that_is_a_digit_or_a_keyword(self):
        self.write("1.py", SHOW)
        self.assert_loads("1.py", "_1 ./1.py")
        self.write("class.py", SHOW)
        self.assert_loads("class.py", "class_ ./class.py")

    def test_name_that_is_not_utf8(self):
        path = os.fsencode(self.folder) + b"/\xff.py"
        with open(path, "w", encoding="ascii") as file:
            file.write("print(ascii(__name__))\ndef __exit__(): pass\n")
        self.assert_loads(path, r"'\udcff'")

    def test_shebang_byte_order_mark_and_encoding(self):
        self.write("x.py", b"\xef\xbb\xbf#!/usr/bin/env -S perfscope python\n" + SHOW.encode())
        self.assert_loads("x.py", "x ./x.py")
        self.write("y.py", b"# -*- coding: latin-1 -*-\nassert '\xe9' == chr(0xe9)\n" + SHOW.encode())
        self.assert_loads("y.py", "y ./y.py")

    def test_pipe(self):
        run = self.bind("/dev/stdin", stdin=None, input=SHOW.encode())
        self.assertEqual(run.lines, ["stdin /dev/stdin", *BOUND])

    def test_module_of_the_current_folder(self):
        self.write("x.py", SHOW)
        self.assert_loads("x", "x ./x.py")

    def test_module_in_a_package(self):
        self.write("a/__init__.py", "")
        self.write("a/b.py", SHOW)
        self.assert_loads("a.b", "a.b ./a/b.py")
        self.write("a/__init__.py", SHOW)
        self.assert_loads("a", "a ./a/__init__.py")

    def test_module_of_pythonpath(self):
        self.write("lib/x.py", SHOW)
        self.assert_loads("x", "x ./lib/x.py", env={"PYTHONPATH": self.path("lib")})

    def test_shipped_script(self):
        self.write("shipped/x.py", SHOW)
        self.assert_loads("x", "x ./shipped/x.py", env={"PERFSCOPE_SCRIPTS": self.path("shipped")})

    def test_shipped_scripts_lie_beside_the_command(self):
        command = self.path("bin/command")
        os.mkdir(self.path("bin"))
        shutil.copy(DRIVER, command)
        self.write("scripts/x.py", SHOW)
        self.assert_loads("x", "x ./scripts/x.py", command=command)
        self.write("share/perfscope/scripts/x.py", SHOW)
        self.assert_loads("x", "x ./share/perfscope/scripts/x.py", command=command)

    def test_own_module_goes_before_a_shipped_script(self):
        self.write("shipped/x.py", "raise AssertionError")
        self.write("x.py", SHOW)
        self.assert_loads("x", "x ./x.py", env={"PERFSCOPE_SCRIPTS": self.path("shipped")})

    def test_shipped_script_goes_before_a_folder_of_its_name(self):
        self.write("shipped/x.py", SHOW)
        os.mkdir(self.path("x"))
        self.assert_loads("x", "x ./shipped/x.py", env={"PERFSCOPE_SCRIPTS": self.path("shipped")})

    def test_name_of_a_module_that_python_has_loaded(self):
        self.write("os.py", "import os\nprint(os.sep)\n" + SHOW)
        run = self.bind("os.py")
        self.assertEqual(run.lines, ["/", "os_ ./os.py", *BOUND])

    def test_name_of_a_builtin_module_not_loaded_yet(self):
        self.write("faulthandler.py", "import faulthandler\nprint(faulthandler.__name__)\n" + SHOW)
        run = self.bind("faulthandler.py")
        self.assertEqual(run.lines, ["faulthandler", "faulthandler_ ./faulthandler.py", *BOUND])

    def test_script_called_perfscope(self):
        self.write("perfscope.py", "import perfscope\nprint(hasattr(perfscope, 'PerfEvent'))\n" + SHOW)
        run = self.bind("perfscope.py")
        self.assertEqual(run.lines, ["True", "perfscope_ ./perfscope.py", *BOUND])


class TestExtension(ScriptTestCase):
    SOURCE = """
        #define PY_SSIZE_T_CLEAN
        #include <Python.h>
        static PyObject *nothing(PyObject *self, PyObject *unused) { Py_RETURN_NONE; }
        static PyObject *print_it(PyObject *self, PyObject *event)
        {
            PySys_WriteStdout("event\\n");
            Py_RETURN_NONE;
        }
        static PyMethodDef methods[] = {
            { "sched__sched_switch", print_it, METH_O, NULL },
            { "__exit__", nothing, METH_NOARGS, NULL },
            { NULL, NULL, 0, NULL } };
        static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "native", NULL, -1, methods };
        PyMODINIT_FUNC PyInit_native(void)
        {
            if (getenv("FAIL")) {
                PyErr_SetString(PyExc_ValueError, "no luck");
                return NULL;
            }
            return PyModule_Create(&module);
        }
        """

    def compile(self, source, output):
        include = sysconfig.get_path("include")
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", "-o", self.path(output), source], check=True,
                       capture_output=True)

    def setUp(self):
        super().setUp()
        self.compile(self.write("native.c", self.SOURCE), "native.so")

    def test_extension_module(self):
        run = self.bind("native.so")
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, ["__exit__ 0", "sched__sched_switch: own"])
        self.assertEqual(self.call("native.so").lines, ["event"])

    def test_name_up_to_the_first_dot(self):
        name = "native" + sysconfig.get_config_var("EXT_SUFFIX")
        os.rename(self.path("native.so"), self.path(name))
        self.assertEqual(self.bind(name).lines, ["__exit__ 0", "sched__sched_switch: own"])

    def test_extension_module_by_name(self):
        os.rename(self.path("native.so"), self.path("native" + sysconfig.get_config_var("EXT_SUFFIX")))
        self.assertEqual(self.bind("native").lines, ["__exit__ 0", "sched__sched_switch: own"])

    def test_exception_in_its_init(self):
        run = self.bind("native.so", env={"FAIL": "1"})
        self.assertEqual(run.errors, ["perfscope: script native.so raised ValueError: no luck", "ValueError: no luck"])
        self.assertEqual(run.status, 1)

    def test_other_name_than_its_init(self):
        os.rename(self.path("native.so"), self.path("other.so"))
        run = self.bind("other.so")
        self.assertEqual(run.errors[0], "perfscope: script other.so raised ImportError: dynamic module does not "
                                        "define module export function (PyInit_other)")

    @unittest.skipUnless(shutil.which("cython3") or shutil.which("cython"), "there is no Cython")
    def test_cython_module(self):
        self.write("quick.pyx", """
            def __interval__(totals): pass
            def __lost__(start, end, lost): pass
            def sched__sched_switch(event):
                print("event", __name__)
            """)
        cython = shutil.which("cython3") or shutil.which("cython")
        subprocess.run([cython, "-3", "quick.pyx"], cwd=self.folder, check=True, capture_output=True)
        try:
            self.compile(self.path("quick.c"), "quick.so")
        except subprocess.CalledProcessError:
            self.skipTest("this Cython is too old for this Python")
        run = self.bind("quick.so")
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, ["__interval__ 1", "__lost__ 3", "sched__sched_switch: own"])
        self.assertEqual(self.call("quick.so").lines, ["event quick"])


class TestFailures(ScriptTestCase):
    def assert_fails(self, script, *errors, **options):
        run = self.bind(script, **options)
        # Newer Pythons mark the part of a line that raised.
        told = [line for line in run.errors if line.strip(" ~^") or "SyntaxError" in run.stderr]
        self.assertEqual(told, [f"perfscope: {errors[0]}", *errors[1:]])
        self.assertEqual(run.lines, [])
        self.assertEqual(run.status, 1)

    def test_missing_file(self):
        self.assert_fails("x.py", "script x.py: no such file")
        self.assert_fails("a/x", "script a/x: no such file")
        self.write("count.py", "")
        self.assert_fails("cuont.py", "script cuont.py: no such file; did you mean count.py?")

    def test_missing_module(self):
        self.assert_fails("nosuch", "script nosuch: no such file, module or shipped script")
        self.assert_fails("json.nosuch", "script json.nosuch: no such file, module or shipped script")

    def test_folder(self):
        os.mkdir(self.path("a"))
        self.assert_fails("a", "script a: is a folder; name a file in it")
        self.assert_fails("a/", "script a/: is a folder; name a file in it")

    def test_unreadable_file(self):
        os.chmod(self.write("x.py", SHOW), 0)
        self.assert_fails("x.py", "script ./x.py: Permission denied", preexec_fn=obey_file_modes)

    def test_empty_script(self):
        self.write("x.py", "")
        self.assert_fails("x.py", "script x.py: defines nothing to call; it may define sched__sched_switch(event), "
                                  "__init__, __exit__, __interval__, __lost__, __print_stat__, __sample__ "
                                  "(-h prints a template; -i MS shows tables without any)")

    def test_many_handlers_are_not_all_named(self):
        self.write("x.py", "")
        run = self.bind("x.py", handlers="a,b,c,d,e")
        self.assertIn("it may define a(event), b(event), c(event), ... (2 more), __init__, ", run.stderr)

    def test_handlers_of_what_only_counts_are_not_named(self):
        self.write("x.py", "")
        run = self.bind("x.py", handlers="-a,b")
        self.assertIn("it may define b(event), __init__, ", run.stderr)

    def test_syntax_error(self):
        self.write("x.py", "a = 1\nb = = 2\n")
        self.assert_fails("x.py", "script x.py raised SyntaxError: invalid syntax (x.py, line 2)",
                          '  File "./x.py", line 2', "    b = = 2", "        ^", "SyntaxError: invalid syntax")

    def test_binary_file(self):
        self.write("x.py", b"\0\1\2")
        run = self.bind("x.py")
        self.assertRegex(run.errors[0], "^perfscope: script x.py raised (ValueError|SyntaxError): source code "
                                        "(string )?cannot contain null bytes")
        self.assertEqual(run.status, 1)

    def test_exception_shows_the_script_alone(self):
        self.write("x.py", "def f():\n    raise KeyError('k')\nf()\n")
        self.assert_fails("x.py", "script x.py raised KeyError: 'k'", "Traceback (most recent call last):",
                          '  File "./x.py", line 3, in <module>', "    f()",
                          '  File "./x.py", line 2, in f', "    raise KeyError('k')", "KeyError: 'k'")

    def test_missing_import(self):
        self.write("x.py", "import nosuch\n")
        self.assert_fails("x.py", "script x.py raised ModuleNotFoundError: No module named 'nosuch'",
                          "Traceback (most recent call last):", '  File "./x.py", line 1, in <module>',
                          "    import nosuch", "ModuleNotFoundError: No module named 'nosuch'")
        self.assert_fails("x", "script x raised ModuleNotFoundError: No module named 'nosuch'",
                          "Traceback (most recent call last):", '  File "./x.py", line 1, in <module>',
                          "    import nosuch", "ModuleNotFoundError: No module named 'nosuch'")

    def test_missing_import_whose_name_begins_as_the_script(self):
        self.write("xy.py", "import x\n")
        self.assertEqual(self.bind("xy").errors[0], "perfscope: script xy raised ModuleNotFoundError: "
                                                    "No module named 'x'")

    def test_module_that_replaces_itself(self):
        self.write("x.py", "import sys\nsys.modules['x'] = 5\n")
        self.assert_fails("x", "script x: put a int in place of its module")

    def test_system_exit(self):
        for code, status, errors in (("", 0, []), ("3", 3, []), ("None", 0, []), ("-1", 255, []), ("True", 1, []),
                                     ("'bye'", 1, ["bye"]), ("2**70", 255, [])):
            self.write("x.py", f"import sys\nsys.exit({code})\n")
            run = self.bind("x.py")
            self.assertEqual((run.status, run.errors, run.lines), (status, errors, []), code)

    def test_keyboard_interrupt(self):
        self.write("x.py", "raise KeyboardInterrupt\n")
        run = self.bind("x.py")
        self.assertEqual((run.status, run.errors, run.lines), (0, [], []))


class TestModule(ScriptTestCase):
    def test_arguments_are_those_of_the_command_line(self):
        self.write("x.py", "import sys\nprint(sys.argv)\ndef __exit__(): pass\n")
        run = self.bind("x.py", "-a", "--", "b c")
        self.assertEqual(run.lines[0], "['x.py', '-a', '--', 'b c']")

    def test_folder_of_the_script_is_searched_first(self):
        self.write("a/x.py", "import sys\nimport helper\nprint(sys.path[0])\ndef __exit__(): pass\n")
        self.write("a/helper.py", "print('helper')\n")
        os.symlink("a/x.py", self.path("link.py"))
        for script in ("a/x.py", "link.py"):
            self.assertEqual(self.bind(script).lines[:2], ["helper", "./a"])

    @unittest.skipIf(sys.version_info < (3, 11), "there is no safe path before 3.11")
    def test_safe_path(self):
        self.write("x.py", f"import sys\nprint({self.folder!r} in sys.path)\ndef __exit__(): pass\n")
        self.assertEqual(self.bind("x.py", env={"PYTHONSAFEPATH": "1"}).lines[0], "False")

    def test_inspect_pickle_and_sys_modules(self):
        self.write("x.py", """
            import inspect
            import pickle
            import sys

            class Point:
                pass

            def __exit__():
                print(sys.modules["x"].__exit__ is __exit__)
                print(inspect.getsource(Point).split()[1])
                print(type(pickle.loads(pickle.dumps(Point()))) is Point)
                print(__spec__.name, __spec__.origin == __file__, __loader__.get_filename("x") == __file__)
            """)
        run = self.call("x.py")
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, ["True", "Point:", "True", "x True True"])

    def test_main_block_is_not_run(self):
        self.write("x.py", 'def __exit__(): pass\nif __name__ == "__main__":\n    print("main")\n')
        self.assertEqual(self.bind("x.py").lines, BOUND)

    def test_no_bytecode_is_left(self):
        self.write("x.py", SHOW)
        self.bind("x.py")
        self.assertEqual(os.listdir(self.folder), ["x.py"])

    def test_stays_importable_after_a_change_of_folder(self):
        self.write("x.py", "import os\nos.chdir('/')\ndef __exit__():\n    1 / 0\n")
        run = self.call("x.py")
        self.assertIn("    1 / 0", run.errors)


class TestInterpreter(ScriptTestCase):
    def show(self, expression, **options):
        self.write("x.py", f"import sys\nprint({expression})\ndef __exit__(): pass\n")
        return self.bind("x.py", **options)

    def test_is_the_python_of_the_build(self):
        expression = "(sys.executable, sys.prefix, sys.base_prefix)"
        run = self.show(expression)
        self.assertEqual(run.lines[0], str((sys.executable, sys.prefix, sys.base_prefix)))

    def test_search_path_is_that_of_python(self):
        run = self.show("sys.path[1:]")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        python = subprocess.run([sys.executable, "-c", "import sys; print(sys.path[1:])"], env=clean,
                                capture_output=True, text=True, check=True)
        self.assertEqual(run.lines[0], python.stdout.strip())

    def test_path_is_not_looked_at(self):
        self.write("bin/python3", "#!/bin/sh\nexit 9\n")
        os.chmod(self.path("bin/python3"), 0o755)
        run = self.show("sys.executable", env={"PATH": f"{self.path('bin')}:{os.environ['PATH']}"})
        self.assertEqual(run.lines[0], sys.executable)

    def test_buffering_is_as_in_python(self):
        self.assertEqual(self.show("(sys.stdout.line_buffering, sys.stdout.write_through)").lines[0], "(False, False)")
        run = self.show("sys.stdout.write_through", env={"PYTHONUNBUFFERED": "1"})
        self.assertEqual(run.lines[0], "True")

    def test_text_that_is_not_utf8_is_printed_as_its_bytes(self):
        self.write("x.py", "def __exit__(): print('\\udcff')\n")
        self.assertEqual(self.drive("call", "a", "x.py").stdout, b"\xff\n")
        run = self.call("x.py", env={"PYTHONIOENCODING": "utf-8:backslashreplace"})
        self.assertEqual(run.lines, ["\\udcff"])

    def test_thread_is_joined_and_atexit_runs(self):
        self.write("x.py", """
            import atexit, threading, time
            atexit.register(print, "atexit")
            def work():
                time.sleep(0.2)
                print("thread")
            threading.Thread(target=work).start()
            def __exit__(): print("exit")
            """)
        run = self.call("x.py")
        self.assertEqual((run.lines, run.errors, run.status), (["exit", "thread", "atexit"], [], 0))

    def test_full_disk_is_an_error(self):
        self.write("x.py", "print('x')\ndef __exit__(): pass\n")
        with open("/dev/full", "wb") as full:
            run = self.bind("x.py", stdout=full)
        self.assertEqual(run.errors, ["perfscope: write to stdout raised OSError: [Errno 28] No space left on device"])
        self.assertEqual(run.status, 1)

    def test_broken_pipe_is_a_clean_end(self):
        self.write("x.py", "print('x' * 100)\ndef __exit__(): pass\n")
        reader, writer = os.pipe()
        os.close(reader)
        run = self.bind("x.py", stdout=writer)
        os.close(writer)
        self.assertEqual((run.errors, run.status), ([], 0))

    def test_broken_pipe_while_loading_is_a_clean_end(self):
        self.write("x.py", "print('x', flush=True)\n")
        reader, writer = os.pipe()
        os.close(reader)
        run = self.bind("x.py", stdout=writer)
        os.close(writer)
        self.assertEqual((run.errors, run.status), ([], 0))

    def test_closed_stdout_is_no_error(self):
        self.write("x.py", "import sys\nsys.stdout.close()\ndef __exit__(): pass\n")
        run = self.call("x.py")
        self.assertEqual((run.errors, run.status), ([], 0))


class TestInterrupt(ScriptTestCase):
    def test_loop_and_sleep_end(self):
        for text in ("while True: pass\n", "import time\ntime.sleep(50)\n"):
            self.write("x.py", text)
            run = self.run_driver("interrupt", "1000", "x.py")
            self.assertEqual((run.lines, run.errors, run.status), ([], [], 0), text)

    def test_where_sigint_came_ignored_it_stays_so(self):
        self.write("x.py", """
            print([line.split()[1][-1] for line in open("/proc/self/status") if line.startswith("SigIgn")], flush=True)
            while True: pass
            """)
        run = self.run_driver("interrupt", "1000", "x.py", preexec_fn=ignore_sigint)
        self.assertEqual((run.lines, run.errors, run.status), (["['2']"], [], 0))


class TestVirtualEnvironment(ScriptTestCase):
    SHOW = "import sys\nprint(sys.prefix)\nimport only_here\ndef __exit__(): pass\n"

    def make(self, version, key="version"):
        folder = "lib/python%d.%d/site-packages" % sys.version_info[:2]
        self.write(f"env/{folder}/only_here.py", "print('found')\n")
        self.write("env/pyvenv.cfg", f"home = /nowhere\ninclude-system-site-packages = false\n{key} = {version}\n")
        os.mkdir(self.path("env/bin"))
        os.symlink(sys.executable, self.path("env/bin/python"))
        self.write("x.py", self.SHOW)

    def bind_inside(self):
        return self.bind("x.py", env={"VIRTUAL_ENV": self.path("env")})

    def test_same_version_is_used_with_our_own_library(self):
        self.make("%d.%d.%d" % sys.version_info[:3])
        run = self.bind_inside()
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, ["./env", "found", *BOUND])

    def test_other_makers_key(self):
        self.make("%d.%d.0.final.0" % sys.version_info[:2], "version_info")
        self.assertEqual(self.bind_inside().lines, ["./env", "found", *BOUND])

    def test_version_that_begins_as_ours_is_refused(self):
        self.make("%d.%d0.1" % sys.version_info[:2])
        self.assertEqual(self.bind_inside().status, 1)

    def test_other_version_is_refused(self):
        self.make("3.1.4")
        run = self.bind_inside()
        ours = "%d.%d" % sys.version_info[:2]
        self.assertEqual(run.errors, [
            f"perfscope: virtual environment ./env is of Python 3.1.4, this perfscope runs Python {ours} "
            "(deactivate it, or build perfscope with make PYTHON=./env/bin/python)"])
        self.assertEqual((run.lines, run.status), ([], 1))

    def test_what_is_no_environment_is_passed_over(self):
        self.write("x.py", SHOW)
        run = self.bind_inside()
        self.assertEqual(run.errors, ["perfscope: virtual environment ./env is not used: it has no pyvenv.cfg with a "
                                      "version (unset VIRTUAL_ENV)"])
        self.assertEqual(run.lines, ["x ./x.py", *BOUND])


if __name__ == "__main__":
    unittest.main()
