"""The typed config of a step.

The server takes some spellings that have no typed form, such as a null among the metadata. A plan
has to say so before anything is carried out, because a folder is applied as a whole or not at all.
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
        # A file gets the server's default, not the SDK's default for programs.
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
    """Return the keys that a server takes for settings and models do not, with the usual spelling.

    Servers ignore capitals in keys. Models keep such a key as one that nobody knows, so that its
    value would reach the server but nothing here.
    """
    record = StreamConfig if config.kind == "stream" else ConsumerConfig
    try:
        return list(_folded(decode(config.members, record)))
    except DecodeError:  # told where it is judged
        return []


def _folded(model: Model) -> Iterator[tuple[str, str]]:
    names = {each.name for each in fields(type(model))} - {"unknown"}
    for key in model.unknown:
        usual = key.casefold()
        # A null stays among the unknown, by the name of its setting.
        if usual in names and usual != key:
            yield key, usual
    for name in names:
        value = getattr(model, name)
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Model):
                yield from _folded(item)


def _problem(path: str, reason: str) -> Problem:
    hint = "The server would take it; write it in the usual way."
    return Problem(path, None, "D-UNTYPED", f"{reason}.", hint)
