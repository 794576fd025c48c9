# Generated from tests/_async/test_missing.py by codegen/twin.py. Edit that file instead.
"""Consumers that vanish, and the three things to do about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.models import ConsumerConfig
from tests._sync.flow import eventually, together
from tests._sync.streams import filled, waiting

# A deletion is told by a status, or else by silence for two heartbeats: soon here.
BRISK = {"expires": 4, "heartbeat": 1}


def test_a_consumer_that_was_never_there_is_told(opened, name):
    with opened() as jet:
        filled(jet, name, 1)
        with jet.bind_consumer(name, "none").messages() as messages:
            with pytest.raises(js.ConsumerDeleted, match="none"):
                messages.next(20)


def test_a_consumer_that_is_not_durable_says_why_it_is_gone(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(name="c", inactive_threshold=timedelta(seconds=0.2))
        consumer = stream.create_consumer(config)

        def gone():
            return [each for each in stream.consumer_names()] == []

        eventually(gone)
        with consumer.messages() as messages:
            with pytest.raises(js.ConsumerDeleted, match=r"vanishes after 0\.2 s"):
                messages.next(20)


def test_a_deleted_stream_takes_its_consumers_along(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))

        def read():
            with pytest.raises(js.ConsumerDeleted):
                messages.next(20)

        def delete():
            eventually(waiting, consumer)
            jet.delete_stream(name)

        with consumer.messages(**BRISK) as messages:
            (messages.next(10)).ack()
            together(read, delete)
        with pytest.raises((js.NoResponders, js.ConsumerDeleted)):
            consumer.fetch(1, timeout=20)


@pytest.mark.parametrize("policy", ["wait", "recreate"])
def test_a_deleted_consumer_comes_back(opened, name, policy):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c")
        consumer = stream.create_consumer(config)
        reports = []
        options = {"on_deleted": policy, "on_report": reports.append}
        with consumer.messages(**BRISK, **options) as messages:
            (messages.next(10)).ack()

            def take():
                return messages.next(20)

            def delete():
                eventually(waiting, consumer)
                stream.delete_consumer("c")
                if policy == "wait":
                    stream.create_consumer(config)

            message, _ = together(take, delete)
            # A consumer made anew starts where its policy says: at the beginning.
            assert message.metadata.stream_seq == 1
        assert (js.Recreated("c") in reports) == (policy == "recreate")


def test_a_different_consumer_is_explained(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=9), max_deliver=3)
        )
        with pytest.raises(js.ConsumerExists) as caught:
            stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=8), max_deliver=3)
            )
        (found,) = caught.value.differences
        assert (found.field, found.wanted, found.actual) == ("ack_wait", 8 * 10**9, 9 * 10**9)
        with pytest.raises(js.ConsumerExists, match="max_deliver"):
            stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=9), max_deliver=4)
            )


@pytest.mark.since("2.14")
def test_pause_resume_and_reset(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 5)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        consumer.pause(60)
        assert (consumer.info()).paused
        assert not consumer.fetch(1, timeout=0.2)
        consumer.resume()
        assert not (consumer.info()).paused
        for message in consumer.fetch(5):
            message.ack()
        consumer.reset(3)
        again = consumer.fetch(3)
        assert [message.metadata.stream_seq for message in again] == [3, 4, 5]
        with pytest.raises(js.BadArgument):
            consumer.pause(0)


def test_acknowledging_and_asking_in_one_word(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        message = consumer.next()
        seen = []
        while message is not None:
            seen.append(message.metadata.stream_seq)
            following = consumer.ack_next(message, timeout=2)
            with pytest.raises(js.AlreadyAcknowledged):
                message.ack()
            message = following
        assert seen == [1, 2, 3]
        assert (consumer.info()).num_ack_pending == 0


def test_acknowledging_and_asking_for_several_in_one_word(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 6)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        first = consumer.next()
        batch = consumer.ack_fetch(first, 3)
        assert [message.metadata.stream_seq for message in batch] == [2, 3, 4]
        assert first.is_acknowledged
        rest = consumer.ack_fetch(batch[0], 10, wait="none")
        assert [message.metadata.stream_seq for message in rest] == [5, 6]
        assert rest.reason is js.BatchEnd.NO_MESSAGES
        with pytest.raises(js.AlreadyAcknowledged):
            consumer.ack_fetch(first, 1)
        assert (consumer.info()).num_ack_pending == 4


def test_two_steps_of_adr_13(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        here = consumer.fetch(10, timeout=20, two_step=True)
        assert (len(here), here.reason) == (3, js.BatchEnd.NO_MESSAGES)
        nothing = consumer.fetch(10, timeout=0.2, two_step=True)
        assert nothing.reason is js.BatchEnd.EXPIRED
