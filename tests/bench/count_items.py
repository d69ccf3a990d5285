# SPDX-License-Identifier: MIT
"""Print how many items to_dict() of the first event has; the floor then fills a dict of as many."""

import perfscope


def __sample__(event):
    print(len(event.to_dict()))
    perfscope.stop()
