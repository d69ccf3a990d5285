# SPDX-License-Identifier: MIT
"""Print how many frames the stack of the first event has."""

import perfscope


def __sample__(event):
    print(len(event._callchain))
    perfscope.stop()
