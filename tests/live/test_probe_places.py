# SPDX-License-Identifier: MIT
"""Where probes lie: usdt operands of each kind, libraries, overloads, functions of one name, files that others see elsewhere."""

import os
import shutil
import subprocess
import unittest

from test_probes import NOTHING, SEEN, ProbeTestCase

USDT = """
#include <stdint.h>
#include <stdlib.h>
#include <sys/sdt.h>
struct item { int8_t tiny; uint16_t small; int32_t plain; int64_t wide; };
__attribute__((noinline)) void pass(int n, struct item *item, double real, int *table, long index)
{
	volatile int on_stack = n * 10;
	STAP_PROBE5(kinds, memory, item->tiny, item->small, item->plain, item->wide, on_stack);
	STAP_PROBE3(kinds, constants, 7, -8, 1L << 40);
	__asm__ volatile("" : "+r"(index), "+r"(table));
	STAP_PROBE3(kinds, hard, real, table[index], n);
	STAP_PROBE(kinds, bare);
	STAP_PROBE12(kinds, many, n, n, n, n, n, n, n, n, n, n, n, n + 1);
	if (n & 1)
		STAP_PROBE2(kinds, differs, n, 1);
	else
		STAP_PROBE2(kinds, differs, item->wide, 2);
}
#ifndef LIBRARY
int main(int argc, char **argv)
{
	struct item item = { -1, 65535, -3, -4 };
	int table[4] = { 0, 11, 22, 33 };
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++)
		pass(i, &item, 2.5, table, 2);
	return 0;
}
#endif
"""

CXX = """
#include <cstdlib>
namespace ns { struct shape {
	int sides;
	__attribute__((noinline)) int area(int scale) { asm volatile("" : "+r"(scale)); return sides * scale; }
	__attribute__((noinline)) int area(long scale, int &twice) { asm volatile("" : "+r"(scale)); return sides + scale + twice; }
}; }
int main(int argc, char **argv)
{
	ns::shape shape{3};
	int five = 5;
	for (int i = 0; i < atoi(argv[1]); i++)
		shape.area(i), shape.area(i + 100L, five);
}
"""

TEMPLATE = """
#include <cstdlib>
namespace ns { template <class T> struct box {
	__attribute__((noipa)) T get(T n) { return n; }
}; }
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++)
		ns::box<int>().get(i), ns::box<long>().get(i);
}
"""

OPERATORS = """
#include <cstdlib>
template <class T> struct box { T n; };
template <class T> __attribute__((noipa)) bool operator<=(const box<T> &a, const box<T> &b) { return a.n <= b.n; }
__attribute__((noipa)) unsigned long long operator"" _km(unsigned long long n) { return n; }
struct item { int id; char tag[4]; };
static item items[] = { { 40, "old" }, { 41, "new" } };
__attribute__((noipa)) item &choose(int n) { return items[n & 1]; }
__attribute__((noipa)) const int &number(int n) { return items[n & 1].id; }
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++) {
		bool is_less = box<int>{i} <= box<int>{1};
		choose(i).id += 5_km + number(i) == 0 && is_less;
	}
}
"""

RUST = """
mod shop {
    #[inline(never)]
    pub fn spin(n: u64) -> u64 { std::hint::black_box(n) }
    pub struct Cart<T>(pub T);
    impl<T: Copy + Into<u64>> Cart<T> {
        #[inline(never)]
        pub fn sum(&self, n: u64) -> u64 { spin(n) + std::hint::black_box(self.0.into()) }
    }
}
fn main() {
    let nr: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    std::process::exit(((0..nr).map(|n| shop::Cart(5u32).sum(n)).sum::<u64>() == 42) as i32);
}
"""


class PlacesTestCase(ProbeTestCase):
    def build(self, text, *options, name="program", compiler="gcc"):
        source = self.write(name + (".cc" if compiler == "g++" else ".c"), text)
        program = os.path.join(self.folder, name)
        subprocess.run([compiler, "-g", *options, "-o", program, source], check=True, capture_output=True)
        return program

    def fields(self, event, program, nr=1):
        return [fields for _, fields in self.run_probed(event, program=program, nr=nr)["seen"]]


