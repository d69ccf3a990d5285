# SPDX-License-Identifier: MIT
"""Print a C header of docstrings, taken from a stub file: one text serves editors and help()."""

import ast
import sys


def c_string(text):
    lines = text.split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    text = "\n".join([lines[0]] + [line[indent:] for line in lines[1:]])
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n" \\\n\t"')
    return f'"{escaped}"'


def signature(node):
    """As inspect reads it from a C docstring: `name($self, x, /)` and a line `--`."""
    arguments = ast.unparse(ast.fix_missing_locations(strip_annotations(node.args)))
    if arguments.split(",")[0] == "self":
        arguments = "$" + arguments
    return f"{node.name}({arguments})\n--\n\n"


def strip_annotations(arguments):
    for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
        argument.annotation = None
    return arguments


def constructor(node):
    """The signature of a class that has a constructor, without self; else nothing."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return signature(method).replace("__init__($self, ", node.name + "(")
    return ""


def docstrings(body, prefix=""):
    """Yield (C name, docstring) of all that has one: functions, annotated names; of classes (signature, docstring)."""
    for node, follower in zip(body, body[1:] + [None]):
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, (constructor(node), ast.get_docstring(node))
            yield from docstrings(node.body, f"{prefix}{node.name}_")
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            yield prefix + node.name, signature(node) + ast.get_docstring(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(follower, ast.Expr):
            yield prefix + node.target.id, follower.value.value


def definition(text):
    """The C expression of a docstring, or of a class's pair of signature and docstring."""
    if isinstance(text, str):
        return c_string(text)
    head, text = text
    return f"PS_CLASS_SIGNATURE({c_string(head)}) {c_string(text)}" if head else c_string(text)


def main(path):
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    print("// Generated from perfscope.pyi.")
    print(f"#define DOC_module {c_string(ast.get_docstring(tree))}")
    for name, text in docstrings(tree.body):
        print(f"#define DOC_{name} {definition(text)}")


if __name__ == "__main__":
    main(sys.argv[1])
