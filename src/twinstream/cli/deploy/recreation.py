"""Refuse the re-creation of a stream if it is unknown whether the server accepts the new stream.

A stream loses its messages when it is removed. So a problem that only the server can decide is
accepted in the creation of a stream, but not in a re-creation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.typed_config import stream_config
from twinstream.models import StorageType, StreamConfig


def judged(step: Step, old: StreamConfig | None, unknown: str) -> Step:
    """Return the step, or a refused copy if it is a re-creation whose success is unknown.

    Args:
        step: The step of a stream.
        old: The config of the existing stream.
        unknown: What could not be requested from the server, or an empty text.
    """
    if step.verb != "recreate" or old is None:
        return step
    new = stream_config(step.config)
    if unknown:
        reason = f"{unknown} could not be requested"
    elif any(
        problem.needs_server and not _HELD_BY_OLD.get(problem.rule, _never)(old, new)
        for problem in step.plan.problems
    ):
        reason = "only the server can tell whether it would accept the new stream"
    else:
        return step
    refusal = (
        f"it must be re-created, but {reason};"
        f" remove the stream with `twinstream stream rm {step.config.name}`, and apply again"
    )
    return evolve(step, verb="refused", refusal=refusal)


def _never(old: StreamConfig, new: StreamConfig) -> bool:
    return False


def _has_servers(old: StreamConfig, new: StreamConfig) -> bool:
    return (new.num_replicas or 1) <= (old.num_replicas or 1)


def _has_place(old: StreamConfig, new: StreamConfig) -> bool:
    return old.placement == new.placement and _has_servers(old, new)


def _has_bytes(old: StreamConfig, new: StreamConfig) -> bool:
    same = (old.storage or StorageType.FILE) == (new.storage or StorageType.FILE)
    return same and _has_servers(old, new) and (new.max_bytes or 0) <= (old.max_bytes or 0)


# Rules that only the server decides, with a function for each.
# The function returns whether the old stream, which the server accepted, needs as much.
_HELD_BY_OLD: Final[dict[str, Callable[[StreamConfig, StreamConfig], bool]]] = {
    "S-REPL-STANDALONE": _has_servers,
    "S-NO-PEERS": _has_place,
    "S-ACC-STORAGE": _has_bytes,
}
