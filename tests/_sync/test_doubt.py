# Generated from tests/_async/test_doubt.py by codegen/twin.py. Edit that file instead.
"""A user who may not ask whether a consumer exists: waits for it, but not for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.permissions import consume, operation, permissions
from twinstream.models import ConsumerConfig, StreamConfig
from tests._sync.flow import eventually, together
from tests.worlds import plain

CONFIG = ConsumerConfig(durable_name="c")
PUSH = ConsumerConfig(
    durable_name="push", deliver_subject="to.me", idle_heartbeat=timedelta(seconds=0.1)
)


@pytest.fixture(scope="module")
def world():
    """A server with users who may pull, or listen, and ask for nothing."""
    create = operation("create_consumer", "S", "c")
    lists = {
        "bound": permissions(consume("S", "c", bound=True)),
        "maker": permissions(consume("S", "c", bound=True), create),
        "listener": permissions(operation("subscribe", "S", "push", "to.me")),
    }
    with plain(lists) as made:
        yield made


@pytest.fixture
def short(monkeypatch):
    """Doubt that ends after a second."""
    monkeypatch.setattr("twinstream.core.consume.absence_timer.BOUND", 1.0)


def stage(admin):
    """Make the stream with one message, without a consumer."""
    jet = admin.jetstream()
    try:
        jet.delete_stream("S")
    except js.StreamNotFound:
        pass
    stream = jet.create_stream(StreamConfig(name="S", subjects=["s"], storage="memory"))
    jet.publish("s", b"tea")
    return stream


def user(world, name):
    """Connect as one of the users."""
    return js.connect(world.url, user=name, password="pw")


def test_nobody_answering_for_long_ends_the_iteration(world, short):
    with user(world, "admin") as admin, user(world, "bound") as connection:
        stage(admin)
        reports = []
        consumer = connection.jetstream().bind_consumer("S", "c")
        with consumer.messages(on_report=reports.append) as messages:
            with pytest.raises(js.NoResponders, match=r"CONSUMER\.INFO"):
                messages.next(30)
        assert [type(each) for each in reports] == [js.PullWarning]


@pytest.mark.parametrize("policy", ["raise", "wait"])
def test_a_consumer_that_comes_in_time_is_waited_for(world, policy, monkeypatch):
    monkeypatch.setattr("twinstream.core.consume.absence_timer.BOUND", 60.0 if policy == "raise" else 0.0)
    with user(world, "admin") as admin, user(world, "bound") as connection:
        stream = stage(admin)
        reports = []
        consumer = connection.jetstream().bind_consumer("S", "c")
        with consumer.messages(on_deleted=policy, on_report=reports.append) as messages:

            def take():
                return messages.next(30)

            def make():
                def told():
                    return reports

                eventually(told)
                stream.create_consumer(CONFIG)

            message, _ = together(take, make)
            assert message.data == b"tea"
            message.double_ack()


def test_a_consumer_is_made_anew_by_a_user_who_may_only_make_it(world, short):
    with user(world, "admin") as admin, user(world, "maker") as connection:
        stream = stage(admin)
        reports = []
        consumer = connection.jetstream().create_consumer("S", CONFIG)
        with consumer.messages(on_deleted="recreate", on_report=reports.append) as messages:
            stream.delete_consumer("c")
            message = messages.next(30)
            assert message.data == b"tea"
        assert js.Recreated("c") in reports


def test_a_push_consumer_that_falls_silent_ends_the_iteration(world, short):
    with user(world, "admin") as admin, user(world, "listener") as connection:
        stream = stage(admin)
        with connection.jetstream().bind_stream("S").subscribe(PUSH) as messages:
            (messages.next(30)).double_ack()
            stream.delete_consumer("push")
            with pytest.raises(js.NoResponders, match=r"CONSUMER\.INFO"):
                messages.next(30)


def test_an_ordered_read_needs_no_look_at_its_consumer():
    lists = {"reader": permissions(operation("ordered", "S"))}
    with plain(lists) as made:
        with user(made, "admin") as admin, user(made, "reader") as connection:
            stream = stage(admin)
            with connection.jetstream().bind_stream("S").ordered() as messages:
                assert (messages.next(30)).data == b"tea"
                for name in [each for each in stream.consumer_names()]:
                    stream.delete_consumer(name)
                admin.jetstream().publish("s", b"milk")
                assert (messages.next(30)).data == b"milk"
