# SPDX-License-Identifier: MIT
"""A script that only lets perfscope look."""


def __exit__(totals):
    pass
