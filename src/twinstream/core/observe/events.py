"""Events that only observers see."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from twinstream.core.log.report import DEBUG, Report

__all__ = ["Received", "Redelivered"]


@frozen
class Received(Report):
    """A message was returned to the program by an iteration over messages.

    `message` is the message, of a consumer of the stream and with the subject that it names.
    """

    subject: str
    """Subject of the message."""
    stream_name: str
    """Name of the stream."""
    consumer_name: str
    """Name of the consumer."""
    message: Any

    log_area = "consumer"
    log_level = DEBUG

    def __str__(self) -> str:
        return f"received a message to {self.subject}"


@frozen
class Redelivered(Report):
    """A message was received that was delivered before. `attempt` is the number of deliveries."""

    subject: str
    """Subject of the message."""
    stream_name: str
    """Name of the stream."""
    consumer_name: str
    """Name of the consumer."""
    seq: int
    """Sequence of the message in its stream."""
    attempt: int

    log_area = "consumer"
    log_level = DEBUG

    def __str__(self) -> str:
        return f"message {self.seq} ({self.subject}) is delivery {self.attempt}"
