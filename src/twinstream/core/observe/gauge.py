"""`Gauge`: a value of a connection at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from attrs import frozen

__all__ = ["Gauge", "GaugeName", "Measured"]

GaugeName = Literal[
    "buffered_messages", "in_flight", "pending_acks", "seconds_since_message", "open_requests"
]


@frozen
class Gauge:
    """A value of a connection at one moment.

    - `buffered_messages`: messages that have arrived and were not taken.
    - `in_flight`: published messages that wait for their acknowledgement.
    - `pending_acks`: messages that were taken for a handler and are not settled.
    - `seconds_since_message`: seconds since the program last received a message of the consumer.
    - `open_requests`: requests that wait for their response.
    """

    name: GaugeName
    """Name of the value, one of those above."""
    value: float
    """The value."""
    stream_name: str | None = None
    """Name of the stream, or None."""
    consumer_name: str | None = None
    """Name of the consumer, or None."""


class Measured(Protocol):
    """An object that has gauges."""

    def gauges(self) -> Iterable[Gauge]:
        """Return the current values."""
        ...
