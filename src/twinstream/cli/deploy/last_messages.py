"""Whether the last stored messages of a stream fit its contracts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from attrs import frozen

from twinstream.cli.deploy.contracts import Contracts, stored_contracts

if TYPE_CHECKING:
    from js_sync import JetStream, StreamMessage
    from twinstream.cli.deploy.step import Step
    from twinstream.errors import PayloadError

# How much further back each further read begins, if the one before found too few messages.
_FURTHER: Final = 8


@frozen
class Checked:
    """The result for the messages of one subject or filter."""

    stream_name: str
    subject: str
    messages: int
    misfits: int
    first: str
    """The error of the newest message that does not fit; empty if all fit."""


def check_last(jet: JetStream, stream_name: str, contracts: Contracts, count: int) -> list[Checked]:
    """Decode the last stored messages of each subject, by a read that proves its completeness."""
    from twinstream.codecs import JsonSchemaCodec

    found: list[Checked] = []
    for subject, schema in contracts.items():
        stream = jet.bind_stream(stream_name).typed(JsonSchemaCodec(schema))
        messages = _last(stream, subject, count)
        errors = [error for each in messages if (error := _error(each)) is not None]
        first = str(errors[-1]) if errors else ""
        found.append(Checked(stream_name, subject, len(messages), len(errors), first))
    return found


def _last(stream: Any, subject: str, count: int) -> list[StreamMessage[Any]]:
    """Return the last messages of a subject, oldest first."""
    state = stream.info().state
    end, window = state.last_seq + 1, count
    while True:
        start = max(state.first_seq, end - window, 1)
        kept: deque[StreamMessage[Any]] = deque(maxlen=count)
        with stream.read(start, end, subjects=subject) as messages:
            kept.extend(messages)
        if len(kept) == count or start <= max(state.first_seq, 1):
            return list(kept)
        window *= _FURTHER


def _error(message: StreamMessage[Any]) -> PayloadError | None:
    from twinstream.errors import PayloadError

    try:
        _ = message.payload
    except PayloadError as error:
        return error
    return None


def checked_last(jet: JetStream, steps: Iterable[Step], count: int) -> list[Checked]:
    """Check the last messages of all streams of a plan that exist and have schemas."""
    from js_sync import StreamNotFound

    found: list[Checked] = []
    for step in steps:
        metadata = step.config.members.get("metadata")
        if step.kind != "stream" or not isinstance(metadata, dict):
            continue
        contracts = stored_contracts(cast("Any", metadata))
        try:
            found += check_last(jet, step.config.name, contracts, count)
        except StreamNotFound:
            # The step creates the stream.
            continue
    return found
