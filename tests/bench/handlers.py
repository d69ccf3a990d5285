# SPDX-License-Identifier: MIT
"""The handlers that bench.py times: the floor and perfscope call the very same functions."""

n = 0


def count(event):
    global n
    n += 1


def fields(event):
    global n
    number = event.id
    pid = event._pid
    n += 1


def to_dict(event):
    global n
    event.to_dict()
    n += 1


def callchain(event):
    global n
    event._callchain
    n += 1
