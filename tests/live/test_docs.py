# SPDX-License-Identifier: MIT
"""What the documents say is true: each example is run, each option, function and field is told.

In Markdown, a comment before a fenced block says what it is:

    <!-- file: name.py -->     a ```python or ```c block: the file that the examples below it run
    <!-- output: exact -->     a ```console block: what follows each `$ command` is its output, to the letter; without
                               this, numbers are taken as equal, and lines that come again are told once;
                               `any` compares nothing
    <!-- status: 1 -->         of the commands of a ```console block, 0 unless told
"""

import ast
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

from livetest import BUILD, COMMAND, ROOT, LiveTestCase, skip_unless_tracepoints

BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w+)\n(.*?)^```$", re.M | re.S)
MARK = re.compile(r"<!-- (\w+): (.*) -->")
PAGES = ["README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(f"{ROOT}/docs/*.md"))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """(marks, language, text) of each fenced block."""
    for match in BLOCK.finditer(text):
        yield dict(MARK.findall(match[1])), match[2], match[3]


def examples(text):
    """(command, output) of each `$ command` of a console block."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def normalise_line(line):
    line = re.sub(r"(\d+ )\S+( \[\d+\])", r"\1flags\2", line)
    line = re.sub(r'"/[^"]*/', '"', line)
    line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "0", line)
    return " ".join(line.split())


def normalise(output):
    """Lines without what differs from run to run: numbers, widths, folders, flags, how often a line comes."""
    lines = dict.fromkeys(map(normalise_line, output.splitlines()))
    # A counter's row of an interval in which the program had ended, now and then the last one.
    return [line for line in lines if not re.fullmatch(r"0 \S+( \(ns\))? 0 0 - -", line)]


# What the examples of probes call ./prog.
PROG = """
struct buf { unsigned size; struct { int id; } items[2]; };
int parse(int len, const char *name, struct buf *buf) { return len + *name + buf->items[0].id; }
int main(void) { return 0; }
"""


@skip_unless_tracepoints
class TestExamples(LiveTestCase):
    maxDiff = None
    environment = {}

    def run_example(self, command, marks, expected):
        environment = {**os.environ, "PATH": f"{os.path.dirname(COMMAND)}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
                       "PERFSCOPE_SCRIPTS": os.path.join(ROOT, "scripts"), "PYTHONPATH": os.path.join(BUILD, "python"),
                       **self.environment}
        result = subprocess.run(command, shell=True, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, int(marks.get("status", 0)), result.stdout)
        how = marks.get("output", "normalised")
        if how == "exact":
            self.assertEqual(result.stdout, expected)
        elif how == "normalised":
            self.assertEqual(normalise(result.stdout), normalise(expected))

    def install_library(self):
        """The header and the library of regions alone, as make install places them; pkg-config finds them from now on."""
        environment = {**os.environ, "PKG_CONFIG_PATH": BUILD}
        for variable, file in ("includedir", "include/perfscope/region.h"), ("libdir", f"{BUILD}/libperfscope-region.a"):
            place = subprocess.run(["pkg-config", f"--variable={variable}", "perfscope-region"], env=environment,
                                   capture_output=True, text=True, check=True).stdout.strip()
            folder = os.path.join(self.folder, "root", place.lstrip("/"), *(["perfscope"] if file.endswith(".h") else []))
            os.makedirs(folder, exist_ok=True)
            shutil.copy(os.path.join(ROOT, file), folder)
        self.environment = {"PKG_CONFIG_PATH": BUILD, "PKG_CONFIG_SYSROOT_DIR": os.path.join(self.folder, "root")}

    def check_page(self, path):
        nr_run = 0
        for marks, language, text in blocks(read(path)):
            if "file" in marks:
                self.write(marks["file"], text)
            for command, expected in examples(text) if language == "console" else []:
                with self.subTest(page=path, command=command):
                    self.run_example(command, marks, expected)
                nr_run += 1
        return nr_run

    def test_examples_of_the_readme(self):
        self.assertEqual(self.check_page("README.md"), 14)

    def test_examples_of_scripting(self):
        self.assertEqual(self.check_page("docs/scripting.md"), 7)

    def test_examples_of_regions(self):
        self.install_library()
        self.assertEqual(self.check_page("docs/regions.md"), 8)
        # What is indented instead is no example.
        self.assertEqual(re.findall(r"\n\n    (.*)", read("docs/regions.md")), ["-r NAME=BEGIN..END"])

    def test_examples_of_events(self):
        text = "\n".join(re.findall(r"^    (.*)$", read("docs/events.md"), re.M))
        specs = re.findall(r"^perfscope python -e ('[^']*'|\S+) script.py$", text, re.M)
        self.assertEqual(len(specs), 5)
        self.write("prog.c", PROG)
        subprocess.run(["gcc", "-g", "-o", os.path.join(self.folder, "prog"), os.path.join(self.folder, "prog.c")], check=True)
        self.write("script.py", "def __exit__(): pass")
        for spec in specs:
            with self.subTest(spec=spec):
                self.run_example(f"perfscope python -e {spec} script.py --run true", {"output": "exact"}, "")
        filters = re.findall(r"^syscalls:.*/$", text, re.M)
        self.assertEqual(len(filters), 1)
        self.write("script.py", "def __sample__(event): print(event._comm, event.flags)")
        self.run_example(f"perfscope python -o events -e '{filters[0]}' script.py --run cat /etc/hostname >/dev/null; cat events",
                         {"output": "exact"}, "cat 0\n")

    def test_no_other_page_has_examples_that_are_not_run(self):
        self.assertEqual([path for path in PAGES if any(language in ("c", "console", "python") for _, language, _ in
                                                        blocks(read(path)))],
                         ["README.md", "docs/regions.md", "docs/scripting.md"])


class TestManPage(unittest.TestCase):
    maxDiff = None

    def test_options_are_those_of_the_command(self):
        options = subprocess.run([COMMAND, "--man-options"], capture_output=True, text=True, check=True).stdout
        page = read("docs/perfscope.1")
        between = re.search(r'^\.\\" perfscope --man-options$\n(.*?)^\.\\" end$', page, re.M | re.S)
        self.assertEqual(between[1], options, "put the output of perfscope --man-options into docs/perfscope.1")

    def test_attributes_and_probes_are_told(self):
        page = re.sub(r"\\f.", "", read("docs/perfscope.1").replace("\\-", "-"))
        events = page.partition("\n.SH EVENTS\n")[2].partition("\n.SH ")[0]
        names = re.findall(r'^\t\{ "([\w-]+)", ATTRIBUTE_', read("src/event/spec_attribute.c"), re.M)
        self.assertGreater(len(names), 15)
        names += ["uprobe", "uretprobe", "kprobe", "kretprobe", "usdt"]
        self.assertEqual([name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", events)], [])

    def test_page_is_sound(self):
        result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "docs/perfscope.1"], cwd=ROOT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                check=False)
        self.assertEqual([result.returncode, result.stderr], [0, ""])

    def test_commands_are_told(self):
        page = read("docs/perfscope.1")
        text = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z]+) ", text, re.M)
        self.assertEqual(commands, ["python", "list", "doctor"])
        self.assertEqual([name for name in commands if not re.search(rf"^\.B perfscope {name}", page, re.M)], [])


class TestScripting(unittest.TestCase):
    PAGE = read("docs/scripting.md") + read("docs/regions.md")

    def code(self):
        return "\n".join(re.findall(r"`([^`\n]+)`", self.PAGE))

    def test_each_name_of_the_stub_is_told(self):
        tree = ast.parse(read("src/python/perfscope.pyi")).body
        names = list({node.name: None for node in tree if isinstance(node, ast.FunctionDef)})  # overloaded ones once
        for node in tree:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names.append(node.name)
                names += [item.target.id if isinstance(item, ast.AnnAssign) else item.name for item in node.body
                          if isinstance(item, (ast.AnnAssign, ast.FunctionDef))]
        methods = {"__init__", "__getattr__", "__getitem__", "__contains__", "__len__", "__iter__", "__hash__", "__eq__",
                   "__enter__", "__exit__", "__call__"}
        missing = [name for name in names if name not in methods and not re.search(rf"(?<!\w){name}(?!\w)", self.code())]
        self.assertEqual(missing, [])
        self.assertEqual(len(names), 73)

    def test_each_callback_is_told(self):
        source = read("src/script/bind.c")
        callbacks = re.findall(r'^\s*\[PS_CALLBACK_\w+\] = \{ "(\w+)"', source, re.M)
        self.assertEqual(sorted(callbacks), ["__exit__", "__init__", "__interval__", "__lost__", "__print_stat__", "__sample__"])
        self.assertEqual([name for name in callbacks if f"`{name}(" not in self.PAGE], [])


class TestShippedScripts(unittest.TestCase):
    def test_each_is_in_the_readme_and_opens_with_its_use(self):
        for path in sorted(glob.glob(f"{ROOT}/scripts/*.py")):
            name = os.path.basename(path)[:-3]
            with self.subTest(script=name):
                text = ast.get_docstring(ast.parse(read(path)), clean=False)
                self.assertIn(f"`perfscope python {name}`", read("README.md"))
                self.assertIn(f"\n    perfscope python {name} ", text)
                self.assertRegex(text, rf"\n    \$ perfscope python .*{name}.*\n    +\w")


if __name__ == "__main__":
    unittest.main()