class TestOperands(PlacesTestCase):
    def test_sizes_signs_and_places(self):
        for level in "-O0", "-O2":
            program = self.build(USDT, level)
            with self.subTest(level):
                self.assertEqual(self.fields(f"usdt:kinds:memory@{program}", program, 2), [
                    {"arg1": -1, "arg2": 65535, "arg3": -3, "arg4": -4, "arg5": n * 10} for n in range(2)])
                self.assertEqual(self.fields(f"usdt:kinds:constants@{program}", program), [{"arg1": 7, "arg2": -8, "arg3": 1 << 40}])
                self.assertEqual(self.fields(f"usdt:kinds:bare@{program}", program, 3), [{}] * 3)
                many = self.fields(f"usdt:kinds:many@{program}", program, 2)
                self.assertEqual(many, [{f"arg{i}": n + (i == 12) for i in range(1, 13)} for n in range(2)])

    def test_each_place_has_operands_of_its_own(self):
        program = self.build(USDT, "-O2")
        result = self.run_probed(f"usdt:kinds:differs@{program}", program=program, nr=4)
        self.assertEqual(sorted(result["values"].values()), [2, 2])
        self.assertEqual([(fields["arg1"], fields["arg2"]) for _, fields in result["seen"]], [(-4, 2), (1, 1), (-4, 2), (3, 1)])

    def test_what_cannot_be_fetched_is_left_out_and_refused_by_name(self):
        program = self.build(USDT, "-O2")
        note = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        operands = note.partition("Name: hard")[2].partition("Arguments: ")[2].split("\n")[0]
        fields = self.fields(f"usdt:kinds:hard@{program}", program, 2)
        for n, values in enumerate(fields):
            self.assertEqual(values["arg3"], n)
            self.assertNotIn("arg1", values, operands)
        event = f"usdt:kinds:hard@{program} $arg1"
        run = self.run_command(*self.script_arguments(NOTHING, event, [], ["--run", program, 1]))
        self.assertEqual([run.status, run.errors], [1, [f"perfscope: {event}: $arg1 is a float, which the kernel cannot show"]])

    def test_names_at_a_usdt_probe(self):
        program = self.build(USDT, "-O2")
        self.assertEqual(self.fields(f"usdt:kinds:bare@{program} item->wide n", program, 2),
                         [{"wide": -4, "n": n} for n in range(2)])


class TestLibraries(PlacesTestCase):
    def load(self):
        """A library with usdt probes, and Python code that calls it for each line."""
        library = self.build(USDT, "-O2", "-shared", "-fPIC", "-DLIBRARY", name="libkinds.so")
        code = (f"import ctypes, sys\nlibrary = ctypes.CDLL({library!r})\nitem = (ctypes.c_long * 2)()\ntable = (ctypes.c_int * 4)()\n"
                "for line in sys.stdin.buffer.raw:\n for i in range(100): "
                "library['pass'](i, item, ctypes.c_double(1), table, ctypes.c_long(0))\n")
        return library, self.hold_load(command=["/usr/bin/python3", "-c", code])

    def test_in_a_process_a_thread_and_on_all_cpus(self):
        for options in "-p", "-t", "-a":
            library, load = self.load()
            observer = self.start_script(SEEN, [f"usdt:kinds:many@{library}", f"uprobe:pass@{library} n"],
                                         options, *([] if options == "-a" else [load.pid]))
            load.go()
            run = observer.stop()
            self.assertEqual([run.status, run.stderr], [0, ""])
            self.assertEqual(run.json[0]["values"], {"usdt:kinds:many": 100, "uprobe:pass": 100})
            self.assertEqual([fields["n"] for name, fields in run.json[0]["seen"] if name == "uprobe:pass"], list(range(100)))


@unittest.skipUnless(shutil.which("g++"), "no C++ compiler here")
class TestCxx(PlacesTestCase):
    def test_overloads_and_this(self):
        program = self.build(CXX, "-O1", compiler="g++")
        result = self.run_probed(f"uprobe:ns::shape::area@{program}", program=program, nr=5)
        self.assertEqual(sorted(result["values"].values()), [5, 5])
        fields = self.fields(f'uprobe:"ns::shape::area(int)"@{program} scale this->sides', program, 2)
        self.assertEqual(fields, [{"scale": i, "sides": 3} for i in range(2)])
        fields = self.fields(f'uprobe:"ns::shape::area(long, int&)"@{program} scale twice', program, 2)
        self.assertEqual(fields, [{"scale": 100 + i, "twice": 5} for i in range(2)])

    def test_a_template_and_a_name_that_is_not_there(self):
        program = self.build(TEMPLATE, "-O1", compiler="g++")
        result = self.run_probed(f"uprobe:ns::box::get@{program}", program=program, nr=3)
        self.assertEqual(sorted(result["values"].values()), [3, 3])
        self.assertEqual(self.fields(f'uprobe:"ns::box<int>::get"@{program} n', program, 2), [{"n": 0}, {"n": 1}])
        for name, nearest in ("ns::bux::get", "ns::box::get"), ("main2", "main"):
            self.assert_refused(f"uprobe:{name}@{program}", 1, f"perfscope: uprobe:{name}@{program}: "
                                f"{program} has no function {name}; did you mean {nearest}?")


    def test_names_of_operators_and_of_suffixes(self):
        program = self.build(OPERATORS, "-O1", compiler="g++")
        for name, mangled in [("operator<=", "_ZleIiEbRK3boxIT_ES4_"), ('operator"" _km', "_Zli3_kmy")]:
            result = self.run_probed(f'uprobe:"{name}"@{program}', program=program, nr=3)
            self.assertEqual(result["values"], {"uprobe:" + mangled: 3})
            for text in name, f'"{name}"':
                listed = self.run_command("list", f"uprobe:{text}@{program}")
                self.assertEqual([line.split("@")[0] for line in listed.lines], ["functions", "  uprobe:" + mangled])

    def test_what_a_returned_reference_leads_to(self):
        program = self.build(OPERATORS, "-O1", compiler="g++")
        self.assertEqual(self.fields(f"uretprobe:choose@{program} $retval.id $retval.tag", program, 2),
                         [{"id": 40, "tag": "old"}, {"id": 41, "tag": "new"}])
        self.assertEqual(self.fields(f"uretprobe:number@{program} $retval", program, 2), [{"arg1": 40}, {"arg1": 41}])


