# SPDX-License-Identifier: MIT
"""Every part of a sample, alone and in random combinations: what is put into a record comes out by name."""

import struct
import sys
import unittest

import eventmaker
from hypothesis import given, settings
from hypothesis import strategies as st

perfscope = eventmaker.perfscope

# Bits of linux/perf_event.h.
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK = (1 << i for i in range(12))
REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR = (1 << i for i in range(12, 20))
AUX, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = (1 << i for i in range(20, 25))
BASE = IDENTIFIER | TID | TIME | CPU | PERIOD
FORMAT_ENABLED, FORMAT_RUNNING, FORMAT_ID, FORMAT_GROUP, FORMAT_LOST = (1 << i for i in range(5))
BRANCH_HW_INDEX = 1 << 17

X86_REGISTERS = ("ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8 r9 r10 r11 r12 r13 r14 r15").split()
ARM64_REGISTERS = [f"x{i}" for i in range(30)] + ["lr", "sp", "pc"]
XMM_REGISTERS = [f"xmm{i // 2}" + "_high" * (i % 2) for i in range(32)]
NUMBERS = [f"r{i}" for i in range(64)]  # what has no name

# The registers of a mask, by bit.
REGISTERS = {
    "x86_64": X86_REGISTERS + NUMBERS[24:32] + XMM_REGISTERS,
    "i686": X86_REGISTERS[:16],
    "aarch64": ARM64_REGISTERS + NUMBERS[33:46] + ["vg"],
    "s390x": NUMBERS,
}

u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
s32 = st.integers(-2**31, 2**31 - 1)


# Of a record: < or >.
HOST = "<" if sys.byteorder == "little" else ">"

# Bit fields of a branch's flags, from the end that the byte order begins with.
BRANCH_BITS = {"mispred": 1, "predicted": 1, "in_tx": 1, "abort": 1, "cycles": 16, "type": 4, "spec": 2, "new_type": 4,
               "priv": 3, "reserved": 31}


class Packer:
    """Packs in one byte order."""

    def __init__(self, order):
        self.order = order

    def __call__(self, *values):
        return struct.pack(f"{self.order}{len(values)}Q", *values)

    def struct(self, codes, *values):
        return struct.pack(self.order + codes, *values)

    def bits(self, fields):
        """A word of @fields: {name: (width, value)}."""
        word, at = 0, 0
        for width, value in fields:
            word |= value << (at if self.order == "<" else 64 - at - width)
            at += width
        return self(word)


pack = Packer(HOST)


def registers(draw, pack, machine, mask):
    abi = draw(st.sampled_from([0, 1, 2]))
    if not abi:
        return pack(0), {"abi": 0}
    names = [name for i, name in enumerate(REGISTERS[machine]) if mask >> i & 1]
    values = draw(st.lists(u64, min_size=len(names), max_size=len(names)))
    return pack(abi, *values), {"abi": abi, **dict(zip(names, values))}


def counts(draw, pack, read_format):
    """A read in @read_format, and the dict that it is."""
    times = {}
    if read_format & FORMAT_ENABLED:
        times["time_enabled"] = draw(u64)
    if read_format & FORMAT_RUNNING:
        times["time_running"] = draw(u64)

    def member():
        value = {"value": draw(u64)}
        if read_format & FORMAT_ID:
            value["id"] = draw(u64)
        if read_format & FORMAT_LOST:
            value["lost"] = draw(u64)
        return value
    if not read_format & FORMAT_GROUP:
        one = member()
        rest = list(one.values())[1:]
        return pack(one["value"], *times.values(), *rest), {"value": one["value"], **times, **one}
    members = [member() for _ in range(draw(st.integers(0, 5)))]
    data = pack(len(members), *times.values()) + b"".join(pack(*one.values()) for one in members)
    return data, {"nr": len(members), **times, "cntr": [{**one, "name": None} for one in members]}


def branch(draw, pack):
    bits = {name: draw(st.integers(0, 2**width - 1)) for name, width in BRANCH_BITS.items()}
    source, target = draw(u64), draw(u64)
    data = pack(source, target) + pack.bits((BRANCH_BITS[name], value) for name, value in bits.items())
    flags = {name: bool(bits[name]) for name in ("mispred", "predicted", "in_tx", "abort")}
    return data, {"from": source, "to": target, **flags, "cycles": bits["cycles"], "type": bits["type"]}


