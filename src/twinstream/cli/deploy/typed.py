"""The typed config of a step.

The server accepts some values that have no typed form, such as a null in the metadata. A plan must
report them before anything is carried out, because a folder is applied either completely or not at
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from attrs import evolve, fields

from twinstream.models import (
    AckPolicy,
    ConsumerConfig,
    DecodeError,
    FileConfig,
    Model,
    Problem,
    StreamConfig,
    decode,
)


def stream_config(config: FileConfig) -> StreamConfig:
    """Return the stream config of a file. Raises ``DecodeError`` if it has no typed form."""
    return decode(config.members, StreamConfig)


def consumer_config(config: FileConfig) -> ConsumerConfig:
    """Return the consumer config of a file. Raises ``DecodeError`` if it has no typed form."""
    typed = decode(config.members, ConsumerConfig)
    if typed.ack_policy is None:
        # Like the server, treat a missing ack_policy as "none"; the SDK's default differs.
        typed = evolve(typed, ack_policy=AckPolicy.NONE)
    return typed


def untyped(config: FileConfig) -> list[Problem]:
    """Return why a config cannot be sent as written; empty if it can."""
    read = stream_config if config.kind == "stream" else consumer_config
    try:
        read(config)
    except DecodeError as error:
        return [_problem(path, reason) for path, reason in error.problems]
    return []


def other_spellings(config: FileConfig) -> list[tuple[str, str]]:
    """Return the keys that a server recognises but models do not, with the usual spelling.

    Servers ignore the case of keys. Models keep such a key as an unknown member, so its value would
    reach the server without being checked.
    """
    record = StreamConfig if config.kind == "stream" else ConsumerConfig
    try:
        return list(_folded(decode(config.members, record)))
    except DecodeError:  # reported by the validation
        return []


def _folded(model: Model) -> Iterator[tuple[str, str]]:
    names = {each.name for each in fields(type(model))} - {"unknown"}
    for key in model.unknown:
        usual = key.casefold()
        # A null remains among the unknown members, under the usual name of its setting.
        if usual in names and usual != key:
            yield key, usual
    for name in names:
        value = getattr(model, name)
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Model):
                yield from _folded(item)


def _problem(path: str, reason: str) -> Problem:
    hint = "The server would accept it; use the usual spelling."
    return Problem(path, None, "D-UNTYPED", f"{reason}.", hint)
