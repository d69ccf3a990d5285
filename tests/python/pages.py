# SPDX-License-Identifier: MIT
"""Fresh pages that fault once each when they are touched, without anything else being allocated."""

import gc
import itertools
import mmap
import os
import unittest

PAGE = mmap.PAGESIZE


class Pages:
    """Room for @nr pages; touch(n) makes exactly n page faults, once everything it needs itself has been used."""

    def __init__(self, nr):
        self.map = mmap.mmap(-1, (nr + 64) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.map.madvise(mmap.MADV_NOHUGEPAGE)
        self.view = memoryview(self.map)
        self.places = iter(list(range(0, (nr + 64) * PAGE, PAGE)))
        self.touch(64)

    def touch(self, nr):
        view = self.view
        for place in itertools.islice(self.places, nr):
            view[place] = 1


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
