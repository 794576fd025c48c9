"""Pins of priority groups."""

from __future__ import annotations

from tests.core.frames import block, delivery
from twinstream.core.consume.pin import Pins, pin_of, pin_size
from twinstream.core.consume.pull_request import Priority
from twinstream.core.wire.protocol import Frame


def framed(head: bytes, data: bytes = b"x", reply: bytes = b"r") -> Frame:
    return (b"s", reply, len(head), head + data + b"\r\n")


def test_the_pin_is_read_from_the_headers_alone() -> None:
    assert pin_of(framed(block("", Nats_Pin_Id="abc"))) == "abc"
    assert pin_of(framed(block("", A="Nats-Pin-Id: no"))) is None
    assert pin_of(framed(b"", b"\r\nNats-Pin-Id: no")) is None
    assert pin_of(delivery(1)) is None


def test_the_size_of_the_pin_is_what_the_server_added_for_it() -> None:
    pinned, other = block("", Nats_Pin_Id="x" * 22), block("", A="b")
    both = block("", A="b", Nats_Pin_Id="x" * 22)
    assert pin_size(framed(pinned)) == len(pinned)
    assert pin_size(framed(both)) == len(both) - len(other)
    assert pin_size(framed(other)) == pin_size(delivery(1)) == 0


def test_a_pin_that_a_publisher_copied_is_not_the_servers() -> None:
    copied = b"NATS/1.0\r\nNats-Pin-Id: old\r\nNats-Pin-Id: new\r\n\r\n"
    assert pin_of(framed(copied)) == "new"
    assert pin_size(framed(copied)) == len(b"Nats-Pin-Id: new\r\n")


def test_only_a_group_alone_may_be_pinned() -> None:
    assert Priority(group="g").may_pin
    for other in ({"min_pending": 0}, {"min_ack_pending": 0}, {"rank": 0}):
        assert not Priority(group="g", **other).may_pin


def test_pins_are_kept_by_group_until_they_are_dropped() -> None:
    pins = Pins()
    assert pins.get("g") is None
    assert pins.note("g", "1")
    assert not pins.note("g", "1")
    assert pins.note("g", "2")
    assert (pins.get("g"), pins.get("h")) == ("2", None)
    assert pins.drop("g")
    assert not pins.drop("g")
