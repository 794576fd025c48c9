# Generated from tests/_async/test_busy_poll.py by codegen/twin.py. Edit that file instead.
"""`busy_poll`: a wait asks again and again before it sleeps, and changes nothing else."""

from __future__ import annotations

import pytest

import js_sync as js
from twinstream.models import ConsumerConfig, StreamConfig
from tests._sync.flow import pause, together

POLL = 0.002
COUNT = 60


def test_nothing_is_lost_or_doubled(server, name):
    with js.connect(server.url, busy_poll=POLL) as polling:
        jet = polling.jetstream()
        stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
        for number in range(1, COUNT + 1):
            assert (jet.publish(name, b"%d" % number)).seq == number
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = [consumer.next(timeout=20) for _ in range(5)]
        seen += consumer.fetch(20, timeout=20)
        with consumer.messages() as messages:
            for message in messages:
                seen.append(message)
                if len(seen) == COUNT:
                    break
    assert [int(message.data) for message in seen] == list(range(1, COUNT + 1))


def test_what_comes_after_the_polling_is_waited_for(server, name):
    with (
        js.connect(server.url, busy_poll=POLL) as polling,
        js.connect(server.url) as other,
    ):
        subscription = polling.subscribe(name)
        polling.flush()

        def hear():
            for number in range(3):
                assert (subscription.next(timeout=20)).data == b"%d" % number

        def say():
            for number in range(3):
                pause(20 * POLL)
                other.publish(name, b"%d" % number)
                other.flush()

        together(hear, say)


def test_a_wait_that_is_shorter_than_the_polling_ends_in_time(server, name):
    with js.connect(server.url, busy_poll=0.1) as connection:
        subscription = connection.subscribe(name)
        with pytest.raises(js.RequestTimeout):
            subscription.next(timeout=0.01)
        connection.publish(name, b"here")
        assert (subscription.next(timeout=20)).data == b"here"


def test_many_wait_at_once(server, name):
    seqs = []

    def publish():
        for _ in range(20):
            seqs.append((jet.publish(name, b"x")).seq)

    with js.connect(server.url, busy_poll=POLL) as polling:
        jet = polling.jetstream()
        jet.create_stream(StreamConfig(name=name, subjects=[name]))
        together(publish, publish, publish)
    assert sorted(seqs) == list(range(1, 61))
