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

    What to do: Publish again with the same message id, or look whether the message is stored.
    """


class SubjectTaken(TwinstreamError):
    """The subject already has another message, but is intended for a single message.

    What to do: Use another subject, or `update` if the message may be replaced.
    """


class UnsuitableSettings(TwinstreamError):
    """The settings of the stream do not give the guarantee that a call needs.

    `promise` is the guarantee. `gaps` lists each setting that breaks it, and the required value.

    What to do: Change the settings that `gaps` lists, or use another stream.
    """

    def __init__(self, stream: str, promise: str, gaps: tuple[GuaranteeGap, ...]) -> None:
        self.stream = stream
        """Name of the stream."""
        self.promise = promise
        self.gaps = gaps
        super().__init__(f"{stream} does not guarantee {promise}: {'; '.join(map(str, gaps))}")


class NoStream(NoResponders):
    """No stream of the account and domain captures the subject, so the message is not stored.

    What to do: Create a stream with the subject, or correct the subject.
    """


class NoLeader(NoResponders):
    """The stream that captures the subject has no leader, so the message is not stored.

    Publish the message again later.

    What to do: Publish the message again later; the servers elect a leader within seconds.
    """


class AtomicBatchFailed(TwinstreamError):
    """An atomic batch is closed and accepts no messages, or its commit was not confirmed.

    `outcome` states whether nothing is stored or the outcome is unknown; `reason` contains the
    reason.

    What to do: Look at `outcome`. If nothing is stored, send the same messages as a new batch.
    """

    def __init__(self, text: str, outcome: AtomicOutcome, reason: str) -> None:
        self.text = text
        """The text without the outcome."""
        self.outcome = outcome
        self.reason = reason
        super().__init__(text)


class AtomicBatchUnknown(AtomicBatchFailed, OutcomeUnknown):
    """The commit of an atomic batch was sent, but it is unknown whether the server applied it.

    What to do: Look whether the last message of the batch is stored, and otherwise send the batch
    again.
    """
