# SPDX-License-Identifier: MIT
"""Arguments by the names of the program: what is fetched is what was passed, whatever the compiler made of it."""

import os
import re
import shutil
import subprocess
import unittest

from test_probes import ProbeTestCase

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables.c")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
N = 3

RETURNS = """
#include <stdlib.h>
struct item { int id; double price; char tag[8]; } item = { 7, 1.5, "red" };
struct two { int a, b; };
struct large { long wide; int plain; char tag[12]; };
#define APART __attribute__((noinline)) // clang has no noipa
APART int minus(int n) { __asm__ volatile("" : "+r"(n)); return -n; }
APART const char *text(int n) { __asm__ volatile("" : "+r"(n)); return n & 1 ? "odd" : "even"; }
APART struct item *find(int n) { item.id = n; __asm__ volatile("" ::: "memory"); return &item; }
APART double half(int n) { __asm__ volatile("" : "+r"(n)); return n / 2.0; }
APART void nothing(int n) { item.id = n; __asm__ volatile("" ::: "memory"); }
APART int by_value(int n, struct large large, double x) { __asm__ volatile("" : "+r"(n)); return n + large.plain + (int)x; }
APART struct two two(int n) { __asm__ volatile("" : "+r"(n)); struct two two = { n, n }; return two; }
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < atoi(argv[1]); i++) {
		struct large large = { -5000000000, i - 1, "on stack" };
		sum += by_value(i, large, 0.5);
		sum += minus(i) + *text(i) + find(i)->id + two(i).b + (int)half(i);
		nothing(i);
	}
	return sum == -1;
}
"""


class NamesTestCase(ProbeTestCase):
    def build(self, *options, compiler="gcc", name="variables", source=SOURCE):
        program = os.path.join(self.folder, name)
        subprocess.run([compiler, "-g", *options, "-o", program, source], check=True, capture_output=True)
        return program

    def builds(self, *levels):
        """A program for each compiler and level of optimization, as subtests."""
        for compiler in COMPILERS:
            for level in levels:
                with self.subTest(compiler=compiler, level=level):
                    yield self.build(*level.split(), compiler=compiler)

    def fields(self, event, program, nr=1):
        return [fields for _, fields in self.run_probed(event, program=program, nr=nr)["seen"]]


class TestValues(NamesTestCase):
    def test_parameters_of_each_type(self):
        for program in self.builds("-O0", "-O1", "-O2", "-O2 -no-pie", "-O0 -static", "-O2 -gdwarf-4"):
            fields = self.fields(f"uprobe:parse@{program} len name small color late on_stack", program, N)
            self.assertEqual(fields, [{"len": i - 1, "name": "caf\u00e9", "small": 250, "color": 5, "late": -5,
                                       "on_stack": -10**12} for i in range(N)])

    def test_members_elements_and_bit_fields(self):
        args = ("buf->size buf->kind f=buf->flags right=buf->pairs[1].right buf->pairs[2].left buf->plain buf->wide buf->text "
                "buf->name again=buf->next->next->name")
        for program in self.builds("-O0", "-O2"):
            self.assertEqual(self.fields(f"uprobe:parse@{program} {args}", program), [{
                "size": 4096, "kind": 17, "f": 5, "right": -4, "left": 5, "plain": 77, "wide": 77, "text": "inside",
                "name": "chained", "again": "chained"}])

    def test_global_variables(self):
        for program in self.builds("-O0", "-O2", "-O2 -no-pie", "-O2 -static-pie"):
            fields = self.fields(f"uprobe:parse@{program} counter exported table table[1]", program, 2)
            self.assertEqual(fields, [{"counter": 40 + i, "exported": -9, "table": [1, -2, 3, 4], "table_1": -2} for i in range(2)])
            self.assertEqual(self.fields(f"uretprobe:parse@{program} counter $retval:s32", program),
                             [{"counter": 41, "arg2": -1 - 2 + 1 + 3}])

    def test_a_structure_that_is_passed_by_value(self):
        for level in "-O0", "-O1", "-O2":
            program = self.build(level, name="returns", source=self.write("returns.c", RETURNS))
            fields = self.fields(f"uprobe:by_value@{program} large.wide large.plain large.tag n", program, 2)
            self.assertEqual(fields, [{"wide": -5000000000, "plain": i - 1, "tag": "on stack", "n": i} for i in range(2)])

    def test_own_names_and_types(self):
        program = self.build("-O2")
        event = f"uprobe:parse@{program} low=len:u8 text=name:string pointer=name:x64 small:s8 buf->next->name b_size=buf->size:x16"
        fields = self.fields(event, program)[0]
        self.assertGreater(fields.pop("pointer"), 4096)
        self.assertEqual(fields, {"low": 255, "text": "caf\u00e9", "small": -6, "name": "chained", "b_size": 4096})
        # The second of one name has its whole path, and what is the kernel's syntax stays.
        fields = self.fields(f"uprobe:parse@{program} name buf->name di=%di:s32 $arg4:u8", program)
        self.assertEqual(fields, [{"name": "caf\u00e9", "buf_name": "chained", "di": -1, "arg4": 250}])

    def test_names_behind_an_offset(self):
        program = self.build("-O0")
        run = self.run_command(*self.script_arguments("", f"uprobe:by_value@{program} pair.left", [], ["--run", program, 1]))
        offset = run.errors[0].partition("all are known from ")[2].partition(" ")[0]
        fields = self.fields(f"uprobe:by_value{offset}@{program} pair.left pair.right after", program, 2)
        self.assertEqual(fields, [{"left": 1, "right": 2, "after": i} for i in range(2)])

    def test_a_stripped_program_with_a_debug_file(self):
        program = self.build("-O2", "-Wl,--build-id=sha1")
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        build_id = notes.partition("Build ID: ")[2].split()[0]
        folder = f"/usr/lib/debug/.build-id/{build_id[:2]}"
        os.makedirs(folder, exist_ok=True)
        debug = os.path.join(folder, build_id[2:] + ".debug")
        self.addCleanup(lambda: (os.remove(debug), os.listdir(folder) or os.rmdir(folder)))
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        for strip in [], ["--strip-debug"]:
            subprocess.run(["strip", *strip, "-o", program + "-s", program], check=True)
            fields = self.fields(f"uprobe:parse@{program}-s len name buf->size counter", program + "-s", 2)
            self.assertEqual(fields, [{"len": i - 1, "name": "caf\u00e9", "size": 4096, "counter": 40 + i} for i in range(2)])