@st.composite
def samples(draw, chosen=None):
    """(attr of the event, record, {name: value} of all parts, its byte order)."""
    pack = Packer(draw(st.sampled_from("<>")))
    sample_type = draw(st.integers(0, 2**25 - 1)) if chosen is None else chosen
    if sample_type & WEIGHT_STRUCT:
        sample_type &= ~WEIGHT  # the kernel takes one of the two
    read_format = draw(st.integers(0, 31))
    branch_type = draw(st.sampled_from([0, BRANCH_HW_INDEX]))
    machine = draw(st.sampled_from(sorted(REGISTERS)))
    masks = [draw(st.integers(0, 2**len(REGISTERS[machine]) - 1)) for _ in range(2)]
    data, want = b"", {}

    def part(bit, name, strategy):
        nonlocal data
        if sample_type & bit:
            want[name] = draw(strategy)
            data += pack(want[name])

    part(IDENTIFIER, "identifier", u64)
    part(IP, "ip", u64)
    if sample_type & TID:
        want["pid"], want["tid"] = draw(s32), draw(s32)
        data += pack.struct("ii", want["pid"], want["tid"])
    part(TIME, "time", u64)
    part(ADDR, "addr", u64)
    if sample_type & ID:
        number = draw(u64)
        data += pack(number)
        want.setdefault("id", number)
    if sample_type & (IDENTIFIER | ID):  # both names for the one that stands first
        want["id"] = want["identifier"] = want.get("identifier", want.get("id"))
    part(STREAM_ID, "stream_id", u64)
    if sample_type & CPU:
        want["cpu"] = draw(u32)
        data += pack.struct("II", want["cpu"], 0)
    part(PERIOD, "period", u64)
    if sample_type & READ:
        more, want["read"] = counts(draw, pack, read_format)
        data += more
    if sample_type & CALLCHAIN:
        want["callchain"] = tuple(draw(st.lists(u64, max_size=8)))
        data += pack(len(want["callchain"]), *want["callchain"])
    if sample_type & RAW:
        size = 8 * draw(st.integers(0, 5)) + 4
        want["raw"] = draw(st.binary(min_size=size, max_size=size))
        data += pack.struct("I", size) + want["raw"]
    if sample_type & BRANCH_STACK:
        branches = [branch(draw, pack) for _ in range(draw(st.integers(0, 4)))]
        want["branch_stack"] = [value for _, value in branches]
        data += pack(len(branches)) + (pack(draw(u64)) if branch_type & BRANCH_HW_INDEX else b"")
        data += b"".join(one for one, _ in branches)
    if sample_type & REGS_USER:
        more, want["regs_user"] = registers(draw, pack, machine, masks[0])
        data += more
    if sample_type & STACK_USER:
        size = 8 * draw(st.integers(0, 8))
        filled = draw(st.integers(0, size))
        stack = draw(st.binary(min_size=size, max_size=size))
        want["stack_user"] = stack[:filled]
        data += pack(size) + stack + (pack(filled) if size else b"")
    part(WEIGHT | WEIGHT_STRUCT, "weight", u64)
    part(DATA_SRC, "data_src", u64)
    part(TRANSACTION, "transaction", u64)
    if sample_type & REGS_INTR:
        more, want["regs_intr"] = registers(draw, pack, machine, masks[1])
        data += more
    part(PHYS_ADDR, "phys_addr", u64)
    part(CGROUP, "cgroup", u64)
    part(DATA_PAGE_SIZE, "data_page_size", u64)
    part(CODE_PAGE_SIZE, "code_page_size", u64)
    if sample_type & AUX:
        size = 8 * draw(st.integers(0, 4))
        want["aux"] = draw(st.binary(min_size=size, max_size=size))
        data += pack(size) + want["aux"]
    record = pack.struct("IHH", 9, 0, 8 + len(data)) + data
    return (sample_type, read_format, branch_type, *masks, machine), record, want, pack.order


def own(event):
    return {name: value for name, value in event.items() if not name.startswith("_")}


