# Generated from tests/_async/test_absence.py by codegen/twin.py. Edit that file instead.
"""Programs that take nothing for long: what they hold goes back, and no more comes to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.core.deadline import monotonic
from twinstream.core.consume.reports import PullWarning
from twinstream.models import ConsumerConfig
from js_sync.consume import ack_progress as _held
from twinstream.testing import Proxy
from tests._sync.flow import eventually, pause, together
from tests._sync.streams import filled, waiting

COUNT = 6
ACK_WAIT = 0.4


def hasty(**more):
    """Return a consumer that soon delivers again."""
    config = {"durable_name": "c", "ack_wait": timedelta(seconds=ACK_WAIT), "max_deliver": 50}
    return ConsumerConfig(**config | more)


def none_given_up(events):
    with pytest.raises(js.RequestTimeout):
        events.next(0.2)


def left_alone(messages):
    return messages._held.gave_up


@pytest.mark.parametrize(
    "limits",
    [{}, {"max_bytes": 4000}, {"stop_after": 2 * COUNT}],
    ids=["count", "bytes", "bounded"],
)
def test_all_comes_to_a_program_that_was_away_for_long(opened, name, limits):
    with opened() as jet, jet.events(stream=name, kinds=["max_deliver"]) as events:
        stream = filled(jet, name, COUNT)
        consumer = stream.create_consumer(hasty())
        seen = set()
        with consumer.messages(**limits) as messages:
            # More is asked for than there is.
            while len(seen) < 2 * COUNT:
                message = messages.next(20)
                seen.add(message.metadata.stream_seq)
                message.ack()
                if len(seen) == 1:
                    eventually(left_alone, messages)
                    before = consumer.info()
                    pause(3 * ACK_WAIT)
                    after = consumer.info()
                    assert after.num_waiting == 0
                    assert after.delivered.consumer_seq == before.delivered.consumer_seq
                    for number in range(COUNT):
                        jet.publish(f"{name}.more.{number}")
        none_given_up(events)


@pytest.mark.parametrize(
    "settings",
    [{"max_deliver": 1}, {"durable_name": None, "inactive_threshold": timedelta(seconds=1)}],
    ids=["delivered once", "not durable"],
)
def test_what_nobody_else_would_get_is_kept(opened, name, monkeypatch, settings):
    monkeypatch.setattr(_held, "_PATIENCE", 1)
    with opened() as jet:
        stream = filled(jet, name, COUNT)
        # Long enough for a machine that is busy elsewhere for a moment.
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=1), **settings))
        deliveries = []
        with consumer.messages() as messages:
            for _ in range(COUNT):
                message = messages.next(20)
                deliveries.append(message.metadata.num_delivered)
                message.ack()
                if len(deliveries) == 1:
                    # Twice as long as others are kept alive, and then until the next delivery.
                    pause(4)
        assert deliveries == [1] * COUNT


def test_who_waits_is_not_away(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=0.1)))
        reports = []

        def publish():
            pause(2)
            jet.publish(f"{name}.late")

        with consumer.messages(on_report=reports.append) as messages:
            message, _ = together(lambda: messages.next(20), publish)
            message.ack()
        assert not reports


def test_who_waits_beside_one_who_gave_up_is_not_away(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=0.1)))
        reports = []

        def publish():
            with pytest.raises(js.RequestTimeout):
                messages.next(0.1)
            pause(2)
            jet.publish(f"{name}.late")

        with consumer.messages(on_report=reports.append) as messages:
            message, _ = together(lambda: messages.next(20), publish)
            message.ack()
        assert not reports


def test_who_asks_now_and_then_is_not_away(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        # So long that nobody looks meanwhile.
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=300)))
        with consumer.messages() as messages:
            before = monotonic()
            with pytest.raises(js.RequestTimeout):
                messages.next(0.01)
            assert messages._held.taken_at > before


def test_who_is_back_in_time_gets_what_was_here(opened, name, monkeypatch):
    monkeypatch.setattr(_held, "_PATIENCE", 0.2)
    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=6)))
        reports = []
        with consumer.messages(on_report=reports.append) as messages:
            (messages.next(20)).ack()
            jet.publish(f"{name}.more")
            eventually(left_alone, messages)
            assert messages.outstanding == 0
            assert not reports
            message = messages.next(20)
            assert message.metadata.num_delivered == 1
            message.ack()
        [report] = reports
        assert isinstance(report, PullWarning)
        assert "no message was taken" in report.text


@pytest.mark.parametrize("end", ["close", "drain"])
def test_what_was_left_alone_is_ended(opened, name, monkeypatch, end):
    monkeypatch.setattr(_held, "_PATIENCE", 1)
    with opened() as jet:
        stream = filled(jet, name, COUNT)
        consumer = stream.create_consumer(hasty(ack_wait=timedelta(seconds=2)))
        with consumer.messages() as messages:
            (messages.next(20)).ack()
            eventually(left_alone, messages)
            (messages.drain if end == "drain" else messages.close)()
            # What was told of a moment ago is in time.
            rest = [message.metadata.num_delivered for message in messages]
            assert rest == ([1] * (COUNT - 1) if end == "drain" else [])
        if end == "close":
            batch = consumer.fetch(COUNT - 1)
            assert [message.metadata.num_delivered for message in batch] == [2] * (COUNT - 1)
        eventually(waiting, consumer, 0)


def test_a_link_that_breaks_during_an_absence_loses_nothing(server, name, monkeypatch):
    monkeypatch.setattr(_held, "_PATIENCE", 1)
    with Proxy(server.url) as proxy:
        policy = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
        with js.connect(proxy.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=20)
            stream = filled(jet, name, COUNT)
            consumer = stream.create_consumer(hasty())
            seen = set()
            with consumer.messages() as messages:
                while len(seen) < COUNT:
                    message = messages.next(20)
                    seen.add(message.metadata.stream_seq)
                    message.ack()
                    eventually(left_alone, messages)
                    if len(seen) % 2:
                        proxy.cut()