class TestInlined(NamesTestCase):
    def test_each_instance_is_a_place(self):
        for program in self.builds("-O0", "-O2"):
            result = self.run_probed(f"uprobe:doubled@{program}", program=program, nr=50)
            self.assertEqual(result["values"], {"uprobe:doubled": 50, "uprobe:doubled#2": 50})

    def test_names_where_it_is_inlined(self):
        program = self.build("-O2")
        values = [fields["n"] for fields in self.fields(f"uprobe:doubled@{program} n", program, 2)]
        self.assertEqual(values, [-1, 0, 0, 1])

    def test_copies_of_a_function(self):
        source = self.write("copies.c", """
static __attribute__((noinline)) int copied(int n, int unused, int five) { __asm__ volatile("" : "+r"(n)); return n + five; }
int main(void) { int sum = 0; for (int i = 0; i < 20; i++) sum += copied(i, i, 5); return sum == 1; }
""")
        program = self.build("-O2", name="copies", source=source)
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        if " copied." not in symbols:
            self.skipTest("this compiler makes no copies")
        values = self.run_probed(f"uprobe:copied@{program} n", program=program)
        self.assertEqual([fields["n"] for _, fields in values["seen"]], list(range(20)))


class TestReturns(NamesTestCase):
    def test_each_level_of_a_recursion_returns(self):
        for program in self.builds("-O0", "-O1"):
            fields = self.fields(f"uretprobe:recurse@{program} n=$retval:s32", program, 2)
            self.assertEqual([values["n"] for values in fields], [1, 2, 3, 4] * 2)

    def build_returns(self, *options, compiler="gcc"):
        return self.build(*options, compiler=compiler, name="returns", source=self.write("returns.c", RETURNS))

    def test_what_is_returned_has_the_type_of_the_function(self):
        for compiler in COMPILERS:
            program = self.build_returns("-O1", compiler=compiler)
            for event, expected in [
                    ("minus@F $retval", [{"arg1": 0}, {"arg1": -1}]),
                    ("minus@F n=$retval bits=$retval:x32", [{"n": 0, "bits": 0}, {"n": -1, "bits": 0xffffffff}]),
                    ("text@F $retval", [{"arg1": "even"}, {"arg1": "odd"}]),
                    ("find@F $retval->id $retval->tag", [{"id": 0, "tag": "red"}, {"id": 1, "tag": "red"}])]:
                event = event.replace("@F", f"@{program}")
                with self.subTest(compiler=compiler, event=event):
                    self.assertEqual(self.fields("uretprobe:" + event, program, 2), expected)
            subprocess.run(["strip", "-g", program], check=True)
            self.assertEqual(self.fields(f"uretprobe:minus@{program} $retval", program, 2)[0], {"arg1": 0})

    def test_what_is_listed_for_a_return(self):
        program = self.build_returns("-O1")
        run = self.run_command("list", "-v", f"uretprobe:*i*@{program}")
        lines = [line.strip().replace(f"@{program}", "") for line in run.lines]
        self.assertEqual(lines[lines.index("uretprobe:find"):][:2], ["uretprobe:find", "$retval                  struct item *"])
        self.assertEqual(lines[lines.index("uretprobe:minus"):][:2], ["uretprobe:minus", "$retval                  int"])
        self.assertTrue(lines[lines.index("uretprobe:nothing") + 1].startswith("uretprobe:"))


