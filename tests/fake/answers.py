"""Scripts of a server, and responses to requests, whose content does not matter."""

from __future__ import annotations

from typing import Any

from twinstream.testing import FakePeer

__all__ = ["CONSUMER", "describe", "silent", "until_cut"]

_NOWHERE = {"consumer_seq": 0, "stream_seq": 0}
_COUNTS = ("num_ack_pending", "num_redelivered", "num_waiting", "num_pending")
CONSUMER: dict[str, Any] = {
    "stream_name": "S",
    "name": "c",
    "config": {"durable_name": "c"},
    "created": "2026-01-01T00:00:00Z",
    "delivered": _NOWHERE,
    "ack_floor": _NOWHERE,
    **dict.fromkeys(_COUNTS, 0),
}
"""The consumer c of the stream S, with nothing to do."""


def describe(peer: FakePeer, **settings: Any) -> None:
    """Answer the info request for the stream S, which has these settings."""
    config = {"name": "S", "subjects": ["a"], **settings}
    times = {"first_ts": "0001-01-01T00:00:00Z", "last_ts": "0001-01-01T00:00:00Z"}
    counts = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
    answer = {"config": config, "created": "2026-01-01T00:00:00Z", "state": counts | times}
    peer.answer(peer.expect("STREAM.INFO.S"), answer)


def silent(peer: FakePeer) -> None:
    """Only accept the client, until it leaves."""
    peer.handshake()
    peer.until_left(timeout=30)


def until_cut(peer: FakePeer) -> None:
    """Only accept the client, and break the connection when the test says so."""
    peer.handshake()
    peer.wait_for("cut")
    peer.reset()
