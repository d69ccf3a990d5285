"""Linux performance events as Python objects: what a perfscope script works with."""

from collections.abc import Iterator
from typing import Any

__version__: str

class PerfEventError(RuntimeError):
    """A counter or event could not be opened or read; the text says why."""

class DecodeError(ValueError):
    """A field lies outside its record, or the record is cut."""

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

class PerfEventTotals:
    """Totals of counters over a stretch of execution: the whole run, an interval, a region."""

    def __init__(self, calls: int = 0, values: dict[str, int | None] | None = None,
                 scaled: dict[str, float | None] | None = None,
                 coverage: dict[str, float] | None = None, seconds: float = 0.0, incomplete: int = 0) -> None: ...
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

def syscall_name(nr: int, /) -> str | None:
    """Return the name of system call nr on this architecture, None where there is none."""

def comm(tid: int, /, time: int | None = None) -> str | None:
    """Return the name of thread tid, None where it is not known.

    Inside perfscope it is the name at the event being handled; time is taken for later use by recordings."""

def stop() -> None:
    """End the run after this handler: no further event is handed out, __exit__ is called."""

def print_stat() -> None:
    """Print perfscope's own counts to stderr: share of a CPU since the last time, memory, events, lost."""
