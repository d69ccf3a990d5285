# SPDX-License-Identifier: MIT
"""Print the flags to compile against or link with the Python that runs this."""

import os
import sys
import sysconfig


def cflags():
    paths = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    return " ".join(f"-isystem {path}" for path in dict.fromkeys(paths))


def libs():
    get = sysconfig.get_config_var
    version = get("LDVERSION") or get("VERSION")
    system_libs = f"{get('LIBS') or ''} {get('SYSLIBS') or ''}"
    if get("Py_ENABLE_SHARED"):
        folder = get("LIBDIR")
        return f"-L{folder} -Wl,-rpath,{folder} -lpython{version} {system_libs}"
    archive = os.path.join(get("LIBPL"), f"libpython{version}.a")
    return f"{archive} {system_libs} {get('LINKFORSHARED') or ''}"


if __name__ == "__main__":
    print({"cflags": cflags, "libs": libs, "executable": lambda: sys.executable,
           "suffix": lambda: sysconfig.get_config_var("EXT_SUFFIX")}[sys.argv[1]]())
