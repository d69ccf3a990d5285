# SPDX-License-Identifier: MIT
"""Call stacks beside those of `perf script`, frame by frame: both sample the same tracepoints at the same instants.

A frame is equal when address, symbol, offset and file are. Each that is not must be of a class that CLASSES explains. PERF_STACKS=1
prints the figures, and what differs.
"""

import bisect
import collections
import json
import os
import re
import shutil
import subprocess
import unittest

from livetest import LiveTestCase, Observer, skip_unless_tracepoints

FOLDER = os.path.dirname(os.path.abspath(__file__))
EVENTS = ("sched:sched_switch", "syscalls:sys_enter_getppid", "kmem:mm_page_alloc")
WANTED = 0.995
# Two events of one instant take their times one after the other.
NEAR_NS = 50_000
KERNEL = 1 << 63

DUMP = """
import json, sys
file = open(sys.argv[1], "w", encoding="utf-8", errors="surrogateescape")
def __sample__(event):
    frames = [[frame["addr"], frame["symbol"], frame["offset"], frame["dso"]] for frame in event._callchain]
    file.write(json.dumps([event._event, event._tid, event._cpu, event._time, frames]) + "\\n")
def __exit__():
    file.close()
"""

# A program with frame pointers, an interpreter, a compiler, a shell and what it starts.
LOAD = """
./stack_depth 300
/usr/bin/python3 -c '
import json, re, time
for i in range(30):
    json.dumps(list(range(1000))); re.compile("a%d(b|c)*" % i); time.sleep(0.001)
'
g++ -O1 -x c++ -c -o object stack_depth.c
find /usr/share/doc -name "*.gz" | sort | wc -l
for i in 1 2 3; do /bin/true; done
"""

# Why a frame may differ. All but the last two are answers of perf's that are wrong or say less.
CLASSES = {
    "return": "perf looks up where a call returns to, which behind a call that ends its function is the next function; the same"
              " where the kernel took a pointer to a function on the stack for a return, in code without frame pointers",
    "plt": "perf names stubs of linkage tables '@plt' alone, or not at all",
    "deleted": "perf does not read files without a name, by /proc",
    "more": "perf found no symbol, such as of code between those that a stripped file tells",
    "alias": "two names of one address; perf chooses by the order of the table where its rules end",
    "no code": "nothing with a symbol is there; the two call such memory differently",
}

FRAME = re.compile(r"^\s+([0-9a-f]+) (?:\[unknown\]|(.+)\+0x([0-9a-f]+)) \((\S*(?: \(deleted\))?)\)$")
HEAD = re.compile(r"^\s*(-?\d+) \[(\d+)\] +(\d+)\.(\d{9}): +(\S+): *$")

Sample = collections.namedtuple("Sample", "event tid cpu time frames")
Frame = collections.namedtuple("Frame", "address symbol offset dso")


def parse_perf(text):
    """The samples in the output of perf script."""
    samples = []
    for line in text.splitlines():
        head = HEAD.match(line)
        frame = FRAME.match(line)
        if head:
            time = int(head[3]) * 10**9 + int(head[4])
            samples.append(Sample(head[5], int(head[1]), int(head[2]), time, []))
        elif frame and int(frame[1], 16) == 2**64 - 1:
            pass  # the return address of the outermost function, 0, less one
        elif frame:
            samples[-1].frames.append(Frame(int(frame[1], 16), frame[2], int(frame[3] or "0", 16), frame[4]))
        elif line.strip():
            raise AssertionError(f"perf script: {line!r}")
    return samples


def pairs(theirs, ours):
    """Each sample of @theirs with the one of @ours that is of the same instant."""
    by_thread = collections.defaultdict(list)
    for sample in ours:
        by_thread[sample.event, sample.tid, sample.cpu].append(sample)
    for sample in theirs:
        waiting = by_thread[sample.event, sample.tid, sample.cpu]
        del waiting[:bisect.bisect_left([one.time for one in waiting[:1000]], sample.time - NEAR_NS)]
        if waiting and waiting[0].time < sample.time + NEAR_NS:
            yield sample, waiting.pop(0)


def is_at(theirs, ours):
    """Whether the addresses agree: perf prints those of users as places in the file, and when it unwinds, of the call."""
    return (ours.address - theirs.address) & 0xfff in (0, 1) and (ours.address >= KERNEL) == (theirs.address >= KERNEL)


def runs(frames):
    """Lengths of the runs of frames at one address: of inlined functions, of a function that calls itself, or both."""
    lengths = []
    for i, frame in enumerate(frames):
        if i and frame.address == frames[i - 1].address:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


def groups(frames):
    """The frames by address."""
    at = 0
    for length in runs(frames):
        yield frames[at:at + length]
        at += length


def align(theirs, ours):
    """Pairs of frames of one address, the outermost of ours alone; and how the rest of the two differs."""
    result, skipped = [], 0
    our_groups = collections.deque(groups(ours))
    for group in groups(theirs):
        found = next((i for i, frames in enumerate(our_groups) if is_at(group[0], frames[0]) and not len(frames) % len(group)),
                     None)
        if found is None:
            return result, "apart" if group[0].symbol else "perf guesses"
        skipped += found
        for _ in range(found):
            our_groups.popleft()
        frames = our_groups.popleft()
        step = len(frames) // len(group)
        result += zip(group, frames[step - 1::step])
    if skipped:
        return result, "perf skips some"
    return result, "perf ends earlier" if our_groups else "alike"


