# SPDX-License-Identifier: MIT
"""Which functions of a script are called, with how many arguments, and what is said of those that cannot be."""

import unittest

from scripttest import ScriptTestCase

SWITCH, WAKEUP = "sched__sched_switch", "sched__sched_wakeup"


class BindTestCase(ScriptTestCase):
    def bind_text(self, text, handlers=f"{SWITCH},{WAKEUP}"):
        self.write("x.py", text)
        return self.bind("x.py", handlers=handlers)

    def assert_binds(self, text, *lines, handlers=SWITCH):
        run = self.bind_text(text, handlers)
        self.assertEqual(run.errors, [])
        self.assertEqual(run.lines, list(lines))

    def assert_refused(self, text, message):
        run = self.bind_text(text)
        self.assertEqual(run.errors, [f"perfscope: {message}"])
        self.assertEqual((run.lines, run.status), ([], 1))

    def assert_warned(self, text, message):
        run = self.bind_text(text)
        self.assertEqual(run.errors, [f"perfscope: {message}"])
        self.assertEqual(run.status, 0)


class TestHandlers(BindTestCase):
    def test_own_handler_else_sample_else_none(self):
        self.assert_binds(f"def {SWITCH}(event): pass", f"{SWITCH}: own", f"{WAKEUP}: none",
                          handlers=f"{SWITCH},{WAKEUP}")
        self.assert_binds(f"def {SWITCH}(event): pass\ndef __sample__(event): pass", "__sample__ 1",
                          f"{SWITCH}: own", f"{WAKEUP}: __sample__", handlers=f"{SWITCH},{WAKEUP}")

    def test_two_sources_of_one_name_share_a_handler(self):
        self.assert_binds("def a(event): pass", "a: own", "a: own", handlers="a,a")

    def test_names_that_are_no_identifiers(self):
        self.assert_binds("def class_(event): pass\ndef _1__x(event): pass\ndef a_b(event): pass",
                          "class: own", "1__x: own", "a-b: own", handlers="class,1__x,a-b")

    def test_callables_of_one_argument(self):
        for value in ("lambda event: 0", "lambda *events: 0", "lambda event, more=1: 0", "lambda event, *, key=1: 0",
                      "functools.partial(lambda a, b: 0, 1)", "functools.lru_cache(None)(lambda event: 0)",
                      "Class(0).method", "Class.static", "Class.own", "Class", "Class(0)", "print", "len", "[].append",
                      "str.upper"):
            self.assert_binds(f"{self.CLASS}{SWITCH} = {value}\n", f"{SWITCH}: own")

    CLASS = """\
import functools
class Class:
    def __init__(self, event): pass
    def __call__(self, event): pass
    def method(self, event): pass
    def bare(self): pass
    @staticmethod
    def static(event): pass
    @classmethod
    def own(cls, event): pass
"""

    def test_arguments_that_do_not_fit(self):
        define = f"; define {SWITCH}(event)"
        for parameters, takes in (("", "takes no argument"), ("a, b", "takes 2 arguments"),
                                  ("a, b, c=1", "takes 2 to 3 arguments"), ("a, b, *c", "takes 2 or more arguments"),
                                  ("event, *, key", "takes arguments by keyword alone")):
            self.assert_refused(f"\ndef {SWITCH}({parameters}): pass", f"./x.py:2: {SWITCH} {takes}{define}")

    def test_other_callables_that_do_not_fit(self):
        for value, place in (("[].clear", "script x.py"), ("functools.partial(len, [])", "script x.py"),
                             ("Class(0).bare", "./x.py:6")):
            self.assert_refused(f"{self.CLASS}{SWITCH} = {value}\n",
                                f"{place}: {SWITCH} takes no argument; define {SWITCH}(event)")

    def test_not_callable(self):
        self.assert_refused("__sample__ = 5", "script x.py: __sample__ is of type int, not a function; "
                                              "define __sample__(event)")
        self.assert_refused(f"{SWITCH} = None", f"script x.py: {SWITCH} is of type NoneType, not a function; "
                                                f"define {SWITCH}(event)")

    def test_coroutine_and_generator(self):
        says = "is a coroutine or generator, of which a call runs nothing; make it a plain function"
        for text in (f"async def {SWITCH}(event): pass", f"def {SWITCH}(event): yield",
                     f"async def {SWITCH}(event): yield"):
            self.assert_refused(text, f"./x.py:1: {SWITCH} {says}")
        self.assert_refused("def __exit__(): yield", f"./x.py:1: __exit__ {says}")

    def test_handler_of_a_counter_that_only_counts(self):
        run = self.bind_text("def cycles(event): pass", "-cycles")
        self.assertEqual(run.errors, ["perfscope: script x.py: cycles(event) is never called: cycles only counts "
                                      "(sample it: cycles/freq=HZ/)"])
        self.assertEqual(run.status, 0)

    def test_script_that_is_never_called(self):
        says = ["perfscope: script x.py: __sample__(event) is never called: the events of -e only count (period=N or freq=HZ "
                "makes them sample; what was counted comes in __exit__(totals))"]
        sample = "def __sample__(event): pass\n"
        for text, events, expected in ((sample, "-cycles", says), (sample + "def __exit__(totals): pass", "-cycles", []),
                                       (sample, f"-cycles,{SWITCH}", [])):
            with self.subTest(text=text, events=events):
                self.assertEqual(self.bind_text(text, events).errors, expected)


