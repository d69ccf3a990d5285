# SPDX-License-Identifier: MIT
"""Regions of Python programs of --run arrive in the script's totals."""

import os
import signal
import unittest

from livetest import skip_unless_root
from pythonregions import TELL, PythonTestCase
from test_regions import C_PROGRAM

TELL_OFTEN = TELL + """
def __interval__():
    print(json.dumps({"now": by_thread()}), flush=True)
"""


class TestPrograms(PythonTestCase):
    def test_fresh_pages_are_counted_exactly(self):
        told = self.run_program("work(100)\nwork(11)\n")
        self.assertEqual([list(told["totals"]), told["totals"]["work"]], [["run", "work"], [2, 0, 111]])

    def test_functions_generators_and_threads(self):
        told = self.run_program("""
@perfscope.region("function")
def function():
    pages.touch(6)

@perfscope.region("generator")
def generator(nr):
    for i in range(nr):
        pages.touch(2)
        yield i

def warm():
    function()
    for _ in generator(1):
        pages.touch(30)

warm()
before = {name: total.values["page-faults"] for name, total in perfscope.regions().items()}
function()
for _ in generator(5):
    pages.touch(30)
after = {name: total.values["page-faults"] for name, total in perfscope.regions().items()}
print(json.dumps({"faults": [after[name] - before[name] for name in ("function", "generator")]}))
in_threads(8, work, 30)
""")
        self.assertEqual(self.ended.json[0], {"faults": [6, 10]})
        self.assertEqual([told["totals"][name][:2] for name in ("function", "generator")], [[2, 0], [2, 0]])
        self.assertEqual(told["totals"]["work"], [8, 0, 240])

    def test_each_thread_of_a_program_that_runs_stands_for_itself(self):
        self.run_program("""
def stay(nr):
    work(nr)
    done.wait()
    time.sleep(0.5)

done = threading.Barrier(3)
threads = [threading.Thread(target=stay, args=(nr,)) for nr in (10, 20)]
for thread in threads:
    thread.start()
done.wait()
print(json.dumps({"tids": [thread.native_id for thread in threads]}), flush=True)
""", script=TELL_OFTEN, options=("-i", "20"))
        first, second = next(told["tids"] for told in self.ended.json if "tids" in told)
        now = [told["now"]["work"] for told in self.ended.json if "work" in told.get("now", {})]
        self.assertIn({str(first): [1, 0, 10], str(second): [1, 0, 20]}, now)
        self.assertEqual(now[-1] if "0" in now[-1] else {"0": [2, 0, 30]}, {"0": [2, 0, 30]})

    @skip_unless_root
    def test_threads_of_one_number_in_other_containers_are_added_up(self):
        # However late they start, both live until they were seen together.
        script = TELL + f"""
def __interval__():
    now = by_thread()
    print(json.dumps({{"now": now}}), flush=True)
    if sum(calls for calls, *_ in now.get("work", {{}}).values()) == 2:
        open({os.path.join(self.folder, "program.py.seen")!r}, "w").close()
"""
        self.run_program("""
import subprocess

def stay(nr):
    work(nr)
    print(json.dumps({"tid": threading.get_native_id(), "pid": os.getpid()}), flush=True)
    end = time.monotonic() + 30
    while not os.path.exists(f"{sys.argv[0]}.seen") and time.monotonic() < end:
        time.sleep(0.01)

if sys.argv[1] == "all":
    me = f"{sys.executable} {sys.argv[0]}"
    # The second process of one container, and the second thread of the first process of another.
    children = [subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", line])
                for line in (f"{me} process; true", f"exec {me} thread")]
    for child in children:
        child.wait()
elif sys.argv[1] == "process":
    stay(10)
else:
    in_threads(1, stay, 20)
""", "all", script=script, options=("-i", "20"))
        self.assertEqual(sorted(told["pid"] for told in self.ended.json if "pid" in told), [1, 2])
        self.assertEqual({told["tid"] for told in self.ended.json if "tid" in told}, {2})
        self.assertIn({"2": [2, 0, 30]}, [told["now"].get("work") for told in self.ended.json if "now" in told])

    def test_a_program_and_its_children_of_any_language_add_up(self):
        told = self.run_program(f"""
import subprocess
work(10)
subprocess.run(["{C_PROGRAM}", "pass", "20"], check=True, stdout=subprocess.DEVNULL)
if sys.argv[1] == "parent":
    subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
""", "parent")
        self.assertEqual(told["totals"]["work"], [4, 0, 60])

    def test_the_child_of_a_fork_counts_for_itself(self):
        told = self.run_program("""
work(5)
with perfscope.region("parent"):
    pid = os.fork()
    if not pid:
        work(2000)
        os._exit(0)
    os.waitpid(pid, 0)
""")
        calls, incomplete, faults = told["totals"]["work"]
        self.assertEqual([calls, incomplete, told["totals"]["parent"][:2]], [2, 0, [1, 0]])
        self.assertIn(faults, range(2005, 2105))  # beside its own, the child copies pages of the interpreter
        self.assertLess(told["totals"]["parent"][2], 500)

    def test_pools_of_processes_are_added_up(self):
        for method in ("fork", "spawn"):
            told = self.run_program("""
if __name__ == "__main__":
    import multiprocessing
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(work, [1000] * 4, 1)
        pool.close()
        pool.join()
""", method)
            calls, incomplete, faults = told["totals"]["work"]
            self.assertEqual([calls, incomplete], [4, 0])
            self.assertIn(faults, range(4000, 4200))

    def test_a_program_that_counts_for_itself_too(self):
        told = self.run_program("""
perfscope.configure("task-clock,page-faults")
work(10)
perfscope.reset()
work(7)
print(json.dumps({"own": [[total.calls, total.values["page-faults"]] for total in perfscope.regions().values()]}))
""")
        self.assertEqual([self.ended.json[0], told["totals"]["work"]], [{"own": [[1, 7]]}, [2, 0, 17]])


class TestEnds(PythonTestCase):
    def work(self, *args, **options):
        return self.run_program(*args, **options)["totals"]["work"]

    def test_exceptions_and_exits_leave_the_pass(self):
        for what, status in (("sys.exit(3)", 3), ("1 / 0", 1)):
            self.assertEqual(self.work(f"work(4)\nwith perfscope.region('work'):\n    {what}\n", status=status)[:2], [2, 0])

    def test_ends_without_them_leave_it_incomplete(self):
        for what, status in (("os._exit(4)", 4), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)):
            program = f"work(4)\nwith perfscope.region('work'):\n    pages.touch(9)\n    {what}\n"
            self.assertEqual(self.work(program, status=status), [1, 1, 4])

    def test_a_daemon_thread_that_is_inside_at_the_end(self):
        self.assertEqual(self.work("""
inside = threading.Event()

def stay():
    with perfscope.region("work"):
        inside.set()
        time.sleep(60)

threading.Thread(target=stay, daemon=True).start()
inside.wait()
work(3)
"""), [1, 1, 3])

    def test_an_exec_inside_a_pass(self):
        self.assertEqual(self.work("""
work(3)
if sys.argv[1] == "first":
    perfscope.region("work").__enter__()
    os.execv(sys.executable, [sys.executable, sys.argv[0], "second"])
""", "first"), [2, 1, 6])

    def test_a_generator_that_is_never_finished(self):
        self.assertEqual(self.work("""
def generator():
    with perfscope.region("work"):
        yield
        yield

kept = generator()
next(kept)
pages.touch(50)
work(3)
os._exit(0)
"""), [1, 1, 3])


if __name__ == "__main__":
    unittest.main()
