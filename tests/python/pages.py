# SPDX-License-Identifier: MIT
"""Fresh pages that fault once each when they are touched, without anything else being allocated."""

import ctypes
import gc
import itertools
import mmap
import os
import unittest

import perfscope

PAGE = mmap.PAGESIZE
EVENTS = ("page-faults", "task-clock", "context-switches")

# A sanitizer faults in its own code, its shadow and what it keeps of freed memory: now and then some more are counted.
SANITIZER_PAGES = 256 if "ASAN_OPTIONS" in os.environ else 0


class Faults(int):
    """A number of page faults: equal to the pages that were touched, or with a sanitizer more by no more than its own."""

    def __eq__(self, touched):
        return 0 <= int(self) - touched <= SANITIZER_PAGES

    __hash__ = int.__hash__


class Pages:
    """Room for @nr pages; touch(n) makes exactly n page faults, once everything it needs itself has been used."""

    def __init__(self, nr):
        self.map = mmap.mmap(-1, (nr + 64) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.map.madvise(mmap.MADV_NOHUGEPAGE)
        self.view = memoryview(self.map)
        self.places = iter(list(range(0, (nr + 64) * PAGE, PAGE)))
        self.touch(64)

    def close(self):
        self.view.release()
        self.map.close()

    def touch(self, nr):
        view = self.view
        for place in itertools.islice(self.places, nr):
            view[place] = 1


MADV_POPULATE_WRITE = 23


def settle():
    """Let memory that is there already fault no more: what is fresh in it, and what forks made shared, is made ours now.

    Else a pass has the page faults of an interpreter that takes a block of an untouched page, or writes to a type's count of
    references for the first time since a fork.
    """
    if SANITIZER_PAGES:
        return  # whose shadow is larger than memory
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        areas = [line.split(maxsplit=5) for line in file]
    libc = ctypes.CDLL(None)
    for span, kind, *rest in areas:
        start, end = (int(text, 16) for text in span.split("-"))
        if kind == "rw-p" and "[stack]\n" not in rest:
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_POPULATE_WRITE)


def nr_descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident_kb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE // 1024


class CountingTestCase(unittest.TestCase):
    """Nothing but the test itself makes page faults in it."""

    def setUp(self):
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        settle()


class RegionTestCase(CountingTestCase):
    def setUp(self):
        perfscope.configure(EVENTS)
        super().setUp()
        self.pages = Pages(4000)
        self.addCleanup(self.pages.close)
        with perfscope.region("warm"):
            self.pages.touch(1)
        perfscope.regions()
        perfscope.reset()

    def told(self, name="work"):
        """Calls, incomplete passes and page faults of @name."""
        total = perfscope.regions()[name]
        return total.calls, total.incomplete, Faults(total.values["page-faults"])

    def assert_nearly(self, faults, touched):
        """The interpreter itself may get up to two pages from the allocator, which Python code that it runs in a pass needs."""
        self.assertIn(faults - touched, range(3 + SANITIZER_PAGES))
