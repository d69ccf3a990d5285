# SPDX-License-Identifier: MIT
"""The order of records of several CPUs."""

import os
import unittest

from livetest import LiveTestCase, skip_unless_tracepoints, skip_unless_two_cpus

# sched_waking: the kernel samples only some of the sched_wakeup that it makes in interrupts of another task.
# It may come before the one that is woken has left its CPU.
# Of two processes that wake each other: whether time goes forward, and each comes on a CPU only once it was woken.
PLAYERS = """
import json, sys
nr = {'switch': 0, 'wakeup': 0, 'back': 0, 'early': 0}
asleep, woken, last = set(), set(), 0
def take(event):
    global last
    nr['back'] += event._time < last
    last = max(last, event._time)
def sched__sched_waking(event):
    take(event)
    nr['wakeup'] += 1
    woken.add(event.pid)
def sched__sched_switch(event):
    take(event)
    nr['switch'] += 1
    nr['early'] += event.next_pid in asleep - woken
    asleep.discard(event.next_pid)
    woken.discard(event.next_pid)
    if event.prev_state & 0xff and event.prev_comm == sys.argv[1]:
        asleep.add(event.prev_pid)
def __exit__(): print(json.dumps(nr), flush=True)
"""

# Calls of two processes that take turns, as they arrive.
TURNS = """
import json
pids, back, last = [], 0, 0
def __sample__(event):
    global back, last
    pids.append(event._pid)
    back += event._time < last
    last = event._time
def __exit__(): print(json.dumps({'pids': pids, 'back': back}), flush=True)
"""
ROUNDS = 18000


@skip_unless_tracepoints
@skip_unless_two_cpus
class TestOrder(LiveTestCase):
    def watch_players(self, rounds):
        """Two pinned processes of a name of their own play ping-pong; the Run."""
        name = f"pp{os.getpid() % 1000000}"
        events = [f'sched:sched_waking/comm == "{name}"/',
                  f'sched:sched_switch/prev_comm == "{name}" || next_comm == "{name}"/']
        load = self.hold_load("rename", name, "+", "wait", "+", "pingpong", rounds, 0, 1, "+", "wait")
        observer = self.start_script(PLAYERS, events, "-v", args=[name])
        load.go()
        run = observer.stop()
        self.assertEqual(run.status, 0)
        return run

    def test_times_never_decrease_and_a_wakeup_comes_before_its_switch(self):
        run = self.watch_players(ROUNDS)
        [nr] = run.json
        self.assertEqual([nr["back"], nr["early"]], [0, 0])
        # How often one sleeps before the other has set the ball is not known; each round has at least one event.
        self.assertGreaterEqual(nr["switch"] + nr["wakeup"], ROUNDS)
        # No record came too late for its place, none was lost.
        self.assertEqual(run.errors[1:], [f"perfscope: events taken: {nr['switch'] + nr['wakeup']}"])

    def test_without_order_all_is_delivered_too(self):
        source = "import json\nn = 0\ndef __sample__(event):\n    global n\n    n += 1\n" \
                 "def __exit__(totals): print(json.dumps([n, totals['run'].values]), flush=True)\n"
        event = "syscalls:sys_enter_futex/op == 1/"  # FUTEX_WAKE: one each turn
        for options in ["--no-order"], ["--order"], []:
            with self.subTest(options=options):
                run = self.run_script(source, event, "--inherit", *options, load=["pingpong", 2000, 0, 1])
                self.assertEqual([run.status, run.stderr], [0, ""])
                self.assertEqual(run.json, [[4000, {"syscalls:sys_enter_futex": 4000}]])

    def test_times_of_two_processes_never_decrease(self):
        run = self.run_script(TURNS, "syscalls:sys_enter_futex/op == 1/", "--inherit", load=["pingpong", 1000, 0, 1])
        [result] = run.json
        self.assertEqual([len(result["pids"]), result["back"]], [2000, 0])
        parent, child = run.load["pid"], run.load["actions"][0]["child"]
        self.assertEqual([result["pids"].count(pid) for pid in (parent, child)], [1000, 1000])


if __name__ == "__main__":
    unittest.main()
