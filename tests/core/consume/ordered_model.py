"""A small model of a stream that removes old messages, and of the consumers of ordered reads.

The consumers behave like those of servers 2.11 to 2.15. With `last_per_subject`, on a stream that
keeps more than one message of each subject, a consumer delivers a list that the server makes when
it creates the consumer.
"""

from __future__ import annotations

from typing import Any

from twinstream.core.consume.metadata import Metadata
from twinstream.core.wire.status import Kind, Status
from twinstream.models import ConsumerConfig, ConsumerInfo, DeliverPolicy, StreamInfo, decode

__all__ = ["ModelConsumer", "ModelStream", "info_of"]


def info_of(config: ConsumerConfig, *, before: int = 0, pending: int = 0) -> ConsumerInfo:
    """Return the info of a consumer that begins after the sequence `before`."""
    members: dict[str, Any] = {
        "stream_name": "S",
        "name": config.name,
        "created": "2024-01-01T00:00:00Z",
        "config": {"deliver_policy": "all", "ack_policy": "none"},
        "delivered": {"consumer_seq": 0, "stream_seq": before},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        "num_ack_pending": 0,
        "num_redelivered": 0,
        "num_waiting": 0,
        "num_pending": pending,
    }
    return decode(members, ConsumerInfo)


class ModelStream:
    """Subjects of messages by sequence; at most `keeps` messages of a subject, 0 for no limit."""

    def __init__(self, keeps: int = 0, subjects: str = "", day: int = 1) -> None:
        self.keeps = keeps
        self.day = day
        self.last_seq = 0
        self.messages: dict[int, str] = {}
        for subject in subjects:
            self.store(subject)

    def store(self, subject: str) -> None:
        self.last_seq += 1
        self.messages[self.last_seq] = subject
        mine = [seq for seq, each in self.messages.items() if each == subject]
        for seq in mine[: -self.keeps] if self.keeps else ():
            del self.messages[seq]

    def purge(self, subject: str) -> None:
        self.messages = {seq: each for seq, each in self.messages.items() if each != subject}

    def delete(self, seq: int) -> None:
        self.messages.pop(seq, None)

    def last_per_subject(self, up_to: int) -> list[int]:
        """Return the last sequence of each subject on a replica that has messages up to `up_to`."""
        return sorted({each: seq for seq, each in self.messages.items() if seq <= up_to}.values())

    def info(self) -> StreamInfo:
        members: dict[str, Any] = {
            "config": {
                "name": "S",
                "retention": "limits",
                "max_consumers": -1,
                "max_msgs": -1,
                "max_bytes": -1,
                "max_age": 0,
                "storage": "file",
                "num_replicas": 1,
                "max_msgs_per_subject": self.keeps or -1,
            },
            "created": f"{2000 + self.day}-01-01T00:00:00Z",
            "state": {
                "messages": len(self.messages),
                "bytes": 0,
                "first_seq": min(self.messages, default=self.last_seq + 1),
                "last_seq": self.last_seq,
                "consumer_count": 0,
            },
        }
        return decode(members, StreamInfo)


class ModelConsumer:
    """A consumer on a replica that is `lag` messages behind when it is created."""

    def __init__(self, stream: ModelStream, config: ConsumerConfig, lag: int = 0) -> None:
        self._stream = stream
        self._name = config.name or ""
        self._known = max(0, stream.last_seq - lag)
        self._list: list[int] = []
        self._sent = 0
        first = min(stream.messages, default=self._known + 1)
        match config.deliver_policy:
            case DeliverPolicy.BY_START_SEQUENCE:
                self._next = max(config.opt_start_seq or 1, first)
            case DeliverPolicy.NEW:
                self._next = self._known + 1
            case DeliverPolicy.LAST_PER_SUBJECT if stream.keeps != 1:
                self._list = stream.last_per_subject(self._known)
                self._resume = self._known + 1
                self._next = self._list[0] if self._list else self._resume
            case _:
                self._next = first
        self.config = config
        self.info = info_of(config, before=self._next - 1)

    def step(self) -> Metadata | None:
        """Deliver the next message; None if there is none, or if a listed one was removed."""
        if self._list:
            seq = self._list.pop(0)
            self._next = seq + 1 if self._list else self._resume
            return self._deliver(seq) if seq in self._stream.messages else None
        self._known = self._stream.last_seq
        seq = min((each for each in self._stream.messages if each >= self._next), default=0)
        self._next = max(self._next, (seq or self._known) + 1)
        return self._deliver(seq) if seq else None

    def _deliver(self, seq: int) -> Metadata:
        self._sent += 1
        return Metadata("S", self._name, 1, seq, self._sent, 0, 0)

    def heartbeat(self) -> Status:
        return Status(
            Kind.HEARTBEAT,
            100,
            "Idle Heartbeat",
            b"token",
            last_consumer=self._sent,
            last_stream=self._next - 1,
        )
