"""Tests of a handler and of its worker, for pytest, with a server of their own.

    pytest examples/recipes/test_shop.py

They need pytest, and Twinstream with the extras `server` and `payloads`. Each test has its own
streams on one server, so the tests may run in any order.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from queue import Queue

import attrs
import pytest

import js_sync
from js_sync import ConsumerConfig, JetStream, Message, StreamConfig
from js_sync.workers import Reject, Worker
from twinstream.testing import NatsServer, sync_message


@attrs.frozen
class Order:
    """The payload of a message."""

    number: int
    count: int = 1


def pack(message: Message[Order]) -> str:
    """Label a parcel. This is the handler under test."""
    order = message.payload
    if order.count < 1:
        raise Reject(f"order {order.number} has no items")
    return f"{order.count} for {order.number}"


@pytest.fixture(scope="session")
def jet() -> Iterator[JetStream]:
    """Connect to a server that lasts for the whole run."""
    with NatsServer() as server, js_sync.connect(server.url) as nc:
        yield nc.jetstream(timeout=30)


@pytest.fixture
def stream(jet: JetStream) -> Iterator[js_sync.Stream]:
    """Create a stream for one test, with subjects that begin with its name."""
    name = f"test_{uuid.uuid4().hex}"
    yield jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    jet.delete_stream(name)


def test_a_handler_alone() -> None:
    """No server is needed: the messages come from `sync_message`."""
    assert pack(sync_message(Order(1, count=2))) == "2 for 1"
    with pytest.raises(Reject, match="order 3 has no items"):
        pack(sync_message(Order(3, count=0), num_delivered=5))


def test_a_worker_against_a_server(jet: JetStream, stream: js_sync.Stream) -> None:
    """An order that is rejected does not stop the next one."""
    parcels: Queue[str] = Queue()
    orders = jet.typed(Order)
    orders.publish(f"{stream.name}.new", Order(1, count=0))
    orders.publish(f"{stream.name}.new", Order(2, count=7))

    def handle(message: Message[Order]) -> None:
        parcels.put(pack(message))

    with Worker(jet, stream.name, ConsumerConfig(durable_name="packer"), handle) as worker:
        # A handler at a time takes the messages in order, so the first one has been rejected.
        assert parcels.get(timeout=30) == "7 for 2"
    assert (worker.handled, worker.rejected) == (1, 1)
