"""Other names of commands: aliases, names of the `nats` command, and misspellings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "list": ("ls",),
    "delete": ("rm", "del"),
    "remove": ("rm", "del"),
    "rm": ("del",),
    "del": ("rm",),
    "new": ("add",),
    "create": ("add",),
    "update": ("edit",),
    "str": ("stream",),
    "con": ("consumer",),
    "obj": ("object",),
    "sched": ("schedule",),
    "request": ("req",),
    "subscribe": ("sub",),
    "cp": ("copy",),
    "nfo": ("info",),
    "s": ("stream",),
    "c": ("consumer",),
}
"""Other names of commands, each with the commands that it can mean, the first that exists."""

# Commands of the `nats` command that have another name here.
_IN_NATS: Final[Mapping[str, str]] = {
    "account backup": "backup STREAM FOLDER",
    "account report": "account info",
    "account restore": "restore FOLDER",
    "check": "health",
    "consumer copy": "apply, with the consumer in a file",
    "consumer find": "consumer ls STREAM",
    "consumer state": "consumer info STREAM CONSUMER",
    "error": "events",
    "errors": "events",
    "kv rollback": "kv revert BUCKET KEY REVISION",
    "kv status": "kv info BUCKET",
    "kv view": "kv info BUCKET",
    "object status": "object info BUCKET",
    "server check": "health",
    "server report": "account info",
    "stream backup": "backup STREAM FOLDER",
    "stream cluster": "stream step-down, and stream peer-remove",
    "consumer names": "consumer ls STREAM --names",
    "kv names": "kv ls --names",
    "object names": "object ls --names",
    "stream gaps": "stream info STREAM --json, its state.deleted",
    "stream get": "get STREAM --seq SEQ, or --last SUBJECT",
    "stream names": "stream ls --names",
    "stream restore": "restore FOLDER",
    "stream state": "stream info STREAM",
    "stream view": "get STREAM --count N, and --from SEQ for the next ones",
}


def aliased(name: str, targets: Iterable[str]) -> str:
    """Return the command that a name means: itself, or the command of which it is an alias."""
    known = set(targets)
    if name in known:
        return name
    return next((each for each in ALIASES.get(name, ()) if each in known), name)


def advice(path: str, name: str, targets: Iterable[str]) -> str:
    """Return what to try instead of an unknown command.

    Args:
        path: The names of the groups before it, such as `stream`; empty for none.
        name: The unknown name.
        targets: The names of the existing commands.
    """
    targets = sorted(targets)
    full = f"{path} {name}".strip()
    if full in _IN_NATS:
        return f"Here it is: twinstream {_IN_NATS[full]}."
    near = similar(name, targets, 0.6)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"There are: {', '.join(targets)}"


def similar(name: str, names: Sequence[str], least: float) -> list[str]:
    """Return up to two names that begin like an unknown name, or are spelled like it.

    `least` is the least similarity of their spelling, from 0 to 1.
    """
    whole = [each for each in names if name.startswith(each) or each.startswith(name)]
    return (whole or difflib.get_close_matches(name, names, n=2, cutoff=least))[:2]
