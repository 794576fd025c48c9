"""Insert, update and upsert: the outcome of a write, and the meaning of its errors.

Each write has a message id, by which the stored message is recognised later. If a client sends a
write again that is already stored, the response depends on the server. Some servers acknowledge it
as a duplicate. Others check the condition first and refuse it. So a refusal does not prove that
another client wrote first, and the client has to check the stored message.
"""

from __future__ import annotations

from enum import Enum, auto

from attrs import frozen

from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import (
    MessageExists,
    MessageIdInProcess,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.errors.transient import LOST_RESPONSE, is_transient
from twinstream.records.header_names import MSG_ID

__all__ = ["AlreadyThere", "Refusal", "Stored", "is_mine", "judge"]


@frozen(kw_only=True)
class Stored:
    """The result of a write whose message is in the stream.

    `repeated` is true if an earlier attempt stored the message. With the caller's own `msg_id`,
    this may be an attempt of an earlier call.
    """

    stream_name: str
    """Name of the stream."""
    seq: int
    """Sequence of the message."""
    repeated: bool = False


@frozen(kw_only=True)
class AlreadyThere:
    """The result of a write that stored nothing, because the subject has another message.

    `message` is the other message. It is None if a message with this `msg_id` was stored at `seq`
    within the duplicate window and has been removed since.
    """

    stream_name: str
    """Name of the stream."""
    seq: int
    message: StreamMessage | None


class Refusal(Enum):
    """The meaning of an error of an attempt to write."""

    HELD = auto()
    """The condition is not met, or the subject is full. The stored message has to be checked."""

    IN_PROCESS = auto()
    """The server is processing the message id. Check the stored message, then retry."""

    PASSING = auto()
    """The message is not stored. The refusal is temporary, so a retry may succeed."""

    LOST = auto()
    """There was no response, so the outcome is unknown."""

    FINAL = auto()
    """The message is not stored, and a retry would not help."""


def judge(error: TwinstreamError) -> Refusal:
    """Return the meaning of an error of an attempt to write."""
    if isinstance(error, WrongLastSequence | MessageExists):
        return Refusal.HELD
    if isinstance(error, LOST_RESPONSE):
        return Refusal.LOST
    if isinstance(error, MessageIdInProcess):
        return Refusal.IN_PROCESS
    return Refusal.PASSING if is_transient(error) else Refusal.FINAL


def is_mine(message: StreamMessage, msg_id: str) -> bool:
    """Return whether a stored message has the message id `msg_id`."""
    return message.headers.get(MSG_ID) == msg_id
