"""The messages of fast ingest, and the outcome that a batch gives to each of them."""

from __future__ import annotations

from collections import deque
from typing import Final

from twinstream.core.publish.fast_ingest import FastBatch, Fate, Ingested
from twinstream.errors import (
    JetStreamError,
    NoResponders,
    OutcomeUnknown,
    PermissionDenied,
    PublishFailure,
    TwinstreamError,
)
from twinstream.records.publish_request import PublishRequest

__all__ = ["FastMessage", "Unsettled"]


class FastMessage:
    """A message and, once known, its outcome."""

    __slots__ = (
        "headers",
        "may_be_stored",
        "number",
        "outcome",
        "request",
        "size",
        "started",
        "subject",
    )

    def __init__(self, request: PublishRequest, subject: bytes, headers: bytes) -> None:
        self.request = request
        self.subject = subject
        self.headers = headers
        # Fast ingest has nothing to do at intervals; see `Outcomes`.
        self.started = 0.0
        self.size = len(request.data) + len(headers) + len(subject)
        # The number of the message in its batch.
        self.number = 0
        self.outcome: Ingested | PublishFailure | None = None
        # Whether an earlier batch with an unknown outcome contained the message.
        self.may_be_stored = False

    @property
    def is_repeatable(self) -> bool:
        """Whether the message can be sent again after an unknown outcome.

        The message needs an id, so that it is not stored twice. It must also have no expectation
        about the last message. Otherwise, if the first attempt stored the message, the server could
        refuse the retry.
        """
        request = self.request
        return request.msg_id is not None and request == request._replace(
            expected_last_seq=None,
            expected_last_msg_id=None,
            expected_last_subject_seq=None,
            expected_last_subject_seq_subject=None,
        )

    def outcome_in(self, batch: FastBatch) -> Ingested | PublishFailure | None:
        """Return the outcome in a batch, or None if the message must be sent again."""
        match batch.fate(self.number):
            case Fate.STORED:
                return Ingested(batch.stream, batch.id, self.number)
            case Fate.PASSED:
                return Ingested(batch.stream, batch.id, self.number, is_certain=False)
            case Fate.REFUSED:
                return self.failure(batch.refused[self.number])
            case Fate.LOST:
                subject = self.request.subject
                return self.failure(NoResponders(f"{subject}: the server did not get the message"))
            case Fate.UNKNOWN if not self.is_repeatable:
                return self._unknown(batch.trouble)
            case Fate.UNKNOWN:
                self.may_be_stored = True
                return None
            case Fate.AGAIN:
                return None

    def failure(self, error: TwinstreamError) -> PublishFailure:
        """Return the outcome if the message failed with `error`."""
        if self.may_be_stored and isinstance(
            error, JetStreamError | NoResponders | PermissionDenied
        ):
            return self._unknown(error)
        return PublishFailure(self.request, error)

    def _unknown(self, error: TwinstreamError | None) -> PublishFailure:
        unknown = OutcomeUnknown(
            f"{self.request.subject}: the batch ended before it was acknowledged, so it may be"
            f" stored: {error}"
        )
        unknown.__cause__ = error
        return PublishFailure(self.request, unknown)


class Unsettled:
    """The messages without an outcome, in the order in which they are stored."""

    def __init__(self) -> None:
        self.in_flight: Final[deque[FastMessage]] = deque()
        """The messages sent in the current batch."""
        self.backlog: Final[deque[FastMessage]] = deque()
        """The messages to be sent after them, for the first time or again."""
        self.size = 0
        """The total size of these messages in bytes."""
        self.has_progress = False
        """Whether a message got a known outcome since the owner reset this."""

    def add(self, message: FastMessage) -> None:
        """Add a message at the end of the backlog."""
        self.size += message.size
        self.backlog.append(message)

    def conclude(self, message: FastMessage, outcome: Ingested | PublishFailure) -> None:
        """Set the outcome of a message. The caller removes it."""
        message.outcome = outcome
        self.size -= message.size
        unknown = isinstance(outcome, PublishFailure) and isinstance(outcome.error, OutcomeUnknown)
        self.has_progress = self.has_progress or not unknown

    def settle(self, batch: FastBatch) -> None:
        """Set the outcomes of the messages that the server has processed, in sending order.

        Stop at the first message that must be sent again: the batch has failed then.
        """
        flight = self.in_flight
        while flight and flight[0].number <= batch.passed:
            outcome = flight[0].outcome_in(batch)
            if outcome is None:
                return
            self.conclude(flight.popleft(), outcome)

    def end(self, batch: FastBatch) -> None:
        """Empty `in_flight` at the end of a batch.

        Set the outcomes of the messages, and put those that must be sent again at the front of the
        backlog.
        """
        again: list[FastMessage] = []
        for message in self.in_flight:
            outcome = message.outcome_in(batch)
            if outcome is None:
                again.append(message)
            else:
                self.conclude(message, outcome)
        self.in_flight.clear()
        self.backlog.extendleft(reversed(again))
