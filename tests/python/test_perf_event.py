# SPDX-License-Identifier: MIT
"""PerfEvent on built records: values, names, forms of access, keeping."""

import gc
import struct
import sys
import threading
import unittest

import eventmaker
from records import format_text, raw, sample

perfscope = eventmaker.perfscope

INTS = [(f"{sign}{ctype} {name}", offset, size, sign == "")
        for sign, ctype, name, offset, size in [
            ("", "char", "i8", 8, 1), ("unsigned ", "char", "u8", 9, 1),
            ("", "short", "i16", 10, 2), ("unsigned ", "short", "u16", 12, 2),
            ("", "int", "i32", 16, 4), ("unsigned ", "int", "u32", 20, 4),
            ("", "long", "i64", 24, 8), ("unsigned ", "long", "u64", 32, 8)]]
INT_NAMES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def ints(*values):
    return raw(struct.pack("=bBhH2xiIqQ", *values))


class EventTestCase(unittest.TestCase):
    def make(self, fields, name="test:thing", **kwargs):
        return eventmaker.event_type(perfscope, "test", name, format_text(fields, **kwargs))

    def handle(self, kind, record, function):
        return eventmaker.call(kind, record, function)


class TestValues(EventTestCase):
    def read(self, declaration, payload, size, signed=False, offset=8):
        kind = self.make([(declaration, offset, size, signed)])
        return self.handle(kind, sample(raw(payload)), lambda event: event["x"])

    def test_integers_have_the_sign_and_width_of_their_declaration(self):
        kind = self.make(INTS)
        most = (-1, 0xff, -1, 0xffff, -1, 0xffffffff, -1, 0xffffffffffffffff)
        values = self.handle(kind, sample(ints(*most)), lambda e: tuple(e[n] for n in INT_NAMES))
        self.assertEqual(values, most)
        least = (-128, 0, -32768, 0, -2**31, 0, -2**63, 0)
        values = self.handle(kind, sample(ints(*least)), lambda e: tuple(e[n] for n in INT_NAMES))
        self.assertEqual(values, least)

    def test_kernel_address_stays_positive(self):
        value = self.read("u64 x", struct.pack("=Q", 0xfffffffffffffff9), 8)
        self.assertEqual(value, 0xfffffffffffffff9)

    def test_char_array_is_text_up_to_its_first_nul(self):
        self.assertEqual(self.read("char x[16]", b"bash\0garbage!!!!", 16), "bash")
        self.assertEqual(self.read("char x[4]", b"full", 4), "full")

    def test_text_that_is_not_utf8_keeps_its_bytes_and_its_type(self):
        value = self.read("char x[4]", b"\xff\xfea\0", 4)
        self.assertIs(type(value), str)
        self.assertEqual(value.encode("utf-8", "surrogateescape"), b"\xff\xfea")

    def test_byte_array_is_bytes_even_when_it_is_printable(self):
        self.assertEqual(self.read("__u8 x[4]", b"abcd", 4), b"abcd")

    def test_array_of_longs_is_a_tuple(self):
        value = self.read("unsigned long x[2]", struct.pack("=QQ", 1, 2**64 - 1), 16)
        self.assertEqual(value, (1, 2**64 - 1))

    def test_data_loc_of_length_0_is_empty(self):
        payload = struct.pack("=I", 0 << 16 | 12) + b"next\0"
        self.assertEqual(self.read("__data_loc char[] x", payload, 4), "")

    def test_data_loc_beyond_the_record_raises(self):
        payload = struct.pack("=I", 100 << 16 | 12) + b"next\0"
        with self.assertRaisesRegex(perfscope.DecodeError, "field x .*outside its record"):
            self.read("__data_loc char[] x", payload, 4)

    def test_cpumask_is_a_set_of_cpus(self):
        payload = struct.pack("=I", 8 << 16 | 12) + struct.pack("=Q", 0b1000_0101)
        self.assertEqual(self.read("__data_loc cpumask_t x", payload, 4), frozenset({0, 2, 7}))

    def test_field_outside_its_record_raises(self):
        kind = self.make([("long x", 60, 8, True)])
        record = sample(raw(b"\0" * 54)[:62])
        # The padding of the raw data is part of the record: cut it, as recordings do.
        size = struct.unpack_from("=H", record, 6)[0]
        record = bytearray(record)
        struct.pack_into("=I", record, 48, 62)
        self.assertEqual(size, len(record))
        with self.assertRaises(perfscope.DecodeError):
            self.handle(kind, bytes(record), lambda event: event.x)

    def test_raw_size_beyond_the_record_raises(self):
        kind = self.make([("int x", 8, 4, True)])
        record = bytearray(sample(raw(b"\1\0\0\0")))
        struct.pack_into("=I", record, 48, 4096)
        with self.assertRaises(perfscope.DecodeError):
            self.handle(kind, bytes(record), lambda event: event.x)


