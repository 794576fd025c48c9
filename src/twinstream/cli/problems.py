"""Print problems in configuration files for people, or convert them to JSON."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from twinstream.models.files.config_files import FileProblem


def print_problems(console: Console, problems: list[FileProblem], indent: str = "") -> None:
    """Print each problem on one line: `file:line:column: path: sentence (err_code) hint`.

    Problems that only a server can decide are marked.
    """
    for found in problems:
        problem = found.problem
        line = Text(f"{indent}{found.file}:{found.line}:{found.column}: ", style="bold")
        colour = "yellow" if problem.needs_server else "red"
        line.append(f"{problem.path}: " if problem.path else "", style=colour)
        line.append(problem.message, style="default not bold")
        if problem.err_code:
            line.append(f" ({problem.err_code})", style="dim not bold")
        if problem.needs_server:
            line.append(" [only the server can tell]", style="dim not bold")
        if problem.hint:
            line.append(f" {problem.hint}", style="cyan not bold")
        console.print(line, soft_wrap=True)


def print_warnings(console: Console, warnings: list[FileProblem]) -> None:
    """Print each problem on one line as a warning."""
    for found in warnings:
        problem = found.problem
        line = Text(f"{found.file}:{found.line}:{found.column}: ", style="bold")
        line.append("warning: ", style="yellow")
        line.append(f"{problem.path}: " if problem.path else "", style="yellow not bold")
        line.append(problem.message, style="default not bold")
        if problem.hint:
            line.append(f" {problem.hint}", style="cyan not bold")
        console.print(line, soft_wrap=True)


def problem_as_json(found: FileProblem) -> dict[str, object]:
    """Return a problem and its location as a JSON object."""
    problem = found.problem
    return {
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "path": problem.path,
        "rule": problem.rule,
        "message": problem.message,
        "hint": problem.hint,
        "err_code": problem.err_code,
        "needs_server": problem.needs_server,
    }
