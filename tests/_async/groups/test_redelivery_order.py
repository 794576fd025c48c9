"""The order of a group member's messages after lost deliveries, with a scripted consumer.

A message is written as `(stream sequence, consumer sequence)`.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from types import SimpleNamespace
from weakref import WeakSet

import pytest

from js_async.consume.delivery import Delivery
from js_async.consume.message import Message
from js_async.groups.message import group_message
from js_async.groups.redelivery_order import RedeliveryOrder
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.errors import RequestTimeout
from twinstream.models import ConsumerConfig

CONFIG = ConsumerConfig(ack_wait=timedelta(seconds=20), max_ack_pending=100)


def message(stream_seq, consumer_seq):
    """Return a received message whose acknowledgements go nowhere."""
    reply = b"$JS.ACK.S-g.m.1.%d.%d.0.0" % (stream_seq, consumer_seq)
    return Message((b"0.s.k", reply, 0, b"\r\n"), Delivery(Silent(), 0.0, None, 1.0))


class Silent:
    """A transport that sends nothing, and shows whether its message still exists."""

    observers = None

    alive = WeakSet()

    def __init__(self):
        self.alive.add(self)

    def write_command(self, _):
        return True


class Arrivals:
    """The messages of a consumer as they arrive: a replacement for a `MessageBuffer`."""

    def __init__(self, *arrived):
        self._arrived = deque(arrived)
        self.progress = SimpleNamespace(hold=self._ignore, release=self._ignore)

    def _ignore(self, message):
        """Report no progress."""

    def add(self, *arrived):
        self._arrived.extend(arrived)

    async def take(self, deadline):
        if self._arrived:
            stream_seq, consumer_seq = self._arrived.popleft()
            return message(stream_seq, consumer_seq)
        await sleep(0)
        raise RequestTimeout("no message")


class Script:
    """The consumer infos in order: delivered and unacknowledged messages, and the next arrivals.

    The last item is repeated.
    """

    def __init__(self, arrivals, *infos):
        self._arrivals = arrivals
        self._infos = deque(infos)

    async def info(self):
        delivered, pending, *arrived = self._infos[0]
        if len(self._infos) > 1:
            self._infos.popleft()
        self._arrivals.add(*arrived)
        state = SimpleNamespace(consumer_seq=delivered)
        return SimpleNamespace(delivered=state, num_ack_pending=pending)


async def order(takeover, count):
    """Return the stream sequences of the next messages."""
    taken = [await takeover.take(Deadline.after(20)) for _ in range(count)]
    return [each.metadata.stream_seq for each in taken]


def takeover_of(arrivals, *infos, config=CONFIG):
    reports = []
    return RedeliveryOrder(arrivals, Script(arrivals, *infos), config, reports.append), reports


async def test_messages_without_a_gap_need_no_further_info():
    arrivals = Arrivals((1, 1), (2, 2), (3, 3))
    takeover, _ = takeover_of(arrivals, (1, 1))
    assert await order(takeover, 3) == [1, 2, 3]


async def test_a_lost_delivery_comes_before_later_messages():
    arrivals = Arrivals((1, 1))
    # 2 is delivered as 2 and lost, 3 arrives; 2 is delivered again as 4.
    takeover, _ = takeover_of(arrivals, (1, 1), (3, 2), (3, 2), (4, 2, (2, 4)))
    assert await order(takeover, 1) == [1]
    arrivals.add((3, 3))
    assert await order(takeover, 2) == [2, 3]


async def test_a_copy_of_a_message_in_progress_hides_no_lost_one():
    arrivals = Arrivals((1, 1))
    # While 2 is missing, a copy of 1 arrives, and then 1 is acknowledged.
    takeover, _ = takeover_of(arrivals, (1, 1), (3, 3, (1, 4)), (4, 2), (4, 2), (5, 2, (2, 5)))
    assert await order(takeover, 1) == [1]
    arrivals.add((3, 3))
    assert await order(takeover, 3) == [1, 2, 3]


async def test_a_delivery_that_is_lost_after_the_info_is_waited_for():
    # 2 and 4 arrive just after the info, 3 is lost between them.
    arrivals = Arrivals((1, 1))
    takeover, _ = takeover_of(arrivals, (1, 1, (2, 2), (4, 4)), (4, 4), (5, 4, (3, 5)))
    assert await order(takeover, 4) == [1, 2, 3, 4]


@pytest.mark.parametrize("first", [True, False])
async def test_the_wait_is_bounded_and_reported_for_an_earlier_instance(first):
    config = ConsumerConfig(ack_wait=timedelta(milliseconds=1), max_ack_pending=100)
    arrivals = Arrivals((3, 7))
    infos = [(7, 2)] if first else [(7, 1), (9, 3)]
    takeover, reports = takeover_of(arrivals, *infos, config=config)
    assert await order(takeover, 1) == [3]
    if not first:
        arrivals.add((5, 9))
        assert await order(takeover, 1) == [5]
    assert len(reports) == first


async def test_acknowledged_messages_are_forgotten():
    arrivals = Arrivals(*((seq, seq) for seq in range(1, 1001)))
    takeover, _ = takeover_of(arrivals, (1, 1))
    for _ in range(1000):
        # As the worker does it for the handler.
        await group_message(await takeover.take(Deadline.after(20))).ack()
    assert len(Silent.alive) < 300