class TestCommonFields(EventTestCase):
    def test_common_fields_come_from_the_sample(self):
        kind = self.make([("int x", 8, 4, True)])
        record = sample(raw(b"\7\0\0\0", pid=99), pid=10, tid=11, time=2**63 + 5, cpu=3, period=77)
        got = self.handle(kind, record, lambda e: (e._pid, e._tid, e._time, e._cpu, e._period,
                                                   e._event, e._callchain, e._counters))
        self.assertEqual(got, (10, 11, 2**63 + 5, 3, 77, "test:thing", [], {}))

    def test_raw_is_the_events_own_bytes(self):
        kind = self.make([("int x", 8, 4, True)])
        data = raw(b"\7\0\0\0")
        self.assertEqual(self.handle(kind, sample(data), lambda e: e._raw), data)

    def test_ids_of_a_dead_thread_are_minus_1(self):
        kind = self.make([])
        got = self.handle(kind, sample(raw(), pid=-1, tid=-1), lambda e: (e._pid, e._tid, e._comm))
        self.assertEqual(got, (-1, -1, ":-1"))

    def test_idle_thread_is_called_as_the_kernel_does(self):
        kind = self.make([])
        self.assertEqual(self.handle(kind, sample(raw(), tid=0, cpu=1), lambda e: e._comm), "swapper/1")

    def test_common_header_follows_the_format_not_a_fixed_size(self):
        text = format_text([("int x", 16, 4, True)]).replace(
            "\n\n\tfield:int x", "\n\tfield:unsigned char common_preempt_lazy_count;\toffset:8;"
            "\tsize:1;\tsigned:0;\n\n\tfield:int x")
        kind = eventmaker.event_type(perfscope, "test", "test:thing", text)
        data = raw(b"\5" + b"\0" * 7 + struct.pack("=i", -3))
        got = self.handle(kind, sample(data), lambda e: (e.common_preempt_lazy_count, e.x))
        self.assertEqual(got, (5, -3))


class TestAccess(EventTestCase):
    def setUp(self):
        self.kind = self.make([("int x", 8, 4, True), ("int from", 12, 4, True),
                               ("int print", 16, 4, True), ("int _pid", 20, 4, True),
                               ("int keys", 24, 4, True)])
        self.record = sample(raw(struct.pack("=iiiii", 1, 2, 3, 4, 5)), pid=41)

    def on(self, function):
        return self.handle(self.kind, self.record, function)

    def test_by_dot_methods_and_common_fields_win(self):
        self.assertEqual(self.on(lambda e: (e.x, e._pid, callable(e.print), callable(e.keys))),
                         (1, 41, True, True))

    def test_by_key_the_events_own_field_wins(self):
        self.assertEqual(self.on(lambda e: (e["print"], e["_pid"], e["keys"], e["_tid"])), (3, 4, 5, 42))

    def test_keywords_have_an_underscore_by_dot_and_none_by_key(self):
        self.assertEqual(self.on(lambda e: (e.from_, e["from"], "from" in e, "from_" in e)),
                         (2, 2, True, False))

    def test_names_are_found_whether_interned_or_not(self):
        name = "".join(["_p", "id"])
        other = bytes([120]).decode()
        self.assertEqual(self.on(lambda e: (getattr(e, name), e[name], name in e, e.get(name))),
                         (41, 4, True, 4))
        self.assertEqual(self.on(lambda e: (getattr(e, other), e[other])), (1, 1))

    def test_str_subclass_finds_a_name(self):
        class Name(str):
            pass
        self.assertEqual(self.on(lambda e: (getattr(e, Name("x")), e[Name("x")])), (1, 1))

    def test_missing_names_raise_with_the_nearest(self):
        with self.assertRaisesRegex(AttributeError, "test:thing has no field '_pidd'; did you mean _pid"):
            self.on(lambda e: e._pidd)
        with self.assertRaisesRegex(KeyError, "test:thing has no field 'common_pld'.*common_pid"):
            self.on(lambda e: e["common_pld"])
        self.assertEqual(self.on(lambda e: (e.get("nope"), e.get("nope", 7), e.get(5, 8))), (None, 7, 8))
        with self.assertRaises(KeyError):
            self.on(lambda e: e[5])
        self.assertEqual(self.on(lambda e: (5 in e, hasattr(e, "nope"))), (False, False))

    def test_all_forms_agree(self):
        def check(event):
            keys = event.keys()
            self.assertEqual(len(event), len(keys))
            self.assertEqual(len(set(keys)), len(keys))
            self.assertEqual(list(event), event.items())
            self.assertEqual(event.values(), [event[key] for key in keys])
            self.assertEqual(event.to_dict(), dict(zip(keys, event.values())))
            self.assertEqual(dict(event), event.to_dict())
            self.assertEqual(dict(**event), event.to_dict())
            return keys
        self.assertEqual(self.on(check), (
            "_pid", "_tid", "_time", "_cpu", "_period", "_event", "_realtime", "_comm", "_callchain",
            "_counters", "_raw", "common_type", "common_flags", "common_preempt_count", "common_pid",
            "x", "from", "print", "keys"))

    def test_dir_lists_fields_and_methods(self):
        names = self.on(dir)
        for name in ("x", "from_", "_time", "to_dict", "symbolic"):
            self.assertIn(name, names)

    def test_fields_cannot_be_set(self):
        with self.assertRaisesRegex(AttributeError, "test:thing: an event's fields cannot be set .'_pid'"):
            self.on(lambda e: setattr(e, "_pid", 5))
        with self.assertRaisesRegex(AttributeError, "cannot be deleted"):
            self.on(lambda e: delattr(e, "x"))

    def test_events_are_not_made_by_scripts(self):
        with self.assertRaises(TypeError):
            perfscope.PerfEvent()

    def test_a_value_is_decoded_once(self):
        self.assertTrue(self.on(lambda e: e._raw is e._raw))


