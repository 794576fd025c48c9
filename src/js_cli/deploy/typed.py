"""The typed config of a step.

Some spellings are good for the server and for nobody else, such as a null among the metadata. A
plan has to say so before anything is carried out, because a folder is to be done whole or not.
"""

from __future__ import annotations

from attrs import evolve

from js_models import (
    AckPolicy,
    ConsumerConfig,
    DecodeError,
    FileConfig,
    Problem,
    StreamConfig,
    decode,
)


def stream_config(config: FileConfig) -> StreamConfig:
    """Return the stream config of a file; ``DecodeError`` where it has no typed form."""
    return decode(config.members, StreamConfig)


def consumer_config(config: FileConfig) -> ConsumerConfig:
    """Return the consumer config of a file; ``DecodeError`` where it has no typed form."""
    typed = decode(config.members, ConsumerConfig)
    if typed.ack_policy is None:
        # A file says what the server is told; the SDK's own default for programs is another.
        typed = evolve(typed, ack_policy=AckPolicy.NONE)
    return typed


def untyped(config: FileConfig) -> list[Problem]:
    """Return why a config cannot be sent as it is written; empty where it can."""
    read = stream_config if config.kind == "stream" else consumer_config
    try:
        read(config)
    except DecodeError as error:
        return [_problem(path, reason) for path, reason in error.problems]
    return []


def _problem(path: str, reason: str) -> Problem:
    hint = "The server would take it; write it in the usual way."
    return Problem(path, None, "D-UNTYPED", f"{reason}.", hint)
