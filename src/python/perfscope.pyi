"""Linux performance events as Python objects: what a perfscope script works with."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType, TracebackType
from typing import Any, Literal, Protocol, TypeVar, final, overload

__version__: str

_Function = TypeVar("_Function", bound=Callable[..., Any])

class PerfEventError(RuntimeError):
    """A counter or event could not be opened or read; the text says why."""

class DecodeError(ValueError):
    """A field lies outside its record, or the record is cut."""

@final
class PerfEvent:
    """One record of an event. Made by perfscope, never by scripts; each field is decoded when it is first read.

    By dot, methods and the common fields come before fields of the event with the same name, and a field called
    like a Python keyword has a trailing underscore; by key, the event's own field comes first. An event that is
    kept after its handler returned stays whole."""

    _pid: int
    """Process id (thread group) of the thread that was running; -1 once it is gone."""
    _tid: int
    """Thread id of the thread that was running; -1 once it is gone."""
    _time: int
    """When, in ns of the session's clock (--clock)."""
    _cpu: int
    """The CPU it happened on."""
    _period: int
    """How many occurrences this record stands for."""
    _event: str
    """The event's name, "sched:sched_switch"."""
    _realtime: int
    """When by the wall clock, in ns since 1970; for display."""
    _comm: str
    """Name of the thread at that time; ":TID" where it was gone before its name could be known."""
    _callchain: list[dict[str, Any]]
    """Frames, innermost first: {'addr', 'symbol', 'offset', 'kernel', 'dso'} and 'line' where known; empty without -g."""
    _counters: dict[str, int | None]
    """Values of the counters of the event's group at this event; empty where it is in none."""
    _raw: bytes
    """The event's own bytes, as the kernel wrote them."""

    def symbolic(self, name: str, /) -> str:
        """Return the field as the kernel prints it: "R+", "GFP_KERNEL|__GFP_ZERO".

        Parts of a sample in the words of perf: data_src, transaction, page sizes, branch_stack. Where there is no such form, the
        decoded value as text. KeyError for an unknown name."""
    def print(self, timestamp: bool = True, callchain: bool = True) -> None:
        """Print the event to sys.stdout as a line: wall clock, comm, tid, flags, [cpu], time, name, fields.

        timestamp=False leaves the wall clock out; callchain=False the frames below it."""
    def get(self, name: str, default: Any = None, /) -> Any:
        """Return event[name], or default where there is no such field."""
    def keys(self) -> tuple[str, ...]:
        """Return the names of all fields, the common ones first."""
    def values(self) -> list[Any]:
        """Return the values of all fields, in the order of keys()."""
    def items(self) -> list[tuple[str, Any]]:
        """Return (name, value) of all fields, in the order of keys()."""
    def to_dict(self) -> dict[str, Any]:
        """Return a new dict of all fields."""
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[str, Any]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class PerfEventTotals:
    """Totals of counters over a stretch of execution: the whole run, an interval, a region."""

    def __init__(self, calls: int = 0, values: dict[str, int | None] | None = None,
                 scaled: dict[str, float | None] | None = None,
                 coverage: dict[str, float] | None = None, seconds: float = 0.0, incomplete: int = 0,
                 open: int = 0) -> None: ...
    calls: int
    """How many passes the totals stand for."""
    values: dict[str, int | None]
    """Counter name to what was counted; None where it could not be counted, or only for a part of the time."""
    scaled: dict[str, float | None]
    """Counter name to the estimate for the whole time, where counters had to take turns; None where there was no count."""
    coverage: dict[str, float]
    """Counter name to the part of the time in which it counted, 0.0 to 1.0."""
    seconds: float
    """Wall time, seconds."""
    incomplete: int
    """Passes without a begin or an end, or around lost records: they are in none of the other numbers."""
    open: int
    """Passes that have not ended yet, of all threads together: they are in none of the other numbers."""

@final
class RegionPass:
    """One pass through a region, of one thread: what region__NAME(region) is called with.

    Of a recursion it is the outermost pass. It stays whole for as long as it is kept."""

    name: str
    """The region's name, as -r gives it."""
    pid: int
    """Process id (thread group) of the thread."""
    tid: int
    """Thread id."""
    comm: str
    """Name of the thread at the end of the pass; ":TID" where it is not known."""
    cpu: int
    """The CPU on which it ended."""
    begin: int
    """When it began, in ns of the session's clock (--clock)."""
    end: int
    """When it ended, the same."""
    seconds: float
    """Wall time from begin to end, seconds."""
    calls: int
    """1; with recursion, how many ends lie in this pass."""
    values: dict[str, int | None]
    """Counter name to what the thread counted in this pass; None where it could not be counted."""

