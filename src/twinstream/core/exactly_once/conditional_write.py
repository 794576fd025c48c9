"""Insert, update and upsert: what came of a write, and when to write again.

A write goes out with an identity, by which a message found under its subject is recognised as this
very one. When a write that was stored is repeated, servers differ: some acknowledge it as a
duplicate, others (2.12 to 2.15, unreplicated) judge the condition first and refuse it. So a refusal
is no proof that somebody else was faster: the message that is there is looked at.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from attrs import frozen

from twinstream.errors import (
    ConnectionLost,
    JetStreamError,
    MessageExists,
    MessageIdInProcess,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.core.wire.header_names import MSG_ID
from twinstream.core.read.stream_message import StreamMessage

__all__ = ["AlreadyThere", "Refusal", "Stored", "is_mine", "judge"]

# Being processed already, leader not ready, overloaded, cluster changing: the same write may
# succeed a moment later.
_PASSING: Final = frozenset({10004, 10007, 10008, 10009, 10163, 10167})


@frozen(kw_only=True)
class Stored:
    """The message is in the stream.

    `repeated` tells that an earlier attempt stored it, of this call or, with a `msg_id` of the
    program's own, of an earlier one.
    """

    stream: str
    seq: int
    repeated: bool = False


@frozen(kw_only=True)
class AlreadyThere:
    """The subject holds another message, and nothing was stored.

    `message` is what it holds. It is None if a message with this `msg_id` was stored at `seq`
    before and has been removed, and the duplicate window is not over.
    """

    stream: str
    seq: int
    message: StreamMessage | None


class Refusal(Enum):
    """What an error of an attempt to write means."""

    HELD = auto()
    """The condition does not hold, or the subject is full: look which message is there."""

    IN_PROCESS = auto()
    """The server has seen the id and cannot say more: look, then try again."""

    PASSING = auto()
    """Not stored; it may be soon: try again."""

    LOST = auto()
    """No answer: stored or not."""

    FINAL = auto()
    """Not stored, and trying again would not help."""


def judge(error: TwinstreamError) -> Refusal:
    """Return what an error of an attempt means."""
    if isinstance(error, WrongLastSequence | MessageExists):
        return Refusal.HELD
    if isinstance(error, RequestTimeout | ConnectionLost):
        return Refusal.LOST
    if isinstance(error, NoResponders):
        return Refusal.PASSING
    if isinstance(error, MessageIdInProcess):
        return Refusal.IN_PROCESS
    if isinstance(error, JetStreamError) and error.err_code in _PASSING:
        return Refusal.PASSING
    return Refusal.FINAL


def is_mine(message: StreamMessage, msg_id: str) -> bool:
    """Tell whether a stored message carries an identity."""
    return message.headers.get(MSG_ID) == msg_id
