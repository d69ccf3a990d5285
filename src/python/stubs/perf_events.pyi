"""Counters of the calling thread, as a group: names of the module perfscope."""

from perfscope import EVENTS as EVENTS
from perfscope import PerfEventError as PerfEventError
from perfscope import PerfEventGroup as PerfEventGroup
from perfscope import PerfEventTotals as PerfEventTotals
from perfscope import validate_events as validate_events
