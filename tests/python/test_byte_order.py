# SPDX-License-Identifier: MIT
"""Tracepoints of machines of either byte order and width: what is put into the raw data comes out by name."""

import struct
import sys
import unittest

import eventmaker
from hypothesis import given, settings
from hypothesis import strategies as st
from records import format_text

perfscope = eventmaker.perfscope

HOST = "<" if sys.byteorder == "little" else ">"
LONG_SIZES = {"x86_64": 8, "aarch64": 8, "i686": 4, "s390x": 8, "armv7b": 4}

INTS = {("unsigned char", 1): "B", ("signed char", 1): "b", ("unsigned short", 2): "H", ("short", 2): "h",
        ("unsigned int", 4): "I", ("int", 4): "i", ("u64", 8): "Q", ("s64", 8): "q"}
TEXT = st.text(st.characters(min_codepoint=1, blacklist_categories=("Cs",)), max_size=8)


def values(code):
    bits = 8 * struct.calcsize(f"={code}")
    return st.integers(-2**(bits - 1), 2**(bits - 1) - 1) if code.islower() else st.integers(0, 2**bits - 1)


def cpumask(order, long_size, cpus):
    """The bitmap of @cpus in as many longs as they need, and one."""
    code = {4: "I", 8: "Q"}[long_size]
    longs = [0] * (max(cpus, default=0) // (8 * long_size) + 2)
    for cpu in cpus:
        longs[cpu // (8 * long_size)] |= 1 << cpu % (8 * long_size)
    return struct.pack(f"{order}{len(longs)}{code}", *longs)


@st.composite
def fields(draw, order, long_size):
    """(declaration, is_signed, bytes in place, (data behind the fixed part, its kind) or None, value)."""
    kind = draw(st.sampled_from(["int", "slot", "string", "bytes", "array", "text", "rel_text", "numbers", "rel_bytes", "mask"]))
    (name, size), code = draw(st.sampled_from(sorted(INTS.items())))
    if kind == "int":
        value = draw(values(code))
        return name, code.islower(), struct.pack(order + code, value), None, value
    if kind == "slot":  # an argument of a system call: the type is narrower than its place
        value = draw(values("i"))
        return "int", False, struct.pack(order + "q", value), None, value
    if kind == "string":
        text = draw(TEXT)
        return "char {}[40]", False, text.encode().ljust(40, b"\0"), None, text
    if kind == "bytes":
        value = draw(st.binary(min_size=6, max_size=6))
        return "u8 {}[6]", False, value, None, value
    if kind in ("array", "numbers"):
        code, name, size = draw(st.sampled_from([("H", "u16", 2), ("i", "s32", 4), ("Q", "u64", 8),
                                                 ("I" if long_size == 4 else "Q", "unsigned long", long_size)]))
        numbers = draw(st.lists(values(code), min_size=1, max_size=6))
        data = struct.pack(f"{order}{len(numbers)}{code}", *numbers)
        if kind == "array":
            return f"{name} {{}}[{len(numbers)}]", code.islower(), data, None, tuple(numbers)
        return f"__data_loc {name}[] {{}}", code.islower(), None, (data, False), tuple(numbers)
    if kind == "mask":
        cpus = draw(st.frozensets(st.integers(0, 200), max_size=5))
        return "__data_loc cpumask_t {}", False, None, (cpumask(order, long_size, cpus), False), cpus
    if kind == "rel_bytes":
        value = draw(st.binary(max_size=12))
        return "__rel_loc u8[] {}", False, None, (value, True), value
    text = draw(TEXT)
    place = "__rel_loc" if kind == "rel_text" else "__data_loc"
    return f"{place} char[] {{}}", False, None, (text.encode() + b"\0", kind == "rel_text"), text


@st.composite
def events(draw):
    """(machine, byte order, format text, raw data, {name: value})."""
    machine, order = draw(st.sampled_from(sorted(LONG_SIZES))), draw(st.sampled_from("<>"))
    chosen = draw(st.lists(fields(order, LONG_SIZES[machine]), min_size=1, max_size=8))
    pid = draw(values("i"))
    declared, places, at, want = [], [], 8, {"common_type": 7, "common_flags": 1, "common_preempt_count": 2, "common_pid": pid}
    for i, (declaration, is_signed, data, behind, value) in enumerate(chosen):
        name, size = f"f{i}", 4 if behind else len(data)
        at += -at % (size if size in (1, 2, 4, 8) else 8)
        text = declaration.format(name) if "{}" in declaration else f"{declaration} {name}"
        declared.append((text, at, size, is_signed))
        places.append((at, data, behind))
        want[name] = value
        at += size
    raw, end = bytearray(struct.pack(order + "HBBi", 7, 1, 2, pid).ljust(at, b"\0")), at
    for at, data, behind in places:
        if behind:
            data, is_relative = behind
            raw += data
            start = end - at - 4 if is_relative else end
            end += len(data)
            data = struct.pack(order + "I", len(data) << 16 | start)
        raw[at:at + len(data)] = data
    return machine, order, format_text(declared), bytes(raw), want


def sample(order, raw):
    """IDENTIFIER | TID | TIME | CPU | PERIOD | RAW of @order, whatever is in @raw."""
    data = raw + b"\0" * (-(len(raw) + 4) % 8)
    body = struct.pack(order + "QiiQIIQI", 5, 41, 42, 1_000_000_001, 3, 0, 9, len(data)) + data
    return struct.pack(order + "IHH", 9, 0, 8 + len(body)) + body


def call(machine, order, text, raw, function):
    kind = eventmaker.event_type(perfscope, "sys", "thing", text, machine, order != HOST)
    return eventmaker.call(kind, sample(order, raw), function, order != HOST)


class TestTracepoints(unittest.TestCase):
    @settings(max_examples=400, deadline=None)
    @given(events())
    def test_every_kind_of_field(self, event):
        *made, want = event
        self.assertEqual(call(*made, lambda e: {name: e[name] for name in want}), want)
        self.assertEqual(call(*made, lambda e: {name: getattr(e, name) for name in want}), want)

    @settings(max_examples=100, deadline=None)
    @given(events())
    def test_common_fields_and_bytes(self, event):
        machine, order, text, raw, _ = event
        self.assertEqual(call(machine, order, text, raw, lambda e: (e._pid, e._tid, e._time, e._cpu, e._period, e._raw[:len(raw)])),
                         (41, 42, 1_000_000_001, 3, 9, raw))

    def test_print_and_symbolic_are_the_kernel_s(self):
        text = format_text([("u32 state", 8, 4, False), ("s64 far", 16, 8, True), ("char comm[16]", 24, 16, False),
                            ("__data_loc char[] name", 40, 4, False), ("u16 port", 44, 2, False)],
                           '"%s %lld %s %s %u", __print_flags(REC->state, "|", { 1, "S" }, { 2, "D" }), REC->far, REC->comm, '
                           '__get_str(name), REC->port')
        for order in "<>":
            raw = struct.pack(order + "HBBiI4xq16sIH2x", 7, 0, 0, 4, 3, -5, b"shell", 6 << 16 | 48, 443) + b"world\0"
            with self.subTest(order):
                line = call("s390x", order, text, raw, str)
                self.assertTrue(line.endswith(" [003]      1.000000: thing: S|D -5 shell world 443"), line)
                self.assertEqual(call("s390x", order, text, raw, lambda e: e.symbolic("state")), "S|D")


if __name__ == "__main__":
    unittest.main()