class TestText(EventTestCase):
    def test_repr_names_event_cpu_pid_and_time(self):
        kind = self.make([])
        self.assertEqual(self.handle(kind, sample(raw()), repr),
                         "<PerfEvent test:thing cpu=1 pid=41 time=1000000001>")

    def test_symbolic_is_what_the_print_format_shows(self):
        kind = self.make([("long state", 8, 8, True), ("int y", 16, 4, True)],
                         print_fmt='"state=%s%s y=%d", REC->state & 3 ? __print_flags(REC->state & 3, "|", '
                                   '{ 1, "S" }, { 2, "D" }) : "R", REC->state & 4 ? "+" : "", REC->y')
        def symbolic(state):
            record = sample(raw(struct.pack("=qi", state, 9)))
            return self.handle(kind, record, lambda e: e.symbolic("state"))
        self.assertEqual([symbolic(n) for n in (0, 1, 2, 3, 4, 5)], ["R", "S", "D", "S|D", "R+", "S+"])
        self.assertEqual(self.handle(kind, sample(raw(struct.pack("=qi", 0, 9))),
                                     lambda e: (e.symbolic("y"), e.symbolic("_cpu"))), ("9", "1"))

    def test_symbolic_of_an_unknown_name_is_a_key_error(self):
        with self.assertRaises(KeyError):
            self.handle(self.make([]), sample(raw()), lambda e: e.symbolic("nope"))

    def test_line_has_flags_cpu_time_and_fields(self):
        kind = self.make([("int x", 8, 4, True)], print_fmt='"x=%d", REC->x')
        record = sample(raw(struct.pack("=i", -5), flags=0x01 | 0x08, preempt=0x12), tid=0)
        line = self.handle(kind, record, str)
        self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} +swapper/1 +0 d\.h21 "
                               r"\[001\] +1\.000000: test:thing: x=-5$")

    def test_print_writes_a_line_to_sys_stdout(self):
        import io
        kind = self.make([("int x", 8, 4, True)], print_fmt='"x=%d", REC->x')
        saved, sys.stdout = sys.stdout, io.StringIO()
        try:
            self.handle(kind, sample(raw(b"\1\0\0\0"), tid=0), lambda e: e.print(timestamp=False))
            text = sys.stdout.getvalue()
        finally:
            sys.stdout = saved
        self.assertEqual(text.split(), ["swapper/1", "0", ".....", "[001]", "1.000000:", "test:thing:", "x=1"])
        self.assertTrue(text.endswith("\n"))

    def test_print_format_that_cannot_be_evaluated_falls_back_to_fields(self):
        kind = self.make([("int x", 8, 4, True), ("char s[4]", 12, 4, False)],
                         print_fmt='"%s", some_kernel_function(REC->x)')
        line = self.handle(kind, sample(raw(struct.pack("=i4s", 3, b"ab"))), str)
        self.assertTrue(line.endswith("test:thing: x=3 s=ab"), line)


