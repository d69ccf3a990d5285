# SPDX-License-Identifier: MIT
"""Functions, generators, coroutines and tasks that call each other at random pass three regions; a model knows what each counts."""

import asyncio
import random
import unittest

import perfscope
from pages import Pages, RegionTestCase, SANITIZER_PAGES

NAMES = ("one", "two", "three")


class Stop(Exception):
    pass


class Walk:
    """One tree. A task has a list of the names in which it is now; a page counts once for each name in its task's list."""

    def __init__(self, seed, pages):
        self.random = random.Random(seed)
        self.pages = pages
        self.calls = dict.fromkeys(NAMES, 0)
        self.faults = dict.fromkeys(NAMES, 0)

    def touch(self, names, most):
        nr = self.random.randrange(most)
        for name in set(names):
            self.faults[name] += nr
        self.pages.touch(nr)

    def choose(self, names):
        name = self.random.choice(NAMES)
        self.calls[name] += 1
        names.append(name)
        return name

    def chance(self, share):
        return self.random.random() < share

    def plain(self, names, depth):
        name = self.choose(names)
        try:
            with perfscope.region(name):
                self.touch(names, 4)
                self.step(names, depth - 1)
                if self.chance(0.05):
                    raise Stop
        finally:
            names.remove(name)

    def generator(self, names):
        name = self.choose(names)
        try:
            with perfscope.region(name):
                for _ in range(self.random.randrange(1, 4)):
                    self.touch(names, 4)
                    names.remove(name)
                    try:
                        yield
                    finally:
                        names.append(name)
                    if self.chance(0.1):
                        raise Stop
        finally:
            names.remove(name)

    def step(self, names, depth):
        self.touch(names, 3)
        if depth <= 0 or self.chance(0.3):
            return
        try:
            if self.chance(0.5):
                self.plain(names, depth)
                return
            generator = self.generator(names)
            for _ in generator:
                self.step(names, depth - 1)
                if self.chance(0.15):
                    generator.close()
        except Stop:
            pass

    async def wait(self):
        await asyncio.sleep(0 if self.chance(0.8) else 0.0001)

    async def asynchronous_generator(self, names):
        name = self.choose(names)
        try:
            with perfscope.region(name):
                for _ in range(self.random.randrange(1, 4)):
                    self.touch(names, 4)
                    await self.wait()
                    names.remove(name)
                    try:
                        yield
                    finally:
                        names.append(name)
        finally:
            names.remove(name)

    async def coroutine(self, names, depth):
        name = self.choose(names)
        try:
            with perfscope.region(name):
                for _ in range(self.random.randrange(1, 4)):
                    self.touch(names, 4)
                    await self.go_on(names, depth)
        finally:
            names.remove(name)

    async def go_on(self, names, depth):
        way = self.random.randrange(5)
        if way == 0 or not depth:
            await self.wait()
        elif way == 1:
            await self.coroutine(names, depth - 1)
        elif way == 2:
            self.step(names, 2)
        elif way == 3:
            generator = self.asynchronous_generator(names)
            async for _ in generator:
                self.touch(names, 2)
                if self.chance(0.2):
                    break
            await generator.aclose()
        else:
            await asyncio.gather(*(self.coroutine([], depth - 1) for _ in range(2)), return_exceptions=True)

    async def main(self):
        tasks = [asyncio.ensure_future(self.coroutine([], 2)) for _ in range(self.random.randrange(1, 8))]
        await self.wait()
        if self.chance(0.3):
            tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class TestTrees(RegionTestCase):
    def test_each_region_counts_what_runs_in_it(self):
        pages = Pages(30000)
        for seed in range(60):
            walk = Walk(seed, pages)
            perfscope.reset()
            asyncio.run(walk.main())
            told = perfscope.regions()
            for name in NAMES:
                total = told.get(name, perfscope.PerfEventTotals(values={"page-faults": 0}))
                self.assertEqual([seed, name, total.calls, total.incomplete, total.open], [seed, name, walk.calls[name], 0, 0])
                own = total.values["page-faults"] - walk.faults[name]
                self.assertGreaterEqual(own, 0, (seed, name))
                # What the interpreter and asyncio need is there by then, but for a page now and then. A sanitizer gives all
                # that is allocated fresh memory.
                if seed > 20 and not SANITIZER_PAGES:
                    self.assertLess(own, 9, (seed, name))


if __name__ == "__main__":
    unittest.main()
