"""`InFlight`: a published message that waits for its acknowledgement."""

from __future__ import annotations

from js_async.runtime.concurrency import Signal
from twinstream.core.publish.publish_engine import Action, PublishEngine
from twinstream.core.publish.request import as_request
from twinstream.core.publish.retry import RetryPolicy
from twinstream.errors import PublishFailure
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable, PublishRequest

__all__ = ["InFlight", "Outcome", "new_engine", "under_way"]

Outcome = PubAck | PublishFailure


class InFlight:
    """A message in flight and, once known, its outcome. Created by `under_way`."""

    # The slots are for safety, not for speed. On Python 3.11 the interpreter can crash if two
    # threads create the `__dict__` of an object at the same time (by reading `__dict__`, or by
    # setting a new attribute) and a garbage collection callback lets the other thread run in
    # between.
    __slots__ = (
        "action",
        "data",
        "engine",
        "given",
        "headers",
        "is_told",
        "outcome",
        "reply",
        "sent_at",
        "signal",
        "size",
        "started",
        "subject",
    )

    given: Publishable
    data: bytes
    subject: bytes
    reply: bytes
    headers: bytes
    size: int
    started: float
    sent_at: float
    outcome: Outcome | None
    signal: Signal | None
    engine: PublishEngine | None
    action: Action | None
    is_told: bool

    @property
    def request(self) -> PublishRequest:
        """The message as a `PublishRequest`; a `(subject, data)` pair is converted."""
        return as_request(self.given)

    @property
    def attempts(self) -> int:
        """Number of times the message was sent."""
        return 1 if self.engine is None else self.engine.attempts

    @property
    def repeatable(self) -> bool:
        """Whether sending the message again cannot store it twice."""
        return bool(self.headers) and self.request.is_repeatable


def under_way(
    given: Publishable, subject: bytes, reply: bytes, headers: bytes, now: float
) -> InFlight:
    """Return the entry of a message that is about to be sent at the time `now`.

    This function sets the attributes in 0.5 µs a message. A constructor would need 0.7 µs (Python
    3.11 and 3.13), because the interpreter calls a constructor through C code.
    """
    entry = InFlight()
    entry.given = given
    entry.data = data = given[1]
    entry.subject = subject
    entry.reply = reply
    entry.headers = headers
    entry.size = len(data) + len(subject) + (len(headers) if headers else 0)
    entry.started = entry.sent_at = now
    entry.outcome = entry.signal = entry.engine = entry.action = None
    entry.is_told = False
    return entry


def new_engine(entry: InFlight, policy: RetryPolicy, is_clustered: bool) -> PublishEngine:
    """Return the engine for a message that has failed for the first time.

    If `is_clustered` is true, several replicas may respond to the message.
    """
    request = entry.request
    expected = request.expected_sequence if is_clustered else None
    return PublishEngine(request.subject, policy, entry.repeatable, expected)