@unittest.skipUnless(shutil.which("rustc"), "no Rust compiler here")
class TestRust(PlacesTestCase):
    def test_a_name_as_it_was_written(self):
        program = os.path.join(self.folder, "rust")
        subprocess.run(["rustc", "-g", "-O", "--crate-name", "rs", "-o", program, self.write("rs.rs", RUST)], check=True)
        for name in "rs::shop::spin", '"rs::shop::Cart<T>::sum"', "rs::shop::Cart::sum":
            result = self.run_probed(f"uprobe:{name}@{program} n", program=program, nr=3)
            self.assertEqual([fields for _, fields in result["seen"]], [{"n": i} for i in range(3)])


class TestFiles(PlacesTestCase):
    TEXT = ("#include <stdlib.h>\n__attribute__((noinline)) int called(int n) { __asm__ volatile(\"\" : \"+r\"(n)); return n; }\n"
            "int main(int argc, char **argv) { for (int i = 0; i < atoi(argv[1]); i++) called(i); return 0; }\n")

    def test_functions_of_one_name(self):
        other = self.write("other.c", "static __attribute__((noinline)) int same(int n) { __asm__ volatile(\"\" : \"+r\"(n)); return n; }\n"
                           "int other(int n) { return same(n + 1000); }\n")
        program = self.build("#include <stdlib.h>\nint other(int n);\nstatic __attribute__((noinline)) int same(int n) "
                             "{ __asm__ volatile(\"\" : \"+r\"(n)); return n; }\n"
                             "int main(int argc, char **argv) { for (int i = 0; i < atoi(argv[1]); i++) same(i), other(i); return 0; }\n",
                             "-O1", other)
        result = self.run_probed(f"uprobe:same@{program} n", program=program, nr=3)
        self.assertEqual(result["values"], {"uprobe:same": 3, "uprobe:same#2": 3})
        self.assertEqual([fields["n"] for _, fields in result["seen"]], [0, 1000, 1, 1001, 2, 1002])

    def test_kinds_of_programs(self):
        for options in ["-static"], ["-no-pie"], ["-static-pie"], ["-pie"]:
            with self.subTest(options):
                program = self.build(self.TEXT, *options)
                result = self.run_probed([f"uprobe:called@{program} n", f"uretprobe:called@{program} n=$retval:s32"],
                                         program=program, nr=50)
                self.assertEqual([fields["n"] for _, fields in result["seen"]], [i for n in range(50) for i in (n, n)])

    def test_a_file_that_was_deleted_while_it_runs(self):
        program = self.build(self.TEXT.replace("atoi(argv[1])", "getchar() + 0 * argc").replace("stdlib", "stdio"))
        load = self.hold_load(command=[program])
        os.remove(program)
        observer = self.start_script(SEEN, f"uprobe:called@/proc/{load.pid}/exe n", "-p", load.pid)
        load.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr], [0, ""])
        self.assertEqual([fields["n"] for _, fields in run.json[0]["seen"]], list(range(len(run.json[0]["seen"]))))
        self.assertGreater(len(run.json[0]["seen"]), 0)

    @unittest.skipUnless(shutil.which("unshare"), "no unshare here")
    def test_a_file_of_another_mount_namespace(self):
        program = self.build(self.TEXT)
        hidden = os.path.join(self.folder, "mounted")
        os.mkdir(hidden)
        code = f"mount -t tmpfs none {hidden} && cp {program} {hidden}/prog && read line; {hidden}/prog 40; read line; true"
        load = self.hold_load(command=["unshare", "-m", "sh", "-c", code])
        path = f"/proc/{load.pid}/root{hidden}/prog"
        self.wait_for(lambda: os.path.exists(path) and os.path.getsize(path) == os.path.getsize(program))
        observer = self.start_script(SEEN, f"uprobe:called@{path} n", "-a")
        load.go()
        run = observer.stop()
        self.assertEqual([run.status, run.stderr, run.json[0]["values"]], [0, "", {"uprobe:called": 40}])

    def wait_for(self, condition):
        for _ in range(200):
            if condition():
                return
            subprocess.run(["sleep", "0.05"], check=True)
        self.fail("it did not come")


if __name__ == "__main__":
    unittest.main()
