# SPDX-License-Identifier: MIT
"""Print how to compile against, link with and install for the Python that runs this, or with --sysroot FOLDER for the
same version of Python there, which may be of another machine.

`make` prints all as NAME=value words, the blanks inside a value as '|'; a name prints that value alone.
"""

import argparse
import glob
import os
import platform
import site
import sys
import sysconfig


SYSROOT = ""


def use_sysroot(folder):
    """Let sysconfig tell of the Python below @folder: what it was built with is a module of its library."""
    global SYSROOT
    found = glob.glob(f"{folder}/usr/lib/python{sysconfig.get_python_version()}/_sysconfigdata_*.py")
    if not found:
        sys.exit(f"perfscope: {folder} has no Python {sysconfig.get_python_version()}")
    SYSROOT = folder
    sys.path.append(os.path.dirname(found[0]))
    os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = os.path.basename(found[0])[:-len(".py")]


def check_kind():
    """End where perfscope cannot work: it reads the frames of the interpreter, which others lay out otherwise."""
    known = "perfscope is for CPython 3.9 to 3.13"
    if sys.implementation.name != "cpython" or not (3, 9) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"perfscope: {sys.executable} is {platform.python_implementation()} {sysconfig.get_python_version()}; {known}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit(f"perfscope: {sys.executable} is built without the GIL (free-threaded), on which perfscope relies; {known} with it")


def cflags():
    paths = [SYSROOT + sysconfig.get_path("include"), SYSROOT + sysconfig.get_path("platinclude")]
    if not any(os.path.exists(os.path.join(path, "Python.h")) for path in paths):
        sys.exit(f"perfscope: {sys.executable} has no Python.h in {paths[0]}")
    return " ".join(f"-isystem {path}" for path in dict.fromkeys(paths))


def uses_shared_library():
    """Whether this Python itself runs from a libpython3.x.so. Debian's does not, though Debian ships one."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        return "/libpython" in file.read()


def libs():
    """As the interpreter itself is linked: Debian's static one calls a handler in a fifth less time than its shared one."""
    get = sysconfig.get_config_var
    version = get("LDVERSION") or get("VERSION")
    system_libs = f"{get('LIBS') or ''} {get('SYSLIBS') or ''}"
    archive = os.path.join(SYSROOT + get("LIBPL"), f"libpython{version}.a")
    if os.path.exists(archive) and not uses_shared_library():
        return f"-no-pie {archive} {system_libs} {get('MODLIBS') or ''} {get('LINKFORSHARED') or ''}"
    folder = get("LIBDIR")
    return f"-L{SYSROOT}{folder} -Wl,-rpath,{folder} -lpython{version} {system_libs}"


def site_folder(prefix, is_default):
    """Where modules go below @prefix: the folder that this Python searches by itself, if there is one.

    Where there is none and nobody chose the prefix, into this Python's own, unless a distribution looks after that.
    """
    for folder in site.getsitepackages():
        inside = os.path.relpath(folder, prefix)
        if inside.startswith("lib"):
            return folder
    if is_default and sys.prefix != "/usr":
        return sysconfig.get_path("platlib")
    return os.path.join(prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", default="/usr/local")
    parser.add_argument("--prefix-is-default", action="store_true", help="nobody chose the prefix")
    parser.add_argument("--sysroot")
    parser.add_argument("name")
    options = parser.parse_args()
    if options.sysroot:
        use_sysroot(options.sysroot)
    check_kind()
    values = {
        "cflags": cflags,
        "libs": libs,
        "executable": lambda: sys.executable,
        "home": lambda: f"{sys.base_prefix}:{sys.base_exec_prefix}",
        "suffix": lambda: sysconfig.get_config_var("EXT_SUFFIX"),
        "site": lambda: site_folder(options.prefix, options.prefix_is_default),
    }
    if options.name == "make":
        print(" ".join(f"{name}={'|'.join(value().split())}" for name, value in values.items()))
    else:
        print(values[options.name]())


if __name__ == "__main__":
    main()
