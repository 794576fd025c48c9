"""Other names of commands: aliases, names of the `nats` command, and misspellings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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
    "stream gaps": "stream info STREAM --json, its state.deleted",
    "stream get": "get STREAM --seq SEQ",
    "stream restore": "restore FOLDER",
    "stream state": "stream info STREAM",
    "stream view": "get STREAM",
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
        return f"`nats {full}` is here: twinstream {_IN_NATS[full]}."
    whole = [each for each in targets if name.startswith(each) or each.startswith(name)]
    near = whole or difflib.get_close_matches(name, targets, n=2, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(repr(each) for each in near[:2])}?"
    return f"There are: {', '.join(targets)}"
