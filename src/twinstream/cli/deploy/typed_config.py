"""Convert the config of a step to a typed model.

The server accepts some values that models do not accept, such as a null in the metadata. A plan
reports such values before any step is carried out, because `apply` must change nothing if one step
is refused.
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
    """Return a stream config as a model. Raises `DecodeError` if the model does not accept it."""
    return decode(config.members, StreamConfig)


def consumer_config(config: FileConfig) -> ConsumerConfig:
    """Return a consumer config as a model. Raises `DecodeError` if the model does not accept it.

    A missing `ack_policy` becomes `none`.
    """
    typed = decode(config.members, ConsumerConfig)
    if typed.ack_policy is None:
        # "none" is the default of the server. The SDK has another default.
        typed = evolve(typed, ack_policy=AckPolicy.NONE)
    return typed


def untyped(config: FileConfig) -> list[Problem]:
    """Return a problem for each value of a config that the model does not accept."""
    read = stream_config if config.kind == "stream" else consumer_config
    try:
        read(config)
    except DecodeError as error:
        return [_problem(path, reason) for path, reason in error.problems]
    return []


def other_spellings(config: FileConfig) -> list[tuple[str, str]]:
    """Return the keys in upper or mixed case that a server accepts, with their usual spelling.

    Servers ignore the case of keys. Models treat such a key as an unknown member, so its value
    would be sent to the server without a check.
    """
    record = StreamConfig if config.kind == "stream" else ConsumerConfig
    try:
        return list(_other_spellings_in(decode(config.members, record)))
    except DecodeError:  # reported by the validation
        return []


def _other_spellings_in(model: Model) -> Iterator[tuple[str, str]]:
    """Yield unknown keys, also of models within, that are settings in upper or mixed case."""
    names = {each.name for each in fields(type(model))} - {"unknown"}
    for key in model.unknown:
        usual = key.casefold()
        # A setting that is null is also an unknown member, but its key has the usual spelling.
        if usual in names and usual != key:
            yield key, usual
    for name in names:
        value = getattr(model, name)
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Model):
                yield from _other_spellings_in(item)


def _problem(path: str, reason: str) -> Problem:
    hint = "The server would accept it; use the usual spelling."
    return Problem(path, None, "D-UNTYPED", f"{reason}.", hint)