def classify(theirs, ours, is_innermost):
    """None: equal. Else the class of the difference; "" where there is none for it."""
    same_place = theirs.symbol == ours.symbol and (not ours.symbol or ours.offset - theirs.offset in (0, 1))
    if same_place and theirs.dso == (ours.dso or "[unknown]"):
        return None
    if theirs.dso.endswith(" (deleted)"):
        return "deleted"
    if not theirs.symbol and not ours.symbol:
        return "no code"
    if theirs.symbol == "@plt" or (ours.symbol or "").endswith("@plt"):
        return "plt"
    if theirs.dso != ours.dso:
        return ""
    if theirs.symbol and theirs.offset == 0 and not is_innermost:
        return "return"
    if not theirs.symbol:
        return "more"
    return "alias" if ours.symbol and ours.offset == theirs.offset else ""


class Comparison:
    def __init__(self):
        self.nr_equal = 0
        self.classes = collections.Counter()
        self.examples = collections.Counter()
        self.ends = collections.Counter()

    def add(self, theirs, ours):
        """Compare the frames of one sample."""
        last = None
        frames, end = align(theirs, ours)
        for their, our in frames:
            space = their.address >= KERNEL
            why = classify(their, our, space != last)
            last = space
            if why is None:
                self.nr_equal += 1
                continue
            self.classes[why] += 1
            self.examples[why, their[1:], our[1:]] += 1
        self.ends[end] += 1

    @property
    def share(self):
        """Of frames that perf does not look up at the wrong place."""
        nr = self.nr_equal + sum(self.classes.values()) - self.classes["return"]
        return self.nr_equal / nr

    def tell(self, what):
        if not os.environ.get("PERF_STACKS"):
            return
        nr = self.nr_equal + sum(self.classes.values())
        print(f"\n{what}: {self.nr_equal} of {nr} frames are equal ({self.nr_equal / nr:.2%}), {self.share:.2%} without those of "
              f"the class 'return'; {dict(self.classes)}; samples: {dict(self.ends)}")
        for (why, theirs, ours), count in self.examples.most_common(30):
            print(f"  {count} {why or 'UNEXPLAINED'}: perf {theirs}, perfscope {ours}")


@skip_unless_tracepoints
@unittest.skipUnless(shutil.which("perf"), "perf is not installed")
class TestStacksOfPerf(LiveTestCase):
    def setUp(self):
        super().setUp()
        for name in ("stack_depth.c", "getppid.h"):
            shutil.copy(os.path.join(FOLDER, name), self.folder)
        subprocess.run(["gcc", "-O0", "-g", "-fno-omit-frame-pointer", "-o", "stack_depth", "stack_depth.c"], cwd=self.folder,
                       check=True)
        self.write("load.sh", LOAD)
        # It waits for a line before it begins, so that both can attach; its children are followed.
        self.load = self.hold_load(command=["bash", "-c", f"read line; cd {self.folder}; . ./load.sh >/dev/null"])

    def start_perf(self, events, options, data):
        command = ["perf", "record", "-q", "-B", "-N", "-p", str(self.load.pid), "-m", "16M", "-k", "CLOCK_MONOTONIC", "-c", "1", *options,
                   "-o", data]
        for event in events:
            command += ["-e", event]
        perf = Observer(command[1:], command[0])
        self.addCleanup(perf.close)
        perf.wait_until_ready()
        return perf

    def record(self, events, options):
        """Both on @events while the load runs: the samples of perf, and ours."""
        ours = os.path.join(self.folder, "ours")
        data = os.path.join(self.folder, "perf.data")
        observer = self.start_script(DUMP, events, "-p", str(self.load.pid), "--inherit", "-m", "16M", *options, args=[ours])
        perf = self.start_perf(events, options, data)
        self.load.finish()
        for one in (perf, observer):
            run = one.wait()
            self.assertEqual(run.status, 0, run.stderr)
        with open(ours, encoding="utf-8", errors="surrogateescape") as file:
            samples = [Sample(*rest, [Frame(*frame) for frame in frames]) for *rest, frames in map(json.loads, file)]
        # -v: with the parameters of C++ functions.
        told = subprocess.run(["perf", "script", "-v", "-i", data, "--ns", "--no-inline", "-F",
                               "tid,cpu,time,event,ip,sym,symoff,dso"], check=True, capture_output=True, text=True,
                              errors="surrogateescape")
        return parse_perf(told.stdout), samples

    def compare(self, events, options, what):
        comparison = Comparison()
        for theirs, ours in pairs(*self.record(events, options)):
            comparison.add(theirs.frames, ours.frames)
        comparison.tell(what)
        self.assertLessEqual(set(comparison.classes), set(CLASSES), comparison.examples.most_common(10))
        self.assertGreaterEqual(comparison.share, WANTED, comparison.examples.most_common(10))
        return comparison.ends

    def test_frame_pointers(self):
        ends = self.compare(EVENTS, ["-g"], "frame pointers")
        self.assertGreater(ends["alike"], 500)
        # The kernel made the chains: one that is another is of another instant.
        self.assertLess(sum(ends.values()) - ends["alike"], sum(ends.values()) / 20)

    def test_unwinding(self):
        # perf skips functions of the dynamic linker that have others inlined, ends within libraries whose debug file it
        # takes for the library, and takes words of the stack for addresses where it lost the way.
        ends = self.compare(["sched:sched_switch"], ["--call-graph=dwarf"], "unwinding")
        self.assertGreater(sum(ends.values()), 50)
        # Never does perf come to code that we do not, but for samples of other instants.
        self.assertLess(ends["apart"], sum(ends.values()) / 50)


if __name__ == "__main__":
    unittest.main()