class TestSamples(unittest.TestCase):
    def check(self, attr, record, want, order):
        kind = eventmaker.counter_type(perfscope, "thing", *attr)
        self.assertEqual(eventmaker.call(kind, record, own, order != HOST), want)
        by_dot = eventmaker.call(kind, record, lambda event: {name: getattr(event, name) for name in want}, order != HOST)
        self.assertEqual(by_dot, want)

    @settings(max_examples=400, deadline=None)
    @given(samples())
    def test_any_combination(self, sample):
        self.check(*sample)

    @settings(max_examples=150, deadline=None)
    @given(st.data())
    def test_each_part_alone(self, data):
        for bit in range(25):
            self.check(*data.draw(samples(chosen=1 << bit)))

    @settings(max_examples=200, deadline=None)
    @given(samples(), st.data())
    def test_cut_record_raises_or_gives_what_is_whole(self, sample, data):
        attr, record, want, order = sample
        size = data.draw(st.integers(8, len(record)))
        cut = record[:6] + struct.pack(order + "H", size) + record[8:size]
        kind = eventmaker.counter_type(perfscope, "thing", *attr)
        for name, value in want.items():
            try:
                got = eventmaker.call(kind, cut, lambda event, name=name: event[name], order != HOST)
            except (perfscope.DecodeError if order == HOST else ValueError):  # it cannot be turned
                continue
            self.assertEqual(got, value, name)

    def test_registers_have_the_names_of_the_machine_that_wrote_them(self):
        record = struct.pack("=IHH", 9, 0, 40) + pack(1, 10, 11, 12)  # abi 1: of 32 bits
        for machine, want in {"x86_64": {"ax": 10, "gs": 11, "r8": 12}, "i686": {"ax": 10, "gs": 11, "r8": 12},
                              "aarch64": {"x0": 10, "x15": 11, "x16": 12}, "ppc64": {"r0": 10, "r15": 11, "r16": 12}}.items():
            kind = eventmaker.counter_type(perfscope, "thing", REGS_USER, 0, 0, 1 << 0 | 1 << 15 | 1 << 16, 0, machine)
            self.assertEqual(eventmaker.call(kind, record, lambda e: e.regs_user), {"abi": 1, **want})

    def test_read_has_a_second_name(self):
        attr = (BASE | READ, FORMAT_ID, 0, 0, 0)
        record = struct.pack("=IHHQiiQIIQQQ", 9, 0, 64, 1, 2, 3, 4, 5, 0, 6, 7, 8)
        kind = eventmaker.counter_type(perfscope, "thing", *attr)
        self.assertEqual(eventmaker.call(kind, record, lambda e: (e.read, e._read, e["_read"], "_read" in e.keys())),
                         ({"value": 7, "id": 8}, {"value": 7, "id": 8}, {"value": 7, "id": 8}, False))

    def test_line_has_the_numbers_of_the_sample(self):
        record = struct.pack("=IHHQQiiQQIIQQ", 9, 0, 72, 1, 0xffffffff81000000, 0, 0, 4_000_000_000, 0x7f00, 5, 0, 6, 9)
        kind = eventmaker.counter_type(perfscope, "thing", BASE | IP | ADDR | CGROUP, 0, 0, 0, 0)
        line = eventmaker.call(kind, record, str)
        self.assertTrue(line.endswith("swapper/5       0 ..... [005]      4.000000: thing: ip=0xffffffff81000000 "
                                      "addr=0x7f00 cgroup=9"), line)

    def test_parts_in_words(self):
        attr = (TID | DATA_SRC | TRANSACTION | DATA_PAGE_SIZE | CODE_PAGE_SIZE | BRANCH_STACK, 0, BRANCH_HW_INDEX, 0, 0)
        body = struct.pack("=ii", 1, 2) + pack(2, 9, 16, 32, 2 | 12 << 4 | 4 << 20, 48, 64, 1) + pack(
            0x2 | 0xa << 5 | 2 << 19 | 2 << 24 | 0x1a << 26, 2 | 4 | 1 << 37, 4096, 2 << 20)
        record = struct.pack("=IHH", 9, 0, 8 + len(body)) + body
        kind = eventmaker.counter_type(perfscope, "thing", *attr)
        words = {"data_src": "OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK Yes|BLK N/A", "transaction": "TX SYNC :20",
                 "data_page_size": "4K", "code_page_size": "2M",
                 "branch_stack": "0x10/0x20/P/-/-/12/CALL 0x30/0x40/M/-/-/0/-", "pid": "1", "_tid": "2"}
        self.assertEqual(eventmaker.call(kind, record, lambda e: {name: e.symbolic(name) for name in words}), words)
        line = eventmaker.call(kind, record, str)
        self.assertTrue(line.endswith(f"thing: data_src={words['data_src']} transaction=TX SYNC :20 data_page_size=4K "
                                      "code_page_size=2M"), line)

    def test_value_of_every_part_is_the_common_one_too(self):
        record = struct.pack("=IHHQiiQIIQ", 9, 0, 48, 1, 2, 3, 4, 5, 0, 6)
        kind = eventmaker.counter_type(perfscope, "thing", BASE, 0, 0, 0, 0)
        self.assertEqual(
            eventmaker.call(kind, record, lambda e: (e._pid, e._tid, e._time, e._cpu, e._period, e._event)),
            (2, 3, 4, 5, 6, "thing"))


if __name__ == "__main__":
    unittest.main()
