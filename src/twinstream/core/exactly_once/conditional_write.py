"""Insert, update and upsert: the outcome of a write, and when to retry.

Each write carries a message id, by which its stored message is recognised later. If a client sends
a write again that is already stored, the response depends on the server: some acknowledge it as a
duplicate, others (versions 2.12 to 2.15, for unreplicated streams) check the condition first and
refuse it. So a refusal does not prove that another client wrote first: the stored message has to be
checked.
"""

from __future__ import annotations

from enum import Enum, auto

from twinstream.core.error_details.transient import LOST_RESPONSE, is_transient
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.header_names import MSG_ID
from twinstream.errors import (
    MessageExists,
    MessageIdInProcess,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.models.records import frozen

__all__ = ["AlreadyThere", "Refusal", "Stored", "is_mine", "judge"]


@frozen(kw_only=True)
class Stored:
    """The message is in the stream.

    `repeated` is true if an earlier attempt stored it: of this call or, with the caller's own
    `msg_id`, of an earlier call.
    """

    stream: str
    seq: int
    repeated: bool = False


@frozen(kw_only=True)
class AlreadyThere:
    """The subject has another message, and nothing was stored.

    `message` is that message. It is None if a message with this `msg_id` was stored at `seq` within
    the duplicate window, and has been removed since.
    """

    stream: str
    seq: int
    message: StreamMessage | None


class Refusal(Enum):
    """The meaning of an error of an attempt to write."""

    HELD = auto()
    """The condition is not met, or the subject is full: check the stored message."""

    IN_PROCESS = auto()
    """The server has seen the id, outcome unknown: check the stored message, then retry."""

    PASSING = auto()
    """Not stored, but only temporarily refused: retry."""

    LOST = auto()
    """No response: the outcome is unknown."""

    FINAL = auto()
    """Not stored, and a retry would not help."""


def judge(error: TwinstreamError) -> Refusal:
    """Return the meaning of an error of an attempt."""
    if isinstance(error, WrongLastSequence | MessageExists):
        return Refusal.HELD
    if isinstance(error, LOST_RESPONSE):
        return Refusal.LOST
    if isinstance(error, MessageIdInProcess):
        return Refusal.IN_PROCESS
    return Refusal.PASSING if is_transient(error) else Refusal.FINAL


def is_mine(message: StreamMessage, msg_id: str) -> bool:
    """Return whether a stored message has this identity."""
    return message.headers.get(MSG_ID) == msg_id