class TestRefusals(NamesTestCase):
    def assert_reason(self, program, event, reason, status=1):
        event = event.replace("@F", f"@{program}")
        run = self.run_command(*self.script_arguments("def __sample__(event): pass", event, [], ["--run", program, 1]))
        self.assertEqual([run.status, run.errors], [status, [f"perfscope: {event}: {reason}"]])

    def test_what_cannot_be_fetched_is_told_with_what_can(self):
        program = self.build("-O0")
        for args, reason, status in [
                ("lne", "lne: no variable of this name is there; there are len, name, buf, small, color, late, on_stack, sum", 1),
                ("fraction", "fraction: it is a float, which the kernel cannot show", 1),
                ("of_thread", "of_thread: it is of each thread (thread-local); there are len, name, buf, small, color, late, "
                 "on_stack, sum", 1),
                ("buf->nothing", "buf->nothing: struct buffer has no member nothing; there are next, name, flags, kind, negative, "
                 "pairs, plain, wide, text, size", 1),
                ("buf->pairs[1]", "buf->pairs[1]: it is a structure: name a member; there are left, right", 1),
                ("buf->negative", "buf->negative: it is a bit field with a sign, which the kernel cannot extend", 1),
                ("buf->pairs", "buf->pairs: it is an array of what the kernel cannot show: name an element, as [0]", 1),
                ("buf.size", "buf.size: what stands before . is a pointer: use ->", 2),
                ("len->size", "len->size: what stands before -> is no pointer", 2),
                ("buf->pairs[3].left", "buf->pairs[3].left: [3] lies beyond its 3 elements", 2),
                ("buf->pairs[x]", "buf->pairs[x]: a number and ] belong behind [", 2),
                ("$arg1", "$arg1 is known where the function begins only", 2)]:
            with self.subTest(args):
                symbols = self.start_of_body(program)
                self.assert_reason(program, f"uprobe:parse+{symbols}@F {args}", reason, status)

    def test_returns_of_which_nothing_can_be_fetched(self):
        program = self.build("-O1", name="returns", source=self.write("returns.c", RETURNS))
        for args, reason in [
                ("half@F $retval", "$retval: it is a float, which the kernel cannot show"),
                ("half@F n=$retval:x64", "$retval: it is a float, which the kernel cannot show"),
                ("nothing@F $retval", "$retval: the function returns nothing"),
                ("two@F $retval.a", "$retval: a structure is returned, not a pointer to one"),
                ("find@F $retval->tga", "$retval->tga: struct item has no member tga; there are id, price, tag")]:
            with self.subTest(args):
                self.assert_reason(program, f"uretprobe:{args}", reason)

    def start_of_body(self, program):
        run = self.run_command("python", "-e", f"uprobe:parse@{program} nothing", self.write("s.py", "def __sample__(e): pass\n"))
        return run.stderr.partition("all are known from +")[2].partition(" ")[0]

    def test_places_without_variables(self):
        program = self.build("-O2")
        self.assert_reason(program, "uretprobe:parse@F len", "len: a return knows $retval and global variables only")
        subprocess.run(["strip", "-g", "-o", program + "-g", program], check=True)
        plain = program + "-g"
        self.assert_reason(plain, "uprobe:parse@F len", f"len: {plain} has no debug information on what is there (build it with -g, "
                           "or name a register: %di)")

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc") and os.uname().machine == "x86_64", "no compiler for another processor")
    @unittest.skipUnless(shutil.which("g++"), "no C++ compiler here")
    def test_debug_information_that_leads_in_circles(self):
        source = self.write("circle.cc", "struct outer { int x; };\nstruct inner : outer { int y; };\n"
                            "__attribute__((noipa)) int f(inner *p) { return p->y; }\nint main() { inner one{}; return f(&one); }\n")
        text = subprocess.run(["g++", "-g", "-O1", "-S", "-dA", "-o", "-", source],
                              capture_output=True, text=True, check=True).stdout
        # Let inner be its own base.
        own = re.search(r'\(DIE \((0x[0-9a-f]+)\) DW_TAG_structure_type\)\n.*DW_AT_name: "inner"', text)[1]
        text, nr = re.subn(r"(DW_TAG_inheritance\)\n\t\.long\t)0x[0-9a-f]+", r"\g<1>" + own, text)
        self.assertEqual(nr, 1)
        program = os.path.join(self.folder, "circle")
        subprocess.run(["g++", "-o", program, self.write("circle.s", text)], check=True)
        self.assertEqual(self.fields(f"uprobe:f@{program} p->y", program, 1), [{"y": 0}])
        event = f"uprobe:f@{program} p->z"
        run = self.run_command(*self.script_arguments("def __sample__(event): pass", event, [], ["--run", program]))
        self.assertEqual(run.status, 1)
        self.assertIn("p->z: struct inner has no member z; there are y, y", run.errors[0])

    def test_a_program_of_another_processor(self):
        program = self.build(compiler="aarch64-linux-gnu-gcc")
        event = f"uprobe:parse@{program}"
        run = self.run_command(*self.script_arguments("def __sample__(event): pass", event, [], ["--run", "true"]))
        self.assertEqual([run.status, run.errors], [1, [
            f"perfscope: {event}: {program} is for another processor (ELF machine 183): nothing of it can run here"]])


if __name__ == "__main__":
    unittest.main()
