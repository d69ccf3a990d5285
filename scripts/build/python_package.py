# SPDX-License-Identifier: MIT
"""The build backend of pyproject.toml: what pip calls to make a wheel of the extension module, or a source archive.

`make install-module` builds and says which files there are; here they are only packed. Nothing but the standard library is
used, so that pip needs no network and no package beside itself. As for make, the environment may set BUILD, CC and CFLAGS.
"""

import ast
import base64
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_project():
    """The table [project] of pyproject.toml. Python 3.9 has no tomllib; texts and lists of texts are Python's literals too."""
    table = re.search(r"^\[project\]\n(.*?)(?=^\[|\Z)", read("pyproject.toml"), re.M | re.S)[1]
    entries = re.findall(r"^([a-z-]+) = (.*?)(?=^[a-z-]+ = |\Z)", table, re.M | re.S)
    return {key: ast.literal_eval(value.strip()) for key, value in entries}


def read_version():
    return re.search(r'PS_VERSION "(.*)"', read("include/perfscope/version.h"))[1]


def metadata():
    """The text of METADATA, and of PKG-INFO in a source archive."""
    project = read_project()
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {read_version()}",
             f"Summary: {project['description']}", f"Keywords: {','.join(project['keywords'])}",
             f"License-Expression: {project['license']}"]
    lines += [f"License-File: {path}" for path in project["license-files"]]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    lines += [f"Requires-Python: {project['requires-python']}", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + read(project["readme"])


def release():
    return f"{read_project()['name']}-{read_version()}"


def tag():
    """Which Pythons can import the module: cp311-cp311-linux_x86_64. Its name says so to Python: cpython-311-x86_64-linux-gnu."""
    abi = "cp" + sysconfig.get_config_var("SOABI").split("-")[1]
    machine = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"cp{sys.version_info[0]}{sys.version_info[1]}-{abi}-{machine}"


def dist_info():
    """What a wheel says of itself, as {path: text}, but for its RECORD."""
    folder = f"{release()}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: perfscope {read_version()}\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    licenses = {f"{folder}/licenses/{path}": read(path) for path in read_project()["license-files"]}
    return {f"{folder}/METADATA": metadata(), f"{folder}/WHEEL": wheel, **licenses}


def run(command, **options):
    """Run @command, as no part of a make that may be behind us."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    try:
        return subprocess.run(command, env=environment, check=False, **options)
    except FileNotFoundError as error:
        sys.exit(f"perfscope: {error.filename} is missing")


def install_module(folder):
    """Build the module for this Python, and have make put all that belongs to it into @folder."""
    build = os.environ.get("BUILD") or f"build/wheel-{sys.implementation.cache_tag}"
    command = ["make", "--no-print-directory", "install-module", f"BUILD={build}", f"PYTHON={sys.executable}", "DESTDIR=",
               f"PYTHON_SITE={folder}"]
    if run(command).returncode != 0:
        sys.exit("perfscope: the module cannot be built; make says above why")


def files_below(folder):
    """All files in @folder, as paths from there, in the order of their names."""
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


def source_files():
    """What git knows of this tree: no rule here has to tell sources from what builds and editors leave."""
    git = run(["git", "ls-files", "-z"], stdout=subprocess.PIPE)
    if git.returncode != 0 or not git.stdout:
        sys.exit("perfscope: a source archive is made of the files that git knows: it can be made in a clone only")
    return [path for path in os.fsdecode(git.stdout).split("\0") if path and os.path.lexists(path)]


class WheelWriter:
    """A wheel that is written: each file goes into its RECORD too. The same files make the same bytes."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = ""

    def add(self, name, content, mode=0o644):
        info = zipfile.ZipInfo(name)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record += f"{name},sha256={digest},{len(content)}\n"

    def finish(self):
        name = f"{release()}.dist-info/RECORD"
        self.add(name, f"{self.record}{name},,\n".encode())
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{release()}-{tag()}.whl"
    with tempfile.TemporaryDirectory(prefix="perfscope-wheel-") as folder:
        install_module(folder)
        wheel = WheelWriter(os.path.join(wheel_directory, name))
        for path in files_below(folder):
            full = os.path.join(folder, path)
            with open(full, "rb") as file:
                wheel.add(path, file.read(), os.stat(full).st_mode & 0o777)
    for path, text in dist_info().items():
        wheel.add(path, text.encode())
    wheel.finish()
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    for path, text in dist_info().items():
        full = os.path.join(metadata_directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
    return f"{release()}.dist-info"


def build_sdist(sdist_directory, config_settings=None):
    def of_nobody(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    name = f"{release()}.tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in source_files():
            archive.add(path, f"{release()}/{path}", filter=of_nobody)
        text = metadata().encode()
        info = tarfile.TarInfo(f"{release()}/PKG-INFO")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return name
