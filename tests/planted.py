"""Plant random faults in the source, one after the other, and see whether a test fails.

`python -m tests.planted --help`. It changes the checkout that it runs in, so run it in a clone or a
worktree of its own. A fault is a changed comparison, condition, number or operator, or a call that
is left out. First the tests of the same topic run; if they pass, those of the layer. A test that
failed runs again without the fault, so that a test which fails by itself catches nothing.
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

_ROOT: Final = Path(__file__).parent.parent
_ROOMS: Final = ("src/twinstream/core", "src/js_async", "src/twinstream/spark")
# A run of tests that takes longer has noticed the fault (seconds).
_LONGEST: Final = 600
_TURNED: Final[dict[type[ast.AST], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
    ast.Add: "-",
    ast.Sub: "+",
}


class Fault(NamedTuple):
    """A part of a file, and the code that replaces it."""

    file: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.file.relative_to(_ROOT)}:{self.line}"
        return f"{place}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"


def faults_of(file: Path) -> list[Fault]:
    """Return the faults that can be planted in a file."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, after in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = source[start:end].decode()
        if before != after:
            found.append(Fault(file, node.lineno, start, end, before, after))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield each part of the functions that can be changed, with the changed code."""
    functions = (
        each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                match node:
                    case ast.Compare(left=left, ops=[op], comparators=[right]) if (
                        type(op) in _TURNED
                    ):
                        yield node, f"{_text(left)} {_TURNED[type(op)]} {_text(right)}"
                    case ast.BoolOp(op=op, values=[first, *others]):
                        joined = f" {_TURNED[type(op)]} ".join(map(_text, [first, *others]))
                        yield node, f"({joined})"
                    case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right):
                        yield node, f"({_text(left)} {_TURNED[type(op)]} {_text(right)})"
                    case ast.UnaryOp(op=ast.Not(), operand=operand):
                        yield node, f"bool({_text(operand)})"
                    case ast.Constant(value=int() as value) if not isinstance(value, bool):
                        yield node, str(value + 1)
                    case ast.If(test=test) | ast.While(test=test):
                        yield test, f"(not {_text(test)})"
                    case ast.Expr(value=ast.Call() | ast.Await()):
                        yield node, "pass"
                    case _:
                        pass


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def tests_of(file: Path) -> tuple[list[str], list[str]]:
    """Return the tests of the topic of a file, and those of its layer."""
    parts = file.relative_to(_ROOT / "src").with_suffix("").parts
    layer = {"js_async": ["tests/_async"], "core": ["tests/core", "tests/_async"]}.get(
        "js_async" if parts[0] == "js_async" else parts[1], ["tests/spark"]
    )
    topic = parts[1] if parts[0] == "js_async" else parts[2]
    near = [path for each in layer if (_ROOT / (path := f"{each}/{topic}")).is_dir()]
    return near, layer


def fails(tests: list[str], jobs: int) -> list[str] | None:
    """Return the tests that failed first; None if all passed."""
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as report:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--no-header"]
        command += ["--numprocesses", str(jobs), "-p", "no:cacheprovider", *tests]
        with open(report.name, "wb") as out:
            try:
                code = subprocess.run(
                    command, cwd=_ROOT, stdout=out, stderr=out, timeout=_LONGEST, env=_environment()
                ).returncode
            except subprocess.TimeoutExpired:
                return []
        lines = report.read().splitlines()
    if code in (0, 5):
        return None
    words = [line.split(maxsplit=2) for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return [each[1] for each in words if "::" in each[1]]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"}


def is_caught(fault: Fault, jobs: int) -> str:
    """Return the name of a test that fails by a fault; empty if there is none."""
    source = fault.file.read_bytes()
    near, layer = tests_of(fault.file)
    for tests in (near, layer):
        if not tests:
            continue
        fault.file.write_bytes(source[: fault.start] + fault.after.encode() + source[fault.end :])
        try:
            failed = fails(tests, jobs)
        finally:
            fault.file.write_bytes(source)
        if failed is not None and (not failed or fails(failed[:1], 1) is None):
            return failed[0] if failed else "the run did not begin or did not end"
    return ""


@click.command(help=__doc__)
@click.option("--count", default=100, show_default=True, help="How many faults to plant.")
@click.option("--seed", default=1, show_default=True, help="Choose the faults by this number.")
@click.option("--jobs", default=2, show_default=True, help="Processes that run the tests.")
def main(count: int, seed: int, jobs: int) -> None:
    files = [file for room in _ROOMS for file in sorted((_ROOT / room).rglob("*.py"))]
    choices = [fault for file in files for fault in faults_of(file)]
    missed = 0
    for number, fault in enumerate(random.Random(seed).sample(choices, count), 1):
        caught = is_caught(fault, jobs)
        missed += not caught
        click.echo(f"{number} {'caught' if caught else 'NOT CAUGHT'} {fault} {caught}".rstrip())
    click.echo(f"{count - missed} of {count} faults were caught")


if __name__ == "__main__":
    main()
