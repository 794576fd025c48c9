"""Without permission to request a consumer's info, clients wait for it for a limited time."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests.worlds import plain
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.permissions import consume, operation, permissions

CONFIG = ConsumerConfig(durable_name="c")
PUSH = ConsumerConfig(
    durable_name="push", deliver_subject="to.me", idle_heartbeat=timedelta(seconds=0.1)
)


@pytest.fixture(scope="module")
def world():
    """A server with users who may pull, or subscribe, but may not request consumer infos."""
    create = operation("create_consumer", "S", "c")
    lists = {
        "bound": permissions(consume("S", "c", bound=True)),
        "maker": permissions(consume("S", "c", bound=True), create),
        "listener": permissions(operation("create_push_messages", "S", "push", "to.me")),
    }
    with plain(lists) as made:
        yield made


@pytest.fixture
def short(tuned):
    """Limit the wait for a missing consumer to one second."""
    tuned("absence bound", 1.0)


async def stage(admin):
    """Create the stream with one message, without a consumer."""
    jet = admin.jetstream()
    try:
        await jet.delete_stream("S")
    except js.StreamNotFound:
        pass
    stream = await jet.create_stream(StreamConfig(name="S", subjects=["s"], storage="memory"))
    await jet.publish("s", b"tea")
    return stream


def user(world, name):
    """Connect as one of the users."""
    return js.connect(world.url, user=name, password="pw")


async def test_long_lack_of_responders_ends_the_iteration(world, short):
    async with user(world, "admin") as admin, user(world, "bound") as connection:
        await stage(admin)
        reports = []
        consumer = connection.jetstream().bind_consumer("S", "c")
        async with consumer.messages(on_report=reports.append) as messages:
            with pytest.raises(js.NoResponders, match=r"CONSUMER\.INFO"):
                await messages.next(timeout=30)
        assert [type(each) for each in reports] == [js.PullWarning]


@pytest.mark.parametrize("policy", ["raise", "wait"])
async def test_consumer_that_appears_in_time_is_waited_for(world, policy, tuned):
    tuned("absence bound", 60.0 if policy == "raise" else 0.0)
    async with user(world, "admin") as admin, user(world, "bound") as connection:
        stream = await stage(admin)
        reports = []
        consumer = connection.jetstream().bind_consumer("S", "c")
        async with consumer.messages(on_deleted=policy, on_report=reports.append) as messages:

            async def take():
                return await messages.next(timeout=30)

            async def make():
                async def told():
                    return reports

                await eventually(told)
                await stream.create_consumer(CONFIG)

            message, _ = await together(take, make)
            assert message.data == b"tea"
            await message.double_ack()


async def test_consumer_is_recreated_by_a_user_with_create_permission_only(world, short):
    async with user(world, "admin") as admin, user(world, "maker") as connection:
        stream = await stage(admin)
        reports = []
        consumer = await connection.jetstream().create_consumer("S", CONFIG)
        async with consumer.messages(on_deleted="recreate", on_report=reports.append) as messages:
            await stream.delete_consumer("c")
            message = await messages.next(timeout=30)
            assert message.data == b"tea"
        assert js.ConsumerRecreated("c") in reports


async def test_a_push_consumer_that_falls_silent_ends_the_iteration(world, short):
    async with user(world, "admin") as admin, user(world, "listener") as connection:
        stream = await stage(admin)
        async with connection.jetstream().bind_stream("S").push_messages(PUSH) as messages:
            await (await messages.next(timeout=30)).double_ack()
            await stream.delete_consumer("push")
            with pytest.raises(js.NoResponders, match=r"CONSUMER\.INFO"):
                await messages.next(timeout=30)


async def test_an_ordered_read_needs_no_look_at_its_consumer():
    lists = {"reader": permissions(operation("ordered", "S"))}
    with plain(lists) as made:
        async with user(made, "admin") as admin, user(made, "reader") as connection:
            stream = await stage(admin)
            async with connection.jetstream().bind_stream("S").ordered() as messages:
                assert (await messages.next(timeout=30)).data == b"tea"
                for name in [each async for each in stream.consumer_names()]:
                    await stream.delete_consumer(name)
                await admin.jetstream().publish("s", b"milk")
                assert (await messages.next(timeout=30)).data == b"milk"
