# SPDX-License-Identifier: MIT
"""Formats and records as the kernel writes them, built by hand."""

import struct

PERF_RECORD_SAMPLE = 9

COMMON = """\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""


def format_text(fields, print_fmt='"x"', name="thing", number=7):
    """fields: (declaration, offset, size, is_signed)."""
    lines = "".join(f"\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{int(signed)};\n"
                    for declaration, offset, size, signed in fields)
    return f"name: {name}\nID: {number}\nformat:\n{COMMON}{lines}\nprint fmt: {print_fmt}\n"


def raw(payload=b"", number=7, flags=0, preempt=0, pid=42):
    return struct.pack("=HBBi", number, flags, preempt, pid) + payload


def sample(raw_data, pid=41, tid=42, time=1_000_000_001, cpu=1, period=1, identifier=5):
    """IDENTIFIER | TID | TIME | CPU | PERIOD | RAW; the raw data is padded so that size and data fill 8 bytes."""
    padding = b"\0" * (-(len(raw_data) + 4) % 8)
    data = raw_data + padding
    body = struct.pack("=QiiQIIQI", identifier, pid, tid, time, cpu, 0, period, len(data)) + data
    return struct.pack("=IHH", PERF_RECORD_SAMPLE, 0, 8 + len(body)) + body
