# SPDX-License-Identifier: MIT
"""Print a C header with the text of a Python file, which the module runs itself."""

import sys

from docstrings import c_string


def main(path, name):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    compile(text, path, "exec")
    print(f"// Generated from {path}.")
    print(f"#define {name} {c_string(text)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
