# SPDX-License-Identifier: MIT
"""What pip makes of the tree: a wheel that installs, works and goes again, and a source archive that builds."""

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.relpath(os.environ.get("PS_TEST_BUILD", os.path.join(ROOT, "build")), ROOT)
STUBS = ["perfscope-stubs/__init__.pyi", "perfscope-stubs/perf_events.pyi"]


def run(*command, **options):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("MAKE", "MFLAGS", "PYTHON", "PIP_"))}
    environment.update(BUILD=BUILD, PYTHONDONTWRITEBYTECODE="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search('PS_VERSION "(.*)"', read("include/perfscope/version.h"))[1]


class PackageTestCase(unittest.TestCase):
    @classmethod
    def make_folder(cls):
        folder = tempfile.TemporaryDirectory(prefix="perfscope-test-")
        cls.addClassCleanup(folder.cleanup)
        return folder.name


@unittest.skipIf("ASAN_OPTIONS" in os.environ, "a build with flags of its own is not what pip takes")
class TestWheel(PackageTestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.make_folder()
        run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "-w", folder, ROOT)
        [name] = os.listdir(folder)
        cls.wheel = os.path.join(folder, name)

    def pip(self, environment, *arguments):
        """Let pip work on @environment, which has no pip of its own."""
        return run(sys.executable, "-m", "pip", "--python", os.path.join(environment, "bin", "python"), *arguments)

    def install(self):
        """A virtual environment with the wheel in it: its folder, its Python."""
        environment = os.path.join(self.make_folder(), "venv")
        run(sys.executable, "-m", "venv", "--without-pip", environment)
        before = self.files_below(environment)
        self.pip(environment, "install", "--no-index", self.wheel)
        return environment, before

    def files_below(self, folder):
        return {os.path.join(path, name) for path, _, names in os.walk(folder) for name in names}

    def record(self, name, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        return f"{name},sha256={digest},{len(content)}"

    def test_it_holds_the_module_with_its_stubs_and_no_command(self):
        suffix = run(sys.executable, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").strip()
        info = f"perfscope-{version()}.dist-info"
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertEqual(sorted(wheel.namelist()), sorted(
                [f"perfscope{suffix}", "perfscope.pyi", *STUBS] +
                [f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")]))
            self.assertEqual(wheel.read("perfscope.pyi").decode(), read("src/python/perfscope.pyi"))
            metadata = wheel.read(f"{info}/METADATA").decode()
            self.assertEqual(wheel.read(f"{info}/RECORD").decode().splitlines(),
                             [self.record(name, wheel.read(name)) for name in wheel.namelist()[:-1]] + [f"{info}/RECORD,,"])
        fields, _, description = metadata.partition("\n\n")
        self.assertLessEqual({"Name: perfscope", f"Version: {version()}", "License-Expression: MIT", "Requires-Python: >=3.9,<3.14",
                              "Classifier: Programming Language :: Python :: 3.13"}, set(fields.split("\n")))
        self.assertEqual(description, read("README.md"))

    def test_what_is_installed_works_and_goes_again(self):
        environment, before = self.install()
        python = os.path.join(environment, "bin", "python")
        program = ("import importlib.metadata, perfscope; from perfscope.perf_events import PerfEventGroup;"
                   "group = PerfEventGroup(('page-faults',)); group.start(); print(*group.stop());"
                   "print(perfscope.__file__, perfscope.__version__, importlib.metadata.version('perfscope'))")
        counted, told = run(python, "-c", program, cwd=environment).splitlines()
        path, *versions = told.split()
        self.assertEqual(counted, "page-faults")
        self.assertTrue(path.startswith(environment), path)
        self.assertEqual(versions, [version(), version()])
        self.pip(environment, "uninstall", "--yes", "perfscope")
        self.assertEqual(self.files_below(environment), before)

    @unittest.skipUnless(shutil.which("mypy", path="/usr/bin"), "mypy is not installed")
    def test_type_checkers_find_its_stubs(self):
        mypy = ("/usr/bin/mypy", "--strict", "--cache-dir=/dev/null", "--python-executable")
        if subprocess.run([*mypy, sys.executable, "-c", ""], capture_output=True, check=False).returncode != 0:
            self.skipTest("this mypy is too old for this Python")
        environment, _ = self.install()
        program = os.path.join(environment, "program.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write("import perfscope\nfrom perfscope.perf_events import PerfEventGroup\n"
                       "reveal_type(perfscope.syscall_name(1))\nreveal_type(PerfEventGroup(('cycles',)).stop())\n"
                       "reveal_type(perfscope.regions()['x'].calls)\nreveal_type(perfscope.regions(True)['x'][0].values)\n")
        told = run(*mypy, os.path.join(environment, "bin", "python"), program)
        self.assertEqual(re.findall(r'py:(\d+): (.*)', told),
                         [("3", 'note: Revealed type is "Union[builtins.str, None]"'),
                          ("4", 'note: Revealed type is "builtins.dict[builtins.str, builtins.int]"'),
                          ("5", 'note: Revealed type is "builtins.int"'),
                          ("6", 'note: Revealed type is "builtins.dict[builtins.str, Union[builtins.int, None]]"')])


class TestStub(unittest.TestCase):
    def test_it_says_what_the_module_has(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("this Python has no mypy")
        import perfscope
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(perfscope.__file__), "MYPYPATH": os.path.join(ROOT, "src", "python")}
        with tempfile.TemporaryDirectory(prefix="perfscope-test-") as folder:
            result = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "perfscope"], env=environment, cwd=folder,
                                    capture_output=True, text=True, timeout=200, check=False)
        # Which fields an event has is known when it is read.
        self.assertEqual(result.stdout, "perfscope.PerfEvent.__getattr__ is not present at runtime\n")


@unittest.skipUnless(os.path.exists(os.path.join(ROOT, ".git")) and shutil.which("git"), "a source archive is made in a clone")
class TestSourceArchive(PackageTestCase):
    def test_it_holds_what_git_knows_and_builds(self):
        folder = self.make_folder()
        code = f"import sys; sys.path.insert(0, 'scripts/build'); import python_package as p; p.build_sdist({folder!r})"
        run(sys.executable, "-c", code, cwd=ROOT)
        tree = os.path.join(folder, f"perfscope-{version()}")
        with tarfile.open(tree + ".tar.gz") as archive:
            names = [os.path.relpath(name, os.path.basename(tree)) for name in archive.getnames()]
            archive.extractall(folder)
        known = [path for path in run("git", "ls-files", cwd=ROOT).splitlines() if os.path.lexists(os.path.join(ROOT, path))]
        self.assertEqual(sorted(names), sorted([*known, "PKG-INFO"]))
        # To build it takes a minute: that make knows how is shown by what it would do.
        steps = run("make", "-n", "install-module", f"PYTHON={sys.executable}", "V=1", f"LIBPERF_DIR={ROOT}/build/linux", cwd=tree)
        self.assertIn(f"-c -o {BUILD}/obj/python/module.o src/python/module.c\n", steps)


if __name__ == "__main__":
    unittest.main()
