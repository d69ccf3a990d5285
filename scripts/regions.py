# SPDX-License-Identifier: MIT
"""Show what a pass of each region costs: regions of -r, and those that programs name themselves.

    perfscope python regions --run ./program             task-clock and page-faults, for each call
    perfscope python regions --sum --run ./program       all calls together
    perfscope python -i 1000 regions --run ./program     once a second, and the whole at the end
    perfscope python -r parse=func:parse@./program regions --run ./program
                                                         a function of a program that is not changed

US are microseconds. "~" stands before an estimate, "-" for what is not known. What an empty pass of a
program's region counts is in each call.

    $ perfscope python -r write=syscalls:sys_enter_write..syscalls:sys_exit_write regions --run dd if=/dev/zero of=/dev/null bs=1k count=1000 status=none
    REGION  CALLS  INCOMPLETE      US  task-clock  page-faults
    run         1           0  6833.8   3824357.0         78.0
    write    1000           0     1.2      1071.0          0.0
"""
import argparse
import io
import json
import unicodedata

import perfscope

__options__ = "-e task-clock,page-faults"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="regions", description=__doc__.splitlines()[0])
    parser.add_argument("--sum", action="store_true", help="show all calls together")
    return parser.parse_args()


def plain(name):
    return "".join(character if character.isprintable() else "?" for character in name)


def width(text):
    return sum(0 if unicodedata.category(character) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(character) in "FW")
               for character in text)


def number(value, calls):
    if options.sum:
        return str(value)
    return f"{value / calls:.1f}" if calls else "-"


def cell(total, name):
    value = total.values.get(name)
    if value is not None:
        return number(value, total.calls)
    scaled = total.scaled.get(name)
    return "-" if scaled is None else "~" + number(round(scaled), total.calls)


def show(totals):
    names = list(next(iter(totals.values())).values)
    rows = [["REGION", "CALLS", "INCOMPLETE", "US", *names]]
    rows += [[plain(name), str(total.calls), str(total.incomplete), number(round(total.seconds * 1e6, 1), total.calls),
              *(cell(total, event) for event in names)] for name, total in totals.items()]
    widths = [max(map(width, column)) for column in zip(*rows)]
    for first, *rest in rows:
        print("  ".join([first + " " * (widths[0] - width(first)), *(map(str.rjust, rest, widths[1:]))]))


def __interval__(totals):
    show(totals)
    print()


def show_cost():
    file = io.StringIO()
    perfscope.report(file, format="json")
    costs = [f"{count} {name}" for name, count in json.loads(file.getvalue())["overhead"].items() if count is not None]
    if costs:
        print("an empty pass counts", ", ".join(costs))


def __exit__(totals):
    show(totals)
    show_cost()


options = parse_arguments()