class TestCallbacks(BindTestCase):
    def test_each_number_of_arguments(self):
        for name, parameters, nr_args in (
                ("__init__", "", 0), ("__init__", "*a", 0), ("__init__", "a=1", 0), ("__exit__", "", 0),
                ("__exit__", "totals", 1), ("__exit__", "totals=None", 1), ("__exit__", "*a", 1),
                ("__interval__", "", 0), ("__interval__", "totals", 1), ("__lost__", "a, b", 2),
                ("__lost__", "a, b, c", 3), ("__lost__", "a, b, c=0, d=0", 3), ("__lost__", "*a", 3),
                ("__print_stat__", "indent", 1)):
            self.assert_binds(f"def {name}({parameters}): pass", f"{name} {nr_args}", f"{SWITCH}: none")
        self.assert_binds("def __sample__(event): pass", "__sample__ 1", f"{SWITCH}: __sample__")

    def test_arguments_that_do_not_fit(self):
        for name, parameters, takes, signature in (
                ("__init__", "a", "takes 1 argument", "__init__()"),
                ("__exit__", "a, b", "takes 2 arguments", "__exit__() or __exit__(totals)"),
                ("__interval__", "a, b", "takes 2 arguments", "__interval__() or __interval__(totals)"),
                ("__lost__", "a", "takes 1 argument",
                 "__lost__(lost_start, lost_end) or __lost__(lost_start, lost_end, lost)"),
                ("__lost__", "a, b, c, d", "takes 4 arguments",
                 "__lost__(lost_start, lost_end) or __lost__(lost_start, lost_end, lost)"),
                ("__print_stat__", "", "takes no argument", "__print_stat__(indent)"),
                ("__sample__", "", "takes no argument", "__sample__(event)")):
            self.assert_refused(f"def {name}({parameters}): pass", f"./x.py:1: {name} {takes}; define {signature}")

    def test_a_method_of_the_module_type_is_no_callback(self):
        self.assert_binds("def __exit__(): pass", "__exit__ 0", f"{SWITCH}: none")

    def test_imported_callbacks_count(self):
        self.write("other.py", "def __exit__(): pass\ndef helper__function(event): pass\n")
        self.assert_binds("from other import __exit__, helper__function", "__exit__ 0", f"{SWITCH}: none")

    def test_binding_does_not_import_inspect(self):
        self.write("x.py", f"""
            import sys
            def {SWITCH}(event): pass
            def __exit__(totals): print("inspect" in sys.modules)
            """)
        self.assertEqual(self.call("x.py").lines, ["False"])


class TestUnbound(BindTestCase):
    def test_mistyped_handler(self):
        self.assert_warned("def sched__sched_swich(event): pass\ndef __exit__(): pass",
                           "./x.py:1: sched__sched_swich is never called: -e has no such event; did you mean "
                           f"{SWITCH}?")

    def test_event_that_is_not_asked_for(self):
        self.assert_warned("def irq__irq_handler_entry(event): pass\ndef __exit__(): pass",
                           "./x.py:1: irq__irq_handler_entry is never called: -e has no such event")

    def test_mistyped_callback(self):
        self.assert_warned("def __intervall__(): pass\ndef __exit__(): pass",
                           "./x.py:1: __intervall__ is never called; did you mean __interval__?")

    def test_other_functions_are_none_of_our_business(self):
        self.assert_binds("""
            def helper(event): pass
            def two__arguments(a, b): pass
            def _private__helper(event): pass
            def __getattr__(name): raise AttributeError(name)
            def __dir__(): return []
            class some__class: pass
            def __exit__(): pass
            """, "__exit__ 0", f"{SWITCH}: none")


if __name__ == "__main__":
    unittest.main()
