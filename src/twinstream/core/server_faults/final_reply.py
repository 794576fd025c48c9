"""Is this reply final: may another replica reply otherwise.

When a replica loses the leadership while it is stopped or cut off, it does not know that for a
moment after its return. In that moment this former leader and the new one receive each message, and
both respond.

**Refusals of an expected last sequence.** A former leader lacks the newest messages, so it refuses
an expectation that the leader accepts, and its refusal often arrives first. Such a refusal reports
a last sequence below the expected one (10071), or another write in flight (10164): a former leader
never completes its writes in flight. A refusal with a higher sequence is final, unless messages of
the subject were removed: a former leader may still have them. Callers that expect an empty subject
(0) therefore read the subject from a confirmed leader. Other refusals need no such care:

* `WrongLastMessageId` (10070): the server compares the id when it applies the message, and a former
  leader applies no messages of its own (servers 2.11 to 2.15).
* `StoreFailed` and `MessageExists` (10077): a former leader that lacks removals may refuse a
  message for a limit that the stream no longer reaches. It would have to be cut off while the
  stream was full, and a wait for a second response would delay every refusal of a full stream.
* `MessageIdInProcess` (10158): such messages are sent again anyway.

**Reads.** A former leader has no messages that the leader lacks, except those that were removed. So
a message that it returns is real, but that it has no message proves nothing.

**Stream infos.** Three kinds of replicas reply to STREAM.INFO although they do not lead:

1. A replica that knows of no leader reports its own state.
2. A replica that was stalled for longer than an election timeout becomes a candidate. It reports
   its own state, even if there is a leader.
3. A leader that was stalled considers itself the leader until it learns of the next leader.

The response shows each of these cases. In the first two, it names no leader, or it lists the leader
as one of the *other* replicas. In the third, it reports that the sender has not heard from the
other replicas for a long time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack, read_pub_ack
from twinstream.errors import JetStreamError, TwinstreamError, WrongLastSequence
from twinstream.models.error_codes import (
    BATCH_INCOMPLETE,
    ROLLUP_NOT_PERMITTED,
    WRONG_LAST_SEQUENCE,
    WRONG_LAST_SEQUENCE_CONSTANT,
)

if TYPE_CHECKING:
    from twinstream.models import ClusterInfo

__all__ = [
    "HEARD",
    "SECOND_RESPONSE",
    "STEPPING_DOWN",
    "FinalReply",
    "doubt_of_leader",
    "is_behind",
    "is_doubtful",
    "is_doubtful_commit",
    "is_in_flight",
    "refuses_unknown_id",
    "refusing",
]

SECOND_RESPONSE: Final = 0.1
"""Seconds within which the leader responds after a former leader has responded."""

STEPPING_DOWN: Final = 0.5
"""Seconds within which a replica learns that it has lost the leadership."""

HEARD: Final = timedelta(seconds=3)
"""The time within which the leader must have heard from a replica.

The leader sends a heartbeat every second. A replica replies to each heartbeat, and votes for no
other server in the next 4 s. So if the leader has heard from a majority of the replicas within this
time, no other leader has been elected.
"""

_WRONG_SEQUENCE: Final = b"%d" % WRONG_LAST_SEQUENCE
_IN_FLIGHT: Final = b"%d" % WRONG_LAST_SEQUENCE_CONSTANT
_UNKNOWN_ID: Final = b"%d" % ROLLUP_NOT_PERMITTED


# ---- refusals


def is_in_flight(error: BaseException | None) -> bool:
    """Return whether a message was refused because of another write in flight, which may fail."""
    return isinstance(error, WrongLastSequence) and error.actual is None


def is_behind(error: TwinstreamError, expected: int) -> bool:
    """Return whether a refusal of the sequence `expected` reports a lower last sequence.

    If a client has read `expected` from the stream, the replica that refused lacks messages.
    Otherwise messages were removed from the stream, or `expected` was never the last sequence.
    """
    if not isinstance(error, WrongLastSequence):
        return False
    return error.actual is not None and error.actual < expected


def is_doubtful(error: TwinstreamError, expected: int) -> bool:
    """Return whether a replica refused `expected` although another one may have stored the message.

    This is the case if the replica lacks messages, or if it has another write in flight.
    """
    return is_in_flight(error) or is_behind(error, expected)


def is_doubtful_commit(error: TwinstreamError, expected: int) -> bool:
    """Return whether a replica refused a batch although another one may have stored it.

    A former leader that was cut off lacks the earlier messages of the batch.
    """
    lacks = isinstance(error, JetStreamError) and error.err_code == BATCH_INCOMPLETE
    return lacks or is_doubtful(error, expected)


class FinalReply:
    """A filter of the replies to a published message, which accepts final replies only.

    `refuses` returns the error in a refusal that may not be final, and None for other replies.
    Without it, the filter refuses only replies that are no acknowledgement.
    """

    __slots__ = ("_refuses", "refusal")

    def __init__(self, refuses: Callable[[Frame], TwinstreamError | None] | None) -> None:
        self._refuses: Final = refuses
        self.refusal: TwinstreamError | None = None
        """The error in the last refusal that may not be final, None if there was none."""

    def __call__(self, frame: Frame) -> bool:
        """Return whether a reply is final."""
        if not is_pub_ack(frame):
            return False
        refusal = None if self._refuses is None else self._refuses(frame)
        self.refusal = refusal or self.refusal
        return refusal is None


def refusing(expected: int) -> Callable[[Frame], TwinstreamError | None]:
    """Return the `refuses` of a `FinalReply` to a message that expects the sequence `expected`."""

    def refuses(frame: Frame) -> TwinstreamError | None:
        if _WRONG_SEQUENCE not in frame[3] and _IN_FLIGHT not in frame[3]:
            return None
        error = _error_in(frame)
        return error if error is not None and is_doubtful(error, expected) else None

    return refuses


def refuses_unknown_id(frame: Frame) -> TwinstreamError | None:
    """Return the error in a reply to a probe that shows an unknown message id, else None.

    This is the `refuses` of the `FinalReply` to a probe: a former leader does not know the ids of
    the messages that it lacks.
    """
    return _error_in(frame) if _UNKNOWN_ID in frame[3] and b'"error"' in frame[3] else None


def _error_in(frame: Frame) -> TwinstreamError | None:
    try:
        # An acknowledgement may contain the number of an error, too, in its sequence or stream.
        read_pub_ack(frame, "")
    except TwinstreamError as error:
        return error
    return None


# ---- stream infos


def doubt_of_leader(cluster: ClusterInfo | None) -> str:
    """Return why a response may not be the leader's; an empty string if it is the leader's."""
    if cluster is None:
        return ""  # A server without a cluster is always the leader.
    others = cluster.replicas or []
    if not cluster.leader:
        # A stream with one replica has no other replica that could have more messages.
        return "the stream has no leader" if others else ""
    if cluster.leader in {each.name for each in others}:
        return f"a replica answered in place of the leader, {cluster.leader}"
    voters = [each for each in others if not each.observer]
    # Zero means that the replica was never heard from.
    active_replicas = sum(1 for each in voters if each.active and each.active < HEARD)
    group = len(voters) + 1
    has_majority = active_replicas + 1 > group // 2  # with the leader itself
    if has_majority:
        return ""
    return (
        f"{cluster.leader} claims to be the leader, but has heard from {active_replicas} of the"
        f" {len(voters)} other replicas within {HEARD.total_seconds():g} s"
    )
