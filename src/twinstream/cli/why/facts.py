"""What is known about a message: replies of the server, other messages, and stored advisories."""

from __future__ import annotations

from typing import Any, Final

from attrs import field, frozen

from twinstream.cli.why.advisories import Advisories
from twinstream.core.groups.member_consumer import stored_filters
from twinstream.core.read.stream_message import StreamMessage
from twinstream.models import ConsumerConfig, ConsumerInfo, SequenceInfo, StreamInfo, Timestamp

__all__ = ["Facts", "LaterMessages", "Window"]

_NOTHING: Final = SequenceInfo(consumer_seq=0, stream_seq=0)


@frozen(kw_only=True)
class Window:
    """The stored messages that match the consumer, above its ack floor up to its last delivery."""

    first_seq: int
    """The lowest of them."""
    count: int
    """Their number; one more than the number of pending messages if there are more."""


@frozen(kw_only=True)
class LaterMessages:
    """The first messages above the sequence; those of the message's subject if it is known."""

    messages: tuple[StreamMessage[Any], ...] = ()
    is_whole: bool = True
    """Whether there are no further messages."""


@frozen(kw_only=True)
class Facts:
    """The facts from which `decide` derives the answer."""

    server: tuple[int, ...]
    """The version of the server."""
    seq: int
    consumer: ConsumerInfo
    stream: StreamInfo
    message: StreamMessage[Any] | None = None
    """The message, None if the stream does not have it."""
    subject: str | None = None
    """The subject of the message, or the one that the user gave for a removed message."""
    next: StreamMessage[Any] | None = None
    """For a removed message: the next stored message."""
    has_older_of_subject: bool = False
    """For a removed message: whether an older one of its subject is stored."""
    later: LaterMessages = field(factory=LaterMessages)
    """For a removed message."""
    successor: StreamMessage[Any] | None = None
    """For the deliver policies `last` and `last_per_subject`: the next message that competes for
    being the last one."""
    window: Window | None = None
    """None if the sequence is outside of it, or if it was not read."""
    advisories: Advisories | None = None
    """None if the user named no stream of advisories."""

    @property
    def config(self) -> ConsumerConfig:
        """The configuration of the consumer."""
        return self.consumer.config or ConsumerConfig()

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters of the consumer, empty for all subjects."""
        return stored_filters(self.consumer)

    @property
    def delivered(self) -> SequenceInfo:
        """The last delivery of the consumer."""
        return self.consumer.delivered or _NOTHING

    @property
    def ack_floor(self) -> SequenceInfo:
        """The sequences up to which the consumer has finished."""
        return self.consumer.ack_floor or _NOTHING

    @property
    def now(self) -> Timestamp | None:
        """The time of the server when it described the stream."""
        return self.stream.ts or self.consumer.ts
