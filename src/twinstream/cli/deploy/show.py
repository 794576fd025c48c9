"""Print a plan for people, or convert it to JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Final

from attrs import fields_dict
from rich.console import Console
from rich.text import Text

from twinstream.cli.deploy.contracts import METADATA, ContractChange
from twinstream.cli.deploy.last_messages import Checked
from twinstream.cli.deploy.step import Step, Verb
from twinstream.cli.escapes import harmless
from twinstream.cli.problems import problem_as_json
from twinstream.cli.value_text import as_text, in_time
from twinstream.models import (
    Change,
    ConsumerConfig,
    Duration,
    FileProblem,
    KeyValueConfig,
    ObjectStoreConfig,
    Problem,
    StreamConfig,
)

MARKS: Final = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "recreate": ("±", "red"),
    "nothing": ("=", "dim"),
    "refused": ("!", "red"),
}
WORDS: Final[dict[Verb, str]] = {
    "create": "to create",
    "update": "to update",
    "recreate": "to re-create",
    "nothing": "unchanged",
    "refused": "refused",
}
_DURATIONS: Final = {
    kind: {name for name, member in fields_dict(config).items() if "Duration" in str(member.type)}
    for kind, config in (
        ("stream", StreamConfig),
        ("consumer", ConsumerConfig),
        ("key_value", KeyValueConfig),
        ("object_store", ObjectStoreConfig),
    )
}


def print_plan(console: Console, steps: Iterable[Step]) -> None:
    """Print each step with its changes, losses, problems and the reason of a refusal."""
    for step in steps:
        symbol, colour = MARKS[step.verb]
        line = Text(f"{symbol} {step.title}", style=colour)
        line.append(f"  {step.config.file}:{step.config.line}", style="dim not bold")
        console.print(line, soft_wrap=True)
        for change in step.plan.changes:
            if change.path == f"metadata.{METADATA}":
                # The differences of the schemas follow below.
                continue
            console.print(f"    {_changed(step, change)}", soft_wrap=True)
        for contract in step.contracts:
            console.print(_contract(contract), soft_wrap=True)
        for loss in step.plan.losses:
            console.print(Text(f"    {loss}", style="red"), soft_wrap=True)
        for problem in step.plan.problems:
            console.print(_problem(problem), soft_wrap=True)
        if step.refusal:
            console.print(Text(f"    refused: {step.refusal}", style="red"), soft_wrap=True)


def _problem(problem: Problem) -> Text:
    note = "only the server can tell: " if problem.needs_server else ""
    return Text(f"    {note}{problem}", style="yellow" if problem.needs_server else "red")


def _contract(change: ContractChange) -> Text:
    word = "break" if change.is_break else "cannot tell"
    text = f"    payload of {change.subject}: {word}: {change.text}"
    return Text(text, style="red" if change.is_break else "yellow")


def print_checked(console: Console, checked: Iterable[Checked]) -> None:
    """Print whether the last stored messages fit the schemas."""
    for one in checked:
        line = f"{one.stream_name} {one.subject}: {one.messages:,} messages read"
        if not one.misfits:
            console.print(Text(f"  {line}, all fit"), soft_wrap=True)
            continue
        console.print(Text(f"! {line}, {one.misfits:,} do not fit", style="red"), soft_wrap=True)
        console.print(Text(f"    {harmless(one.first)}", style="red"), soft_wrap=True)


def _changed(step: Step, change: Change) -> str:
    old, new = (_value(step, change.path, value) for value in (change.old, change.new))
    return f"{change.path}: {old} → {new}"


def _value(step: Step, path: str, value: object) -> str:
    # The changes of a bucket may concern settings that only its stream has.
    of_stream = _DURATIONS["stream"] if step.kind != "consumer" else set[str]()
    durations = _DURATIONS[step.kind] | of_stream
    if path in durations and isinstance(value, int):
        return in_time(Duration.from_ns(value))
    return as_text(value) or "not set"


def summary(steps: Iterable[Step]) -> str:
    """Return a summary of a plan, such as `1 to create, 2 unchanged`."""
    counted = Counter(step.verb for step in steps)
    return ", ".join(f"{counted[verb]} {word}" for verb, word in WORDS.items() if counted[verb])


def as_json(
    server: str,
    steps: list[Step],
    dropped: list[FileProblem],
    *,
    applied: bool,
    done: Container[Step] = (),
) -> dict[str, object]:
    """Return a plan as a JSON object. Old and new values are written as in configuration files."""
    return {
        "server": server,
        "refused": any(step.verb == "refused" for step in steps),
        "applied": applied,
        "steps": [_step_as_json(step, done=step in done) for step in steps],
        "warnings": [problem_as_json(one) for one in dropped],
    }


def _step_as_json(step: Step, *, done: bool) -> dict[str, object]:
    """Return a step as a JSON object. `done` is whether it was carried out."""
    plan = step.plan
    return {
        "kind": step.kind,
        "stream_name": step.config.stream_name,
        "name": step.name,
        "file": step.config.file,
        "line": step.config.line,
        "action": step.verb,
        "done": done,
        "changes": [{"path": one.path, "old": one.old, "new": one.new} for one in plan.changes],
        "losses": plan.losses,
        "payloads": [
            {"subject": one.subject, "break": one.is_break, "text": one.text}
            for one in step.contracts
        ],
        "problems": [
            {
                "path": one.path,
                "rule": one.rule,
                "message": one.message,
                "hint": one.hint,
                "err_code": one.err_code,
                "needs_server": one.needs_server,
            }
            for one in plan.problems
        ],
        "refusal": step.refusal,
    }
