# SPDX-License-Identifier: MIT
"""The kernel's own trace: a private instance of it, its lines, and what a print format says of the values in a line."""

import bisect
import collections
import os
import re
import time

from livetest import TRACEFS

Line = collections.namedtuple("Line", "cpu flags time_us name text")

CONVERSION = re.compile(r"%%|%([-#0 +]*(?:\*|\d*)(?:\.(?:\*|\d+))?)(hh|h|ll|l|L|z)?"
                        r"(p(?:I6c|I6|i6c|i6|I4|i4|ISpc|ISc|ISp|IS|UL|Ul|UB|Ub|U|MF|M|m|S|s|[*]pbl)?|[diuxXosc])")
# REC->name, with casts before it and brackets around it; or __get_str(name).
FIELD = re.compile(r"(?:\(\s*(?:unsigned |signed )?[a-z_0-9 ]+[ *]*\)\s*|\()*(?:REC->(\w+)|__get(?:_rel)?_str\((\w+)\))\)*")
BITS = {"hh": 8, "h": 16, None: 32}


def sweep():
    """Remove the instances of tests that were killed: their rings hold memory, and their events stay enabled."""
    folder = f"{TRACEFS}/instances"
    for name in os.listdir(folder):
        match = re.fullmatch(r"perfscope_[a-z_]+_([0-9]+)_([0-9]+)", name)
        if match and start_time(match[1]) != int(match[2]):
            Instance.at(os.path.join(folder, name)).__exit__()


def start_time(pid):
    """When the process began, in ticks after boot; None: it is gone. A number alone may be of another process by now."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return None


class Instance:
    """A trace instance, removed on every way out: `with Instance("name") as instance:`"""

    def __init__(self, name):
        self.path = f"{TRACEFS}/instances/perfscope_{name}_{os.getpid()}_{start_time(os.getpid())}"

    @classmethod
    def at(cls, path):
        """The one at @path, made by another process."""
        instance = cls("")
        instance.path = path
        return instance

    def __enter__(self):
        sweep()
        os.mkdir(self.path)
        try:
            # The clock that events have by default; addresses as they are in records.
            self.write("trace_clock", "mono")
            self.write("options/hash-ptr", "0")
            self.write("buffer_size_kb", "16384")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.write("events/enable", "0")
        for _ in range(50):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)
        return os.rmdir(self.path)

    def write(self, name, text):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def enable(self, events, text):
        """Enable @events with the filter @text."""
        for event in events:
            folder = "events/" + event.replace(":", "/")
            self.write(f"{folder}/filter", text)
            self.write(f"{folder}/enable", "1")

    def lost(self):
        """What the rings dropped, of all CPUs."""
        total = 0
        for cpu in os.listdir(f"{self.path}/per_cpu"):
            with open(f"{self.path}/per_cpu/{cpu}/stats", encoding="ascii") as file:
                counts = dict(line.split(": ") for line in file.read().splitlines())
            total += int(counts["overrun"]) + int(counts["dropped events"])
        return total

    def lines(self, pid):
        """The lines of the thread @pid, oldest first on each CPU."""
        head = re.compile(rf".{{16,}}?-{pid} +\[(\d+)\] (\S+) +(\d+)\.(\d{{6}}): ([^\n]*)", re.S)
        any_head = re.compile(r".{16,}?-\d+ +\[\d+\] ", re.S)
        lines, is_ours = [], False
        with open(f"{self.path}/trace", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for line in file:
                match = head.match(line)
                if match:
                    cpu, flags, seconds, micros, text = match.groups()
                    name = re.match(r"\w+", text)[0]
                    text = text[len(name):].removeprefix(": ")
                    lines.append(Line(int(cpu), flags, int(seconds) * 1_000_000 + int(micros), name, text))
                    is_ours = True
                elif any_head.match(line) or line.startswith("#"):
                    is_ours = False
                elif is_ours:
                    lines[-1] = lines[-1]._replace(text=f"{lines[-1].text}\n{line[:-1]}")
        return lines


class Symbols:
    """The kernel's functions by address."""

    def __init__(self):
        symbols = []
        with open("/proc/kallsyms", encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words[1] in "tTwW":
                    symbols.append((int(words[0], 16), words[2]))
        symbols.sort()
        self.starts = [start for start, _ in symbols]
        self.names = [name for _, name in symbols]

    def find(self, address):
        """All names of the function at @address."""
        at = bisect.bisect_right(self.starts, address) - 1
        start = self.starts[at]
        first = bisect.bisect_left(self.starts, start)
        return set(self.names[first:at + 1])


def split_arguments(text):
    """The arguments of a print format, split at commas that are in no brackets and no string."""
    arguments, depth, start, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at += re.compile(r'"(?:\\.|[^"\\])*"').match(text, at).end() - at - 1
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
        elif char == "," and not depth:
            arguments.append(text[start:at].strip())
            start = at + 1
        at += 1
    return arguments + [text[start:].strip()] if text.strip() else []


class PrintFormat:
    """The print format of an event, by which a line of the kernel is taken apart."""

    def __init__(self, event):
        with open(f"{TRACEFS}/events/{event.replace(':', '/')}/format", encoding="utf-8") as file:
            text = file.read().partition("print fmt: ")[2].strip()
        literal = re.match(r'"((?:\\.|[^"\\])*)"', text)
        self.text = literal[1].replace(r"\n", "\n").replace(r"\t", "\t").replace(r'\"', '"')
        arguments = iter(split_arguments(text[literal.end():].lstrip(" ,")))
        pattern, at, self.shown = "", 0, []
        for match in CONVERSION.finditer(self.text):
            pattern += re.escape(self.text[at:match.start()])
            at_before, at = at, match.end()
            if match[0] == "%%":
                pattern += "%"
                continue
            has_star = "*" in match[1] or match[3] == "p*pbl"
            if has_star:
                next(arguments, None)
            argument = next(arguments, "")
            if match.start() and at_before == match.start() and self.shown:
                continue  # no text stands between: shown as one with the conversion before
            field = FIELD.fullmatch(argument)
            self.shown.append((match, (field[1] or field[2]) if field and not has_star else None, argument))
            pattern += "(.*?)"
        self.pattern = re.compile(pattern + re.escape(self.text[at:]).replace("\\\n", "\n"), re.S)
        self.has_symbols = any(match[3] in ("pS", "ps") for match, _, _ in self.shown)

    def values(self, text):
        """(conversion, field or None, argument, text) of each value in the kernel's @text."""
        match = self.pattern.fullmatch(text)
        if not match:
            raise AssertionError(f"not of the format {self.text!r}: {text!r}")
        return [(*shown, value) for shown, value in zip(self.shown, match.groups())]


def format_value(conversion, value):
    """@value as the conversion shows it; None: not known here."""
    options, length, kind = conversion.groups()
    if kind in "di":
        bits = BITS.get(length, 64)
        value &= (1 << bits) - 1
        return f"%{options}d" % (value - (1 << bits) if value >> (bits - 1) else value)
    if kind in "uxXo":
        shown = f"%{options}{kind.replace('u', 'd')}" % (value & (1 << BITS.get(length, 64)) - 1)
        return re.sub("^( *)0o", r"\g<1>0", shown)
    if kind == "s" and isinstance(value, str):
        return f"%{options}s" % value
    if kind == "p" and isinstance(value, int):
        return f"{value:016x}"
    if kind == "pI4":
        return ".".join(map(str, value))
    if kind == "pM":
        return ":".join(f"{byte:02x}" for byte in value)
    return None
