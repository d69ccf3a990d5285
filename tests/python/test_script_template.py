# SPDX-License-Identifier: MIT
"""The template: valid Python for any event, documented, and it runs as it is."""

import ast
import collections
import glob
import os
import re
import subprocess
import unittest

from scripttest import DRIVER, ScriptTestCase

TRACEFS = os.environ.get("PERFSCOPE_TRACEFS", "/sys/kernel/tracing")
COMMON = [("common_type", "unsigned short", "int"), ("common_pid", "int", "int")]
ODD = [("from", "u32", "int"), ("pass", "char[16]", "str"), ("class", "__data_loc char[]", "str"),
       ("self", "__u8[6]", "bytes"), ("print", "int", "int"), ("get", "unsigned long[6]", "ints"),
       ("_pid", "int", "int"), ("event", "__data_loc cpumask_t", "cpumask"), ("a-b", "int", "int"),
       ("9lives", "int", "int"), ("odd\\", 'char "x"\\', "int"), ("__hidden", "int", "int"), ("None", "int", "int")]


def kind_of(declaration):
    """As good as is needed here: the schema has tests of its own."""
    if "cpumask" in declaration:
        return "cpumask"
    if "[" not in declaration:
        return "int"
    return "str" if "char" in declaration else "ints"


def read_format(path):
    fields = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            match = re.match(r"\tfield:(.*);\toffset:\d+;\tsize:\d+;", line)
            if match:
                name = re.match(r"(.*?)(\w+)(\[.*\])?$", match[1])
                declaration = name[1].strip() + (name[3] or "")
                fields.append((name[2], declaration, kind_of(declaration)))
    return fields


class TemplateTestCase(ScriptTestCase):
    def template(self, *events):
        """Of events: (name, handler, fields of (name, type, kind))."""
        lines = []
        for name, handler, fields in events:
            lines.append(f"{name}\t{handler}")
            lines += [f"\t{field}\t{declared}\t{kind}" for field, declared, kind in fields]
        process = subprocess.run([DRIVER, "template"], input="\n".join(lines), capture_output=True, text=True,
                                 check=True)
        self.assertEqual(process.stderr, "")
        return process.stdout

    def functions(self, text):
        return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


class TestTemplate(TemplateTestCase):
    CALLBACKS = ["__init__", "__sample__", "__interval__", "__lost__", "__print_stat__", "__exit__"]

    def test_first_line_tells_how_to_run_it(self):
        text = self.template(("sched:sched_switch", "sched__sched_switch", COMMON))
        self.assertEqual(text.splitlines()[0], "# perfscope python -e sched:sched_switch this_file.py")
        text = self.template(("a:b/pid>1 && comm~'x'/", "a__b", []), ("c", "c", []))
        self.assertEqual(text.splitlines()[0],
                         "# perfscope python -e 'a:b/pid>1 && comm~'\\''x'\\''/,c' this_file.py")

    def test_every_function_is_there_and_documented(self):
        functions = self.functions(self.template(("a:b", "a__b", COMMON), ("c", "c", [])))
        self.assertEqual(list(functions), ["__init__", "a__b", "c", *self.CALLBACKS[1:]])
        self.assertEqual([name for name, node in functions.items() if not ast.get_docstring(node)], [])

    def test_docstring_lists_name_and_both_types(self):
        node = self.functions(self.template(("a:b", "a__b", COMMON + ODD[:2])))["a__b"]
        self.assertEqual(ast.get_docstring(node).splitlines(), [
            "Called for each a:b. Its fields, their types in Python and as declared:", "",
            "common_type  int              unsigned short", "common_pid   int              int",
            "from         int              u32", "pass         str              char[16]"])

    def test_two_sources_of_one_handler_make_one_function(self):
        text = self.template(("a:b", "a__b", COMMON), ("a:b", "a__b", COMMON))
        self.assertEqual(text.count("def a__b("), 1)
        self.assertEqual(text.count("class a__b_event("), 1)

    def test_stub_of_odd_names(self):
        text = self.template(("a:b", "a__b", ODD))
        stub = next(node for node in ast.parse(text).body if isinstance(node, ast.If)).body[0]
        self.assertEqual(stub.name, "a__b_event")
        self.assertEqual([ast.unparse(node) for node in stub.body[1:]], [
            "from_: int", "pass_: str", "class_: str", "self: bytes", "event: frozenset[int]", "None_: int"])
        comments = [line.strip() for line in text.splitlines() if line.strip().startswith("# event[")]
        self.assertEqual(comments, [
            '# event["print"]: int', '# event["get"]: tuple[int, ...]', '# event["_pid"]: int', '# event["a-b"]: int',
            '# event["9lives"]: int', '# event["odd\\\\"]: int', '# event["__hidden"]: int'])

    def test_runs_unchanged(self):
        text = self.template(("a:b", "a__b", ODD), ("class", "class", COMMON), ("1:2", "1__2", []))
        self.write("x.py", text)
        run = self.bind("x.py", handlers="a__b,class,1__2,other")
        self.assertEqual((run.errors, run.status), ([], 0))
        self.assertEqual(run.lines, ["__init__ 0", "__exit__ 1", "__interval__ 1", "__lost__ 3", "__print_stat__ 1",
                                     "__sample__ 1", "a__b: own", "class: own", "1__2: own", "other: __sample__"])
        run = self.call("x.py", handlers="a__b,class,1__2")
        self.assertEqual((run.errors, run.status), ([], 0))
        self.assertEqual(run.lines, ["events lost: {}", "{}", "{}", "{}", "{}"])

    def test_losses_can_be_of_no_known_number(self):
        lost = self.functions(self.template())["__lost__"]
        self.assertEqual(ast.unparse(lost.args), "lost_start: int, lost_end: int, lost: 'int | None'")
        self.assertEqual(ast.get_docstring(lost), "Called for each loss of events, with the times around it in ns and how many were "
                                                  "lost; None: nobody counted, as while a CPU was offline.")

    def test_without_an_event_that_makes_samples(self):
        functions = self.functions(self.template())
        self.assertEqual(list(functions), self.CALLBACKS)


@unittest.skipUnless(os.path.isdir(f"{TRACEFS}/events/sched"), f"no tracepoints in {TRACEFS}")
class TestTracepoints(TemplateTestCase):
    def test_every_tracepoint_of_this_machine(self):
        systems = collections.defaultdict(list)
        for path in sorted(glob.glob(f"{TRACEFS}/events/*/*/format")):
            system, name = path.split("/")[-3:-1]
            handler = re.sub(r"\W", "_", f"{system}__{name}")
            systems[system].append((f"{system}:{name}", handler, read_format(path)))
        for system, events in systems.items():
            text = self.template(*events)
            compile(text, system, "exec")
            functions = self.functions(text)
            for name, handler, fields in events:
                documented = ast.get_docstring(functions[handler]).splitlines()[2:]
                self.assertEqual([line.split()[0] for line in documented], [field[0] for field in fields], name)


if __name__ == "__main__":
    unittest.main()