@final
class PerfEventGroup:
    """Counters of the calling thread, read as one group: start(), the work, stop().

    The descriptors are opened by the first start() and stay until close(). What the thread does in the kernel is
    counted where this user may count it."""

    def __init__(self, events: str | Iterable[str]) -> None: ...
    events: tuple[str, ...]
    """The names of the counters, as validate_events() gives them."""
    fds: list[int]
    """The open descriptors, in the order of events; empty before the first start() and after close()."""
    user_only: bool
    """Whether the kernel is left out, since this user may not count it."""
    def start(self) -> None:
        """Start from zero, for the calling thread. PerfEventError where a counter is refused: it says why."""
    def stop(self) -> dict[str, int]:
        """Return what each counter counted since start(), which was called by the same thread.

        PerfEventError where one did not count all the time."""
    def close(self) -> None:
        """Close the descriptors; so does the end of `with`."""
    def __enter__(self) -> PerfEventGroup: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None, /) -> None: ...

@final
class Region:
    """A named stretch of execution: what region() returns. As context manager and as decorator each use is a pass.

    What is counted is the thread's own. A pass of a generator or coroutine is paused while that is suspended. Of a
    recursion the outermost pass counts, and each one is a call."""

    name: str
    """The name that it was made with."""
    def __enter__(self) -> Region: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None, /) -> None: ...
    def __call__(self, function: _Function, /) -> _Function: ...

class _Writer(Protocol):
    """What report() writes to."""
    def write(self, text: str, /) -> Any: ...

EVENTS: Mapping[str, tuple[int, int]]
"""Names of the counters that regions and PerfEventGroup know, each with type and config of its perf_event_attr."""

perf_events: ModuleType
"""EVENTS, validate_events, PerfEventGroup, PerfEventTotals and PerfEventError, as scope_profiler.perf_events has them."""

def validate_events(events: str | Iterable[str], /) -> tuple[str, ...]:
    """Return the names of counters as EVENTS has them, without doubles; case and blanks around them do not matter.

    A str may name several, by commas. ValueError for an unknown name, with the nearest ones, and for none."""

def region(name: str, /) -> Region:
    """Return the region of that name, to be used as `with region("parse"):` or `@region("parse")`.

    Its passes are counted where perfscope observes the program (--run) or configure() was called; else it does nothing.
    name: at most 63 bytes in UTF-8, not "run"."""

def configure(events: str | Iterable[str], user_only: bool = False, strict: bool = False, inherit: bool = False,
              subtract: bool = False) -> None:
    """Count events in the regions of this process from now on; totals start from zero.

    user_only leaves the kernel out. A counter that is refused reads None, and report() tells why; with strict, or where
    all are refused, it is a PerfEventError. inherit: threads born in a pass count in it. The cost of an empty pass is measured; subtract
    takes it off what regions() and report() tell, for each call. ValueError for unknown names, PerfEventError in a
    script of perfscope, whose regions count what -e names."""

@overload
def regions(by_thread: Literal[True]) -> dict[str, dict[int, PerfEventTotals]]: ...
@overload
def regions(by_thread: Literal[False] = False) -> dict[str, PerfEventTotals]:
    """Return the totals of each region so far: name to PerfEventTotals, or with by_thread to a dict of tid to one.

    A script of perfscope gets those of -r and of the programs of --run too: what __exit__ gets, but for "run". Threads that
    have ended may be added up under tid 0, as all threads of a region of -r are; those of one tid in several containers
    are added up."""

def reset() -> None:
    """Let the totals of all regions start from zero. PerfEventError in a script of perfscope, whose totals are the run's."""

def report(file: _Writer | None = None, format: Literal["table", "json"] = "table") -> None:
    """Write the totals of all regions to file, sys.stdout by default: as a table, or as JSON.

    With what a number cannot show: incomplete passes, estimates, why a counter has no value, the cost of an empty pass."""

def syscall_name(nr: int, /) -> str | None:
    """Return the name of system call nr on this architecture, None where there is none."""

def comm(tid: int, /, time: int | None = None) -> str | None:
    """Return the name of thread tid, None where it is not known.

    Inside perfscope it is the name at the event being handled; time is taken for later use by recordings."""

def stop() -> None:
    """End the run after this handler: no further event is handed out, __exit__ is called."""

def print_stat() -> None:
    """Print perfscope's own counts to stderr: share of a CPU since the last time, memory, events, lost, held back."""
