#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what can be checked of the Markdown without running it: links, goals of make, paths of this tree."""

import glob
import os
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")
GOAL = re.compile(r"(?:^|&& )(?:\$ |sudo )?make ((?:[A-Za-z]+=\S+ )*)([a-z][a-z-]+)", re.M)
CODE = re.compile(r"`([^`\n]+)`|^(?:    |\t)(.*)$|^```.*?\n(.*?)^```", re.M | re.S)
PATH = re.compile(r"(?<![\w/.-])(?:src|include|scripts|tests|docs|\.ci)/[\w./-]*\w(?![\w*{/<-])")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def find_goals(root):
    texts = [read(path) for path in [f"{root}/Makefile", *glob.glob(f"{root}/scripts/build/*.mk")]]
    return set(re.findall(r"^([a-z][a-z-]*):", "\n".join(texts), re.M))


def anchor_of(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def check_links(root, path, text):
    for target, anchor in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        full = os.path.normpath(os.path.join(root, os.path.dirname(path), target)) if target else f"{root}/{path}"
        if not os.path.exists(full):
            yield f"link to {target}, which does not exist"
        elif anchor and full.endswith(".md"):
            headings = re.findall(r"^#+ (.*)$", read(full), re.M)
            if anchor[1:] not in map(anchor_of, headings):
                yield f"link to {target}{anchor}: no such heading"


def check_code(root, text, goals):
    for match in CODE.finditer(text):
        code = match[1] or match[2] or match[3] or ""
        for _, goal in GOAL.findall(code):
            if goal not in goals:
                yield f"`make {goal}`: no such goal"
        for name in PATH.findall(code):
            if not os.path.exists(f"{root}/{name}"):
                yield f"`{name}` does not exist"


def check(root):
    """All faults of the Markdown files below @root, as (path, text)."""
    goals = find_goals(root)
    paths = [*glob.glob(f"{root}/*.md"), *glob.glob(f"{root}/docs/**/*.md", recursive=True)]
    for path in sorted(os.path.relpath(path, root) for path in paths):
        text = read(f"{root}/{path}")
        for fault in [*check_links(root, path, text), *check_code(root, text, goals)]:
            yield path, fault


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    faults = list(check(root))
    for path, text in faults:
        print(f"{path}: {text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
