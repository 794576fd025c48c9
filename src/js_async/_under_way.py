"""A message on its way into a stream."""

from __future__ import annotations

from js_async._io import Signal
from js_core.errors import TwinstreamError
from js_core.publish import Publishable, PublishFailure, PublishRequest, as_request
from js_core.publish_retry import Step
from js_models import PubAck

__all__ = ["Outcome", "UnderWay"]

Outcome = PubAck | PublishFailure


class UnderWay:
    """A message under way, and in the end what became of it."""

    # Slots not for speed: on Python 3.11 two threads that give an object its first `__dict__` (by
    # asking for it, or by an attribute that none had before) can break the interpreter, where a
    # callback of the garbage collector lets the other one run in between.
    __slots__ = (
        "attempts",
        "data",
        "doubt",
        "given",
        "headers",
        "is_told",
        "lacks_leader",
        "outcome",
        "reply",
        "seen",
        "sent_at",
        "signal",
        "size",
        "started",
        "stray",
        "subject",
        "trouble",
    )

    def __init__(
        self, given: Publishable, subject: bytes, reply: bytes, headers: bytes, now: float
    ) -> None:
        self.given = given
        self.data = data = given[1]
        self.subject = subject
        self.reply = reply
        self.headers = headers
        self.size = len(data) + len(headers) + len(subject)
        self.started = now
        self.sent_at = now
        self.outcome: Outcome | None = None
        self.signal: Signal | None = None
        self.trouble: tuple[TwinstreamError, Step] | None = None
        self.stray: TwinstreamError | None = None
        self.attempts = 1
        self.lacks_leader = False
        self.is_told = False
        self.doubt = False
        self.seen = False

    @property
    def request(self) -> PublishRequest:
        """The message, as a request also where the program gave a pair."""
        return as_request(self.given)

    @property
    def repeatable(self) -> bool:
        """Tell whether sending it again cannot store it twice."""
        return bool(self.headers) and self.request.is_repeatable
