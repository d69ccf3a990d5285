# SPDX-License-Identifier: MIT
"""Frames of call stacks belong to the script that reads them: it may keep and change them, other events never show it."""

import struct
import sys
import unittest

import eventmaker

perfscope = eventmaker.perfscope

CALLCHAIN, BRANCH_STACK = 1 << 5, 1 << 11
CALL_STACK, HW_INDEX = 1 << 11, 1 << 17  # enum perf_branch_sample_type
BASE = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 16
USER, KERNEL = 2**64 - 512, 2**64 - 128  # enum perf_callchain_context


def sample(*chain, more=b""):
    data = struct.pack(f"=QiiQIIQQ{len(chain)}Q", 1, 2, 3, 4, 5, 0, 6, len(chain), *chain) + more
    return struct.pack("=IHH", 9, 0, 8 + len(data)) + data


def frame(address, kernel=False):
    return {"addr": address, "symbol": None, "offset": 0, "kernel": kernel, "dso": None}


class TestStackFrames(unittest.TestCase):
    def setUp(self):
        self.kind = eventmaker.counter_type(perfscope, "thing", BASE | CALLCHAIN, 0, 0, 0, 0)

    def stack(self, *chain, work=lambda stack: stack):
        return eventmaker.call(self.kind, sample(*chain), lambda event: work(event._callchain))

    def test_marks_tell_the_space_of_what_follows(self):
        self.assertEqual(self.stack(KERNEL, 0xffffffff81000000, USER, 0x1000, 0x2000),
                         [frame(0xffffffff81000000, True), frame(0x1000), frame(0x2000)])
        self.assertEqual(self.stack(), [])
        self.assertEqual(self.stack(USER), [])

    def test_change_is_not_seen_by_the_next_event(self):
        def rename(stack):
            stack[0]["symbol"] = "changed"

        def clear(stack):
            stack[0].clear()

        def add(stack):
            stack[0]["more"] = 1

        def swap(stack):
            stack[0]["addr"] = stack[0].pop("addr")

        def shorten(stack):
            stack.clear()
        for work in (rename, clear, add, swap, shorten):
            with self.subTest(work.__name__):
                self.stack(USER, 0x1000, work=work)
                stack = self.stack(USER, 0x1000)
                self.assertEqual(stack, [frame(0x1000)])
                self.assertEqual(list(stack[0]), ["addr", "symbol", "offset", "kernel", "dso"])

    def test_kept_frame_stays_as_it_is(self):
        kept = [self.stack(USER, 0x1000)[0] for _ in range(5)]
        kept[1]["symbol"] = "mine"
        self.assertEqual(kept, [frame(0x1000), {**frame(0x1000), "symbol": "mine"}, *[frame(0x1000)] * 3])
        self.assertEqual(len({id(one) for one in kept}), 5)

    def test_one_address_many_times_is_as_many_frames(self):
        for _ in range(3):
            stack = self.stack(USER, *[0x1000] * 100)
            self.assertEqual(stack, [frame(0x1000)] * 100)
            self.assertEqual(len({id(one) for one in stack}), 100)
            stack[99]["symbol"] = stack[0]["symbol"] = "changed"
            del stack

    def test_nothing_is_left_behind(self):
        def read(stack):
            for one in stack:
                one["symbol"] = "changed"
        for _ in range(20):
            self.stack(USER, *range(1000, 1100), work=read)
        before = sys.getallocatedblocks()
        for _ in range(200):
            self.stack(USER, *range(1000, 1100), work=read)
        self.assertLess(sys.getallocatedblocks() - before, 300)

    def test_same_address_of_kernel_and_user(self):
        for _ in range(2):
            self.assertEqual(self.stack(KERNEL, 0x1000, USER, 0x1000), [frame(0x1000, True), frame(0x1000)])

    def test_frames_come_back(self):
        # Not a promise, but what keeps a stack cheap: a frame that nobody holds is given out again.
        ids = [self.stack(USER, 0x5000, 0x5000, work=lambda stack: [id(one) for one in stack]) for _ in range(4)]
        self.assertEqual(ids[1:], [ids[0]] * 3)


class TestCallsOfThePmu(unittest.TestCase):
    """With --call-graph=lbr the callers in user space are the calls in the branch stack."""

    def stack(self, chain, calls, branch_type=CALL_STACK):
        more = struct.pack("=Q", len(calls)) + (struct.pack("=Q", 7) if branch_type & HW_INDEX else b"")
        more += b"".join(struct.pack("=QQQ", call, 0x9999, 0) for call in calls)
        kind = eventmaker.counter_type(perfscope, "thing", BASE | CALLCHAIN | BRANCH_STACK, 0, branch_type, 0, 0)
        return eventmaker.call(kind, sample(*chain, more=more), lambda event: event._callchain)

    def test_they_take_the_place_of_what_frame_pointers_tell(self):
        for branch_type in CALL_STACK, CALL_STACK | HW_INDEX:
            self.assertEqual(self.stack([USER, 0x1000, 0x5000, 0x6000], [0x2000, 0x3000], branch_type),
                             [frame(0x1000), frame(0x2000), frame(0x3000)])

    def test_the_kernel_s_part_stays(self):
        self.assertEqual(self.stack([KERNEL, 0xffffffff81000000, 0xffffffff81000010, USER, 0x1000], [0x2000, 0x3000, 0x4000]),
                         [frame(0xffffffff81000000, True), frame(0xffffffff81000010, True), frame(0x1000), frame(0x2000),
                          frame(0x3000), frame(0x4000)])

    def test_where_there_are_none_frame_pointers_tell(self):
        self.assertEqual(self.stack([USER, 0x1000, 0x5000], []), [frame(0x1000), frame(0x5000)])

    def test_without_a_user_part_there_are_no_callers(self):
        self.assertEqual(self.stack([KERNEL, 0xffffffff81000000], [0x2000]), [frame(0xffffffff81000000, True)])
        self.assertEqual(self.stack([KERNEL, 0xffffffff81000000, USER], [0x2000]), [frame(0xffffffff81000000, True)])
        self.assertEqual(self.stack([], [0x2000]), [])

    def test_other_branches_are_no_callers(self):
        self.assertEqual(self.stack([USER, 0x1000, 0x5000], [0x2000], 1 << 3), [frame(0x1000), frame(0x5000)])


if __name__ == "__main__":
    unittest.main()
