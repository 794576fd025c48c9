"""`InFlight`: a published message that waits for its acknowledgement."""

from __future__ import annotations

from js_async.runtime.concurrency import Signal
from twinstream.core.publish.publish_engine import Action, PublishEngine
from twinstream.core.publish.request import as_request
from twinstream.core.publish.retry_pauses import RetryPolicy
from twinstream.errors import PublishFailure
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable, PublishRequest

__all__ = ["InFlight", "Outcome", "new_engine"]

Outcome = PubAck | PublishFailure


class InFlight:
    """A message that is about to be sent at the time `now` and, once known, its outcome."""

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
        "is_recorded",
        "outcome",
        "reply",
        "sent_at",
        "signal",
        "size",
        "started",
        "subject",
    )

    def __init__(
        self, given: Publishable, subject: bytes, reply: bytes, headers: bytes, now: float
    ) -> None:
        self.given = given
        self.data = data = given[1]
        self.subject = subject
        self.reply = reply
        self.headers = headers
        self.size = len(data) + len(subject) + len(headers)
        self.started = self.sent_at = now
        self.outcome: Outcome | None = None
        self.signal: Signal | None = None
        # The engine, which is created at the first failure, and its action that is not done yet.
        self.engine: PublishEngine | None = None
        self.action: Action | None = None
        # Whether the owner of the pipeline has recorded the outcome.
        self.is_recorded = False

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


def new_engine(entry: InFlight, policy: RetryPolicy, is_clustered: bool) -> PublishEngine:
    """Return the engine for a message that has failed for the first time.

    If `is_clustered` is true, several replicas may respond to the message.
    """
    request = entry.request
    expected = request.expected_sequence if is_clustered else None
    return PublishEngine(request.subject, policy, entry.repeatable, expected)
