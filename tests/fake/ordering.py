"""A scripted server for ordered reads: a stream, its consumers, and their deliveries."""

from __future__ import annotations

from typing import Any

from tests.fake.answers import CONSUMER
from twinstream.testing import FakePeer
from twinstream.testing.fake_wire import Operation

__all__ = ["beat", "create", "deliver", "leave", "stream_info"]


def stream_info(last_seq: int, keeps: int = -1, stream: str = "S") -> dict[str, Any]:
    """Return the STREAM.INFO of a stream that keeps `keeps` messages of each subject."""
    times = {"first_ts": "0001-01-01T00:00:00Z", "last_ts": "0001-01-01T00:00:00Z"}
    counts = dict.fromkeys(("messages", "bytes", "first_seq", "consumer_count"), 0)
    return {
        "config": {"name": stream, "subjects": ["s.>"], "max_msgs_per_subject": keeps},
        "created": "2026-01-01T00:00:00Z",
        "state": {**counts, **times, "last_seq": last_seq},
    }


def create(
    peer: FakePeer,
    last_seq: int = 0,
    keeps: int = -1,
    asked: Operation | None = None,
    stream: str = "S",
) -> dict[str, Any]:
    """Answer requests until the next consumer is created; return its configuration.

    `asked` is the request for the stream's info, if the script has received it already.
    """
    asked = asked or peer.expect(rf"STREAM\.INFO\.{stream}")
    peer.answer(asked, stream_info(last_seq, keeps, stream))
    request = peer.expect(rf"CONSUMER\.CREATE\.{stream}")
    config: dict[str, Any] = request.json["config"]
    peer.answer(request, {**CONSUMER, "name": config["name"], "config": config})
    return config


def deliver(
    peer: FakePeer, pull: Operation, consumer_seq: int, seq: int, subject: str = "s.a"
) -> None:
    """Answer a pull request with a message of the stream."""
    stream, consumer = pull.subject.split(".")[-2:]
    reply = f"$JS.ACK.{stream}.{consumer}.1.{seq}.{consumer_seq}.1700000000000000000.0"
    peer.message(pull.reply, b"%d" % seq, subject=subject, reply=reply)


def beat(peer: FakePeer, pull: Operation, sent: int, looked: int) -> None:
    """Send an idle heartbeat with the number of sent messages and the last scanned sequence."""
    peer.status(pull, 100, "Idle Heartbeat", Nats_Last_Consumer=sent, Nats_Last_Stream=looked)


def leave(peer: FakePeer, name: str) -> None:
    """Answer the deletion of the consumer, and wait until the client leaves."""
    peer.answer(peer.expect(rf"CONSUMER\.DELETE\.\w+\.{name} \S+ 0"), {"success": True})
    peer.until_left()
