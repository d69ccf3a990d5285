# SPDX-License-Identifier: MIT
"""The parts of perfscope's regions that are written in Python; the module runs this text when one of them is first used."""

import functools
import inspect
import json
import sys


def is_of_kind(test, function):
    """Whether test holds of function, or of what a call of such an object calls."""
    return test(function) or test(getattr(type(function), "__call__", None))


def refuse(region, thing):
    if isinstance(thing, type):
        raise TypeError(f"{region} decorates a function, not the class {thing.__name__}: decorate its methods")
    kind = type(thing).__name__
    hint = f": write it below @{kind}" if hasattr(thing, "__get__") else ""
    raise TypeError(f"{region} decorates a function, not a {kind}{hint}")


def wrap(region, function):
    """Return function with each of its calls a pass; a generator's or coroutine's pass is paused while it is suspended."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(wrap(region, function.__func__))
    if isinstance(function, type) or not callable(function):
        refuse(region, function)
    if is_of_kind(inspect.isasyncgenfunction, function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with region:
                generator = function(*args, **kwargs)
                step = generator.__anext__()
                try:
                    while True:
                        try:
                            item = await step
                        except StopAsyncIteration:
                            return
                        try:
                            sent = yield item
                        except GeneratorExit:
                            await generator.aclose()
                            raise
                        except BaseException as error:  # the inner one decides what becomes of it
                            step = generator.athrow(error)
                        else:
                            step = generator.asend(sent)
                finally:
                    await generator.aclose()
    elif is_of_kind(inspect.iscoroutinefunction, function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with region:
                return await function(*args, **kwargs)
    elif is_of_kind(inspect.isgeneratorfunction, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with region:
                return (yield from function(*args, **kwargs))
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with region:
                return function(*args, **kwargs)
    return wrapper


def as_dict(total):
    return {"calls": total.calls, "incomplete": total.incomplete, "seconds": total.seconds, "values": total.values,
            "scaled": total.scaled, "coverage": total.coverage}


def cell(total, name):
    """What was counted; ~ stands before an estimate, - for what is not known."""
    if total.values.get(name) is not None:
        return str(total.values[name])
    scaled = total.scaled.get(name)
    return "-" if scaled is None else f"~{scaled:.0f}"


def plain(name):
    """name with ? for what a terminal would take as a command, or cannot show."""
    return "".join(character if character.isprintable() else "?" for character in name)


def width(text):
    """How many columns of a terminal text takes."""
    import unicodedata  # which a program that only has regions does not need
    return sum(0 if unicodedata.category(character) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(character) in "FW")
               for character in text)


def pass_empty(region):
    """What configure() measures as the cost of a pass."""
    with region:
        pass


def table(told):
    """Lines of a table, and below it what it cannot show."""
    names = list(told["events"])
    rows = [["region", "calls", "seconds", *names]]
    rows += [[plain(name), str(total.calls), f"{total.seconds:.6f}", *(cell(total, event) for event in names)]
             for name, total in told["regions"].items()]
    widths = [max(map(width, column)) for column in zip(*rows)]
    for first, *rest in rows:
        yield "  ".join([first + " " * (widths[0] - width(first)), *(map(str.rjust, rest, widths[1:]))])
    for name, total in told["regions"].items():
        name = plain(name)
        if total.incomplete:
            yield f"{name}: {total.incomplete} pass{'' if total.incomplete == 1 else 'es'} incomplete"
        if total.open:
            yield f"{name}: {total.open} pass{'' if total.open == 1 else 'es'} open"
        for event in names:
            if total.values.get(event) is None and total.scaled.get(event) is not None:
                yield f"{name}: {event} counted {100 * total.coverage[event]:.0f} % of the time, and is an estimate"
    totals = told["regions"].values()
    for event, reason in told["reasons"].items():
        if totals and all(total.values.get(event) is not None for total in totals):
            continue  # those of -r may have what threads cannot
        yield f"{event}: {reason}"
    if told["groups"] > 1:
        yield (f"the counters do not fit on the PMU together: they are counted in {told['groups']} groups, each read at a moment of "
               "its own")
    cost = ", ".join(f"{value} {event}" for event, value in told["overhead"].items() if value is not None)
    if cost:
        yield f"an empty pass counts {cost}" + ("; taken off above" if told["is_subtracted"] else "")
    if told["missed"]:
        yield f"no room for a region in a thread, {told['missed']} times: its passes are missing"


def report(told, file, kind, is_active):
    """Write what is told of all regions to file, or sys.stdout. Not is_active: nobody counts."""
    if kind == "json":
        regions = told["regions"].items()
        text = json.dumps({**told, "regions": {name: as_dict(total) for name, total in regions},
                           "open": {name: total.open for name, total in regions if total.open}}, indent=1)
    elif kind == "table":
        text = "\n".join(table(told)) if is_active else "no region is counted: call configure() first"
    else:
        raise ValueError(f"report: format is 'table' or 'json', not {kind!r}")
    (sys.stdout if file is None else file).write(text + "\n")
