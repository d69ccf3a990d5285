# SPDX-License-Identifier: MIT
"""`__options__` of a script, read without running it."""

import ast
import os
import unittest
import warnings

from scripttest import ROOT, ScriptTestCase


class TestOptions(ScriptTestCase):
    def options(self, text, name="x.py"):
        self.write(name, text)
        run = self.run_driver("options", name)
        self.assertEqual((run.errors, run.status), ([], 0))
        return None if run.stdout == "none\n" else run.stdout[1:-2]

    def assert_as_python(self, text):
        """What Python itself makes of the only value in @text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape is kept, with a warning
            tree = ast.parse(text)
        values = [node.value for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
        self.assertEqual(self.options(text), ast.literal_eval(values[-1]), text)

    def test_forms_of_a_string(self):
        for value in ('"-e a:b -i 1000"', "'-e a:b'", '"a" "b"', "'a' \"b\"", '("a"\n  "b"  # why\n  "c")', '(("a"))',
                      '"""a\nb"""', "'''a'b'''", 'r"\\d"', 'u"a"', '"a" \\\n  "b"', '""', '"a"  # why', '"a";',
                      r'"a\tb\n\\\"\'\x41\q"', '"a\\\nb"', 'R\'\\\'\'', '"\u00e9"', r'"\xe9\xbf\x80\x7f"', "('a')", '("a")  # b'):
            self.assert_as_python(f"__options__ = {value}\n")
            self.assert_as_python(f"__options__ = {value}")

    def test_forms_of_an_assignment(self):
        for text in ('__options__="a"', '__options__: str = "a"', '__options__ : "str"="a"', '__options__  =  "a"',
                     '__options__ = \\\n  "a"', '__options__ = "b"\n__options__ = "a"'):
            self.assert_as_python(text + "\n")

    def test_line_ends_byte_order_mark_and_shebang(self):
        self.assertEqual(self.options(b'#!/usr/bin/perfscope python\r\n__options__ = "a"\r\nx = 1\r\n'), "a")
        self.assertEqual(self.options(b'\xef\xbb\xbf__options__ = "a"\n'), "a")

    def test_none_where_it_is_not_assigned_at_the_top(self):
        for text in ("", "x = 1", '"""\n__options__ = "a"\n"""\n', 'def f():\n    __options__ = "a"\n',
                     'x = [\n__options__ == "a"\n]\n', 'f(\n__options__ = "a"\n)\n', '# __options__ = "a"\n',
                     'x = 1 \\\n\n', '__options__ == "a"\n', '__options__\n', 'my__options__ = "a"\n',
                     '__options__2 = "a"\n', "x = '''\n__options__ = 'a'\n'''\n", 'x = 1 + \\\n__options__ == "a"\n',
                     'x = f"{1}" r"\\\n"\n', "x = '\\'\\\n__options__ = 1'\n", 'x = """\\"""\n__options__ = 1\n"""\n'):
            self.assertIsNone(self.options(text), text)

    def test_what_stands_before_it(self):
        for text in ("x = 'it''s'  # it's\n", 'x = "\\""\n', "x = {'a': [1, (2,)]}\n", 'bar = rb"\\"\n"\n'[:-2],
                     "def f(a, b): return '['\n", 'x = "(["\n', "x = r'\\'' + \"'\"\n", '"""a "quoted" text"""\n',
                     'x = "open\n', "x = ')'\n"):
            self.assertEqual(self.options(text + '__options__ = "a"\n'), "a", text)

    def test_value_that_is_no_plain_string(self):
        for value in ("5", "name", '"a" + "b"', 'f"a"', 'b"a"', '"a".strip()', '"a", "b"', '("a"', '["a"]', "",
                      '"a" if x else "b"'):
            self.write("x.py", f"import sys\n__options__ = {value}\n")
            run = self.run_driver("options", "x.py")
            self.assertEqual(run.errors, ["perfscope: script x.py, line 2: __options__ is read without running the "
                                          "script and must be a plain string"], value)
            self.assertEqual((run.lines, run.status), ([], 1))

    def test_script_is_not_run(self):
        self.assertEqual(self.options('open("run", "w")\n__options__ = "a"\n'), "a")
        self.assertEqual(os.listdir(self.folder), ["x.py"])

    def test_forms_of_script(self):
        self.assertEqual(self.options('__options__ = "a"\n', "tool"), "a")
        self.write("p/__init__.py", "")
        self.write("p/m.py", '__options__ = "b"\n')
        self.write("shipped/s.py", '__options__ = "c"\n')
        self.write("lib/l.py", '__options__ = "d"\n')
        env = {"PERFSCOPE_SCRIPTS": self.path("shipped"), "PYTHONPATH": self.path("lib")}
        for name, options in (("p.m", "[b]"), ("s", "[c]"), ("l", "[d]"), ("nosuch", "none"), ("json", "none")):
            self.assertEqual(self.run_driver("options", name, env=env).lines, [options], name)

    def test_pipe_is_left_for_the_import(self):
        os.mkfifo(self.path("pipe"))
        self.assertEqual(self.run_driver("options", "pipe").lines, ["none"])

    def test_missing_script(self):
        run = self.run_driver("options", "x.py")
        self.assertEqual((run.errors, run.status), (["perfscope: script x.py: no such file"], 1))

    def test_told_where_it_could_not_be_read(self):
        self.write("lib/x.py", '__options__ = "a"\ndef __exit__(): pass\n')
        self.write("y.py", "import sys\nsys.path.append('lib')\nfrom x import *\nfrom x import __options__, __exit__\n")
        run = self.bind("y.py")
        self.assertEqual(run.errors, ["perfscope: script y.py: its __options__ cannot be read without running it; "
                                      "give them on the command line"])

    def test_any_bytes_end(self):
        seed = b'__options__ = ("a" \'b\' """c""" # d\n \\\n r"e\\" )\n{[f\x00\xff'
        for start in range(len(seed)):
            for end in range(start, len(seed) + 1, 3):
                self.write("x.py", b"__options__ = " + seed[start:end] + seed[:start])
                self.assertIn(self.run_driver("options", "x.py").status, (0, 1))

    def test_shipped_scripts_have_theirs(self):
        folder = os.path.join(ROOT, "scripts")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                run = self.run_driver("options", os.path.join(folder, name))
                self.assertEqual(run.stdout[:4], "[-e ", name)


if __name__ == "__main__":
    unittest.main()
