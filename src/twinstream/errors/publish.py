"""Errors of publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.errors.base import NoResponders, TwinstreamError

if TYPE_CHECKING:
    from twinstream.records.atomic_outcome import AtomicOutcome
    from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "AtomicBatchFailed",
    "AtomicBatchUnknown",
    "NoLeader",
    "NoStream",
    "OutcomeUnknown",
    "SubjectTaken",
    "UnsuitableSettings",
]


class OutcomeUnknown(TwinstreamError):
    """It is unknown whether the server stored the message.

    `__cause__` is the last error. If the caller publishes the message again, it may be stored
    twice, unless the write is idempotent (see `SubjectWriter`).
    """


class SubjectTaken(TwinstreamError):
    """The subject already has another message, but is intended for a single message."""


class UnsuitableSettings(TwinstreamError):
    """The settings of the stream do not give the guarantee that a call needs.

    `promise` is the guarantee. `gaps` lists each setting that breaks it, and the required value.
    """

    def __init__(self, stream: str, promise: str, gaps: tuple[GuaranteeGap, ...]) -> None:
        self.stream = stream
        self.promise = promise
        self.gaps = gaps
        super().__init__(f"{stream} does not guarantee {promise}: {'; '.join(map(str, gaps))}")


class NoStream(NoResponders):
    """No stream of the account and domain captures the subject, so the message is not stored."""


class NoLeader(NoResponders):
    """The stream that captures the subject has no leader, so the message is not stored.

    Publish the message again later.
    """


class AtomicBatchFailed(TwinstreamError):
    """An atomic batch is closed and accepts no messages, or its commit was not confirmed.

    `outcome` states whether nothing is stored or the outcome is unknown; `reason` contains the
    reason.
    """

    def __init__(self, text: str, outcome: AtomicOutcome, reason: str) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        super().__init__(text)


class AtomicBatchUnknown(AtomicBatchFailed, OutcomeUnknown):
    """The commit of an atomic batch was sent, but it is unknown whether the server applied it."""
