#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that rooms include only what stands to their left, and that each library stays in its room."""

import os
import re
import sys

# Each room and the rooms whose headers it may include, besides its own.
ROOMS = {
    "base": [],
    "decode": ["base"],
    "event": ["base", "decode"],
    "task": ["base"],
    "stream": ["base", "decode", "event", "task"],
    "recording": ["base", "decode", "event", "task", "stream"],
    "symbol": ["base", "decode", "event", "task", "stream"],
    "count": ["base"],
}
LEFT_OF_PYTHON = list(ROOMS)
ROOMS["python"] = LEFT_OF_PYTHON
ROOMS["script"] = LEFT_OF_PYTHON + ["python"]
ROOMS["cli"] = LEFT_OF_PYTHON + ["python", "script"]

# The room of each header in include/perfscope.
HEADERS = {
    "base": "bytes cleanup error leftover log monotonic nearest stand_in text text_table version",
    "decode": "byte_order field machine sample sample_field sample_text",
    "event": "demangle format pmu probe region_spec schema source spec syscalls tracepoint",
    "task": "tasks",
    "stream": "boundary clock cpu_watch losses merge passes record ring session target",
    "symbol": "lookup maps symbol",
    "count": "counter region region_share region_table region_text regions",
    "python": "docstrings python python_types region_tools",
    "script": "binding child dispatch policy program_regions region_totals run_totals script",
    "cli": "cli deadline doctor hotplug list loop options output run signals summary user workload",
}
ROOM_OF_HEADER = {f"{name}.h": room for room, names in HEADERS.items() for name in names.split()}

# What is searched for in a file's code, and the files that may have it.
LIBRARIES = [
    ("libtraceevent", r"#\s*include\s*<(traceevent/|event-parse\.h|event-utils\.h|trace-seq\.h)",
     r"src/event/format[^/]*\.[ch]"),
    ("libpfm4", r"#\s*include\s*<perfmon/", r"src/event/pmu[^/]*\.[ch]"),
    ("libperf", r"#\s*include\s*<(perf/|internal/(?!pycore_))", r"src/stream/session[^/]*\.[ch]"),
    ("libdw and libelf", r"#\s*include\s*<(elfutils/|gelf\.h|libelf\.h|dwarf\.h)", r"src/symbol/.*|src/event/probe[^/]*\.[ch]"),
    ("libiberty", r"#\s*include\s*<(libiberty/|demangle\.h)", r"src/event/demangle\.c"),
    ("zstd", r"#\s*include\s*<zstd", r"src/recording/.*"),
    ("Python", r"#\s*include\s*<(Python|structmember|frameobject|internal/pycore_\w+)\.h>",
     r"src/(python|script)/.*|include/perfscope/python\.h"),
    ("stderr", r"\b(stderr|STDERR_FILENO|perror|warnx?|errx?)\b(?=\s*[,;)(])", r"src/base/log\.c|src/cli/.*"),
]

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def read_code(path):
    """The text of @path with comments blanked, line by line as it was."""
    with open(path, encoding="utf-8") as file:
        return COMMENT_OR_STRING.sub(lambda match: match[1] or "\n" * match[0].count("\n"), file.read())


def room_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else ROOM_OF_HEADER.get(parts[-1])


def line_of(code, offset):
    return code.count("\n", 0, offset) + 1


def check_order(path, code):
    room = room_of(path)
    if room not in ROOMS:
        yield 1, f"is of no room: name it in {os.path.relpath(__file__)}"
        return
    for match in INCLUDE.finditer(code):
        line, name = line_of(code, match.start(1)), match[2]
        if match[1] == '"' and "/" in name:
            yield line, f'includes "{name}": only files of its own folder stand in quotes'
        if not name.startswith("perfscope/"):
            continue
        other = ROOM_OF_HEADER.get(os.path.basename(name))
        if other is None:
            yield line, f"includes {name}, which is of no room: name it in {os.path.relpath(__file__)}"
        elif other != room and other not in ROOMS[room]:
            yield line, f"includes {name}: {room} does not stand to the right of {other}"


def check_libraries(path, code):
    for name, pattern, allowed in LIBRARIES:
        match = re.search(pattern, code)
        if match and not re.fullmatch(allowed, path):
            yield line_of(code, match.start()), f"uses {name}, which belongs to {allowed}"


def check_cli_is_free_of_python(codes):
    """cli must not reach Python.h through our headers."""
    reaches = {path for path, code in codes.items() if "<Python.h>" in code}
    for _ in codes:
        new = {path for path, code in codes.items()
               if any(f"include/{name}" in reaches for _, name in INCLUDE.findall(code))}
        if new <= reaches:
            break
        reaches |= new
    for path in sorted(reaches):
        if room_of(path) == "cli":
            yield path, 1, "reaches Python.h through its headers"


def check(root):
    """All faults below @root, as (path, line, text)."""
    codes = {}
    for top in ("include/perfscope", "src"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in files:
                if file.endswith((".c", ".h")):
                    path = os.path.join(folder, file)
                    codes[os.path.relpath(path, root)] = read_code(path)
    for path, code in sorted(codes.items()):
        for line, text in [*check_order(path, code), *check_libraries(path, code)]:
            yield path, line, text
    yield from check_cli_is_free_of_python(codes)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    faults = list(check(root))
    for path, line, text in faults:
        print(f"{path}:{line}: {text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
