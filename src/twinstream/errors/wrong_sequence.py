"""Refusals of an expected last sequence, and which of them leave the outcome unknown.

When a replica loses the leadership while it is stopped or cut off, it does not know that for a
moment after its return. In that moment two replicas receive each message and both respond. The old
leader lacks the newest messages, so it refuses an expectation that the new leader accepts. The
refusal often arrives before the acknowledgement (server 2.15.1: 4 of 5,129 refusals in six rounds
in which a leader was cut off).

Such a refusal reports a last sequence below the expected one (10071), or another write in flight
(10164). A refusal with a higher sequence is definite, unless messages of the subject were removed:
the old leader may still have them. Callers that expect an empty subject (0) therefore read the
subject from a leader that most replicas follow.

Other refusals need no such care:

* `WrongLastMessageId` (10070): the server compares the id when it applies the message, and a former
  leader applies no messages of its own (servers 2.11 to 2.15).
* `StoreRefused` and `MessageExists` (10077): a former leader that lacks removals may refuse a
  message for a limit that the stream no longer reaches. It would have to be cut off while the
  stream was full, and a wait for a second response would delay every refusal of a full stream.
* `MessageIdInProcess` (10158): such messages are sent again anyway.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors.base import TwinstreamError
from twinstream.errors.server_errors import WrongLastSequence

__all__ = ["SECOND_RESPONSE", "is_behind", "is_doubtful", "last_sequence"]

SECOND_RESPONSE: Final = 0.1
"""Seconds within which the leader responds after a former leader has responded."""


def last_sequence(error: WrongLastSequence) -> int | None:
    """Return the last sequence that a refusal reports; None if another write is in flight."""
    number = error.description.rpartition(":")[2].strip()
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 20 else None


def is_behind(error: TwinstreamError, expected: int) -> bool:
    """Return whether a refusal of the sequence `expected` reports a lower last sequence.

    If a client has read `expected` from the stream, the replica that refused lacks messages.
    Otherwise messages were removed from the stream, or `expected` was never the last sequence.
    """
    if not isinstance(error, WrongLastSequence):
        return False
    last = last_sequence(error)
    return last is not None and last < expected


def is_doubtful(error: TwinstreamError, expected: int) -> bool:
    """Return whether a replica refused `expected` although another one may have stored the message.

    This is the case if the replica lacks messages, or if it has another write in flight. A former
    leader never completes its writes in flight.
    """
    if not isinstance(error, WrongLastSequence):
        return False
    return last_sequence(error) is None or is_behind(error, expected)