class TestKeeping(EventTestCase):
    def setUp(self):
        self.kind = self.make([("int x", 8, 4, True), ("char s[4]", 12, 4, False)])

    def event(self, number, **kwargs):
        kept = []
        record = sample(raw(struct.pack("=i4s", number, b"ab")), **kwargs)
        self.handle(self.kind, record, kept.append)
        return kept[0]

    def test_kept_events_stay_whole(self):
        events = [self.event(i, time=i) for i in range(1000)]
        self.assertEqual([e.x for e in events], list(range(1000)))
        self.assertEqual([e._time for e in events], list(range(1000)))
        self.assertEqual({e.s for e in events}, {"ab"})
        self.assertEqual({e._comm for e in events}, {":42"})

    def test_value_read_before_keeping_is_the_same_after(self):
        kept = []
        def keep(event):
            kept.append(event)
            return event._raw
        before = self.handle(self.kind, sample(raw(struct.pack("=i4s", 5, b"cd"))), keep)
        self.assertIs(kept[0]._raw, before)

    def test_kept_event_outlives_its_type(self):
        kind = self.make([("int x", 8, 4, True)])
        kept = []
        self.handle(kind, sample(raw(struct.pack("=i", 6))), kept.append)
        del kind
        gc.collect()
        self.assertEqual(kept[0].x, 6)

    def test_equal_records_are_equal_and_hash_alike(self):
        a, b, c = self.event(1), self.event(1), self.event(2)
        self.assertTrue(a == b and not a != b and a != c)
        self.assertEqual(len({a, b, c}), 2)
        self.assertFalse(a == 1)
        self.assertTrue(a != "x")

    def test_kept_event_is_readable_in_another_thread(self):
        event, got = self.event(8), []
        thread = threading.Thread(target=lambda: got.append((event.x, event.s)))
        thread.start()
        thread.join()
        self.assertEqual(got, [(8, "ab")])

    def test_events_that_are_not_kept_leave_nothing_behind(self):
        record = sample(raw(struct.pack("=i4s", 1, b"ab")))
        def use(event):
            event.to_dict(), str(event), event.x, event.items(), event.get("nope")
        for _ in range(10):
            self.handle(self.kind, record, use)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(1000):
            self.handle(self.kind, record, use)
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - before, 50)

    def test_kept_events_are_freed(self):
        for _ in range(10):
            self.event(1)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(1000):
            self.event(1)
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - before, 50)

    def test_handler_that_raises_releases_the_event(self):
        def fail(event):
            raise ValueError(event.x)
        for _ in range(100):
            with self.assertRaises(ValueError):
                self.handle(self.kind, sample(raw(struct.pack("=i4s", 1, b"ab"))), fail)


class TestModule(unittest.TestCase):
    def test_what_works_only_in_a_run_says_so(self):
        for function in (perfscope.stop, perfscope.print_stat):
            with self.assertRaisesRegex(perfscope.PerfEventError, "only in a script"):
                function()

    def test_syscall_names(self):
        self.assertEqual(perfscope.syscall_name(110 if sys.maxsize > 2**32 else 64), "getppid")
        self.assertIsNone(perfscope.syscall_name(-1))
        self.assertIsNone(perfscope.syscall_name(10**9))

    def test_comm_of_this_thread(self):
        with open("/proc/self/comm", encoding="utf-8", errors="surrogateescape") as file:
            self.assertEqual(perfscope.comm(threading.get_native_id()), file.read().rstrip("\n"))

    def test_totals_are_made_as_scope_profiler_does(self):
        totals = perfscope.PerfEventTotals(3, {"cycles": 5})
        self.assertEqual((totals.calls, totals.values, totals.seconds), (3, {"cycles": 5}, 0.0))

    def test_everything_public_has_a_docstring(self):
        for name in dir(perfscope):
            if not name.startswith("_") and name != "EVENTS":  # a mapping has no place for one
                self.assertTrue(getattr(perfscope, name).__doc__, name)
        for name in ("symbolic", "print", "get", "keys", "values", "items", "to_dict"):
            self.assertTrue(getattr(perfscope.PerfEvent, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
