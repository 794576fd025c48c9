# Generated from tests/_async/test_sharing.py by codegen/twin.py. Edit that file instead.
"""Several threads or tasks that take from one iteration, subscription or publisher."""

from __future__ import annotations

from itertools import chain

import pytest

import js_sync as js
from twinstream.core.connect.connection_events import Closed
from twinstream.models import ConsumerConfig
from tests._sync.flow import eventually, together
from tests._sync.streams import filled

ROUNDS = 20
COUNT = 2000
TAKERS = 4


def pulled(stream, **options):
    """Return an iteration over a pull consumer."""
    consumer = stream.create_consumer(ConsumerConfig(ack_policy="none"))
    # No heartbeat comes in the time of a test: it would wake a caller that missed its message.
    return consumer.messages(expires=60, heartbeat=30, **options)


def by_bytes(stream):
    """Return an iteration over a pull consumer whose buffer is bounded by bytes."""
    return pulled(stream, max_bytes=20_000)


def pushed(stream):
    """Return an iteration over a push consumer."""
    return stream.subscribe(ConsumerConfig(ack_policy="none"))


def ordered(stream):
    """Return an ordered read."""
    return stream.ordered()


KINDS = pytest.mark.parametrize("kind", [pulled, by_bytes, pushed, ordered])


def seqs(messages):
    return sorted(message.metadata.stream_seq for message in messages)


@KINDS
def test_two_callers_get_the_two_messages_of_one_packet(server, opened, name, kind):
    with opened() as jet, js.connect(server.url) as connection:
        stream = filled(jet, name, 0)
        with kind(stream) as messages:

            def one():
                waiting.append(None)
                return messages.next(4)

            def publish():
                eventually(both_wait)
                connection.publish(f"{name}.a")
                connection.publish(f"{name}.b")
                connection.flush()

            def both_wait():
                return len(waiting) == 2

            for number in range(ROUNDS):
                waiting = []
                first, second, _ = together(one, one, publish)
                assert seqs([first, second]) == [2 * number + 1, 2 * number + 2]


def test_callers_together_get_as_many_as_stop_after_says(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 40)
        with pulled(stream, stop_after=20) as messages:

            def take():
                taken = []
                while True:
                    try:
                        taken.append(messages.next(20))
                    except js.IterationEnded:
                        return taken

            taken = together(*[take] * TAKERS)
            assert messages.is_ended
        assert seqs(chain.from_iterable(taken)) == list(range(1, 21))


@KINDS
def test_callers_together_get_each_message_once(opened, name, kind):
    with opened() as jet:
        stream = filled(jet, name, COUNT)
        with kind(stream) as messages:
            left = [None] * COUNT

            def take():
                taken = []
                while left:
                    left.pop()
                    taken.append(messages.next(30))
                return taken

            taken = together(*[take] * TAKERS)
        assert seqs(chain.from_iterable(taken)) == list(range(1, COUNT + 1))


@KINDS
def test_closing_ends_all_who_wait(opened, name, kind):
    with opened() as jet:
        stream = filled(jet, name, 0)
        messages = kind(stream)
        started = []

        def take():
            started.append(None)
            return [message for message in messages]

        def close():
            def waiting():
                return len(started) == TAKERS

            eventually(waiting)
            messages.close()

        assert (together(*[take] * TAKERS, close))[:TAKERS] == [[]] * TAKERS
        assert messages.is_ended


def test_waiting_behind_another_caller_ends_in_time(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        with pulled(stream) as messages:

            def late():
                with pytest.raises(js.RequestTimeout):
                    messages.next(0.05)
                # For the other one, who still waits.
                jet.publish(f"{name}.x")

            first, _ = together(lambda: messages.next(30), late)
        assert first.metadata.stream_seq == 1


def test_callers_together_leave_one_consumer_of_an_ordered_read(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        with stream.ordered() as messages:
            together(*[lambda: messages.next(30)] * 10)
            assert len([found for found in stream.consumer_names()]) == 1
        assert [found for found in stream.consumer_names()] == []


def test_callers_together_get_each_message_of_a_subscription_once(server, name):
    with js.connect(server.url) as connection:
        subscription = connection.subscribe(name)
        connection.flush()

        def take():
            return [int(message.data) for message in subscription]

        def publish():
            for number in range(COUNT):
                connection.publish(name, b"%d" % number)
            connection.flush()
            subscription.drain()

        taken = together(*[take] * TAKERS, publish)
        assert sorted(chain.from_iterable(taken[:TAKERS])) == list(range(COUNT))


class TakenLate:
    """An event whose taker looks at it after another caller took the last one of all."""

    def __init__(self, events):
        self.events = events

    @property
    def __class__(self):
        assert isinstance(self.events._events.popleft(), Closed)
        self.events._ended = True
        return TakenLate


def test_the_end_of_the_events_of_a_connection_stays_the_end(server):
    with js.connect(server.url) as connection:
        events = connection.events()
        events._tell(TakenLate(events))
        events._tell(Closed())
        events.next(1)
        with pytest.raises(js.ConnectionClosed):
            events.next(1)


def test_a_publisher_that_is_shared_counts_every_message(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        with jet.publisher(window=50) as publisher:

            def send():
                handles = [publisher.send(f"{name}.x") for _ in range(300)]
                return [(handle.result()).seq for handle in handles]

            taken = together(*[send] * TAKERS)
            assert publisher.under_way == 0
        assert sorted(chain.from_iterable(taken)) == list(range(1, 300 * TAKERS + 1))
        assert (stream.info()).state.messages == 300 * TAKERS
