"""The operations of consumer groups in the table of permissions, run on a server."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

import js_async as js
from js_async.groups import (
    ElasticGroup,
    GroupNotFound,
    PartitionsRevoked,
    StaticGroup,
    elastic_groups,
    static_groups,
)
from js_async.workers import HandlerFailed, Retry
from tests._async.flow import eventually
from twinstream.core.groups.member_consumer import pin_holder
from twinstream.models import (
    ConsumerConfig,
    ElasticGroupConfig,
    PartitioningFilter,
    StaticGroupConfig,
    StreamConfig,
    SubjectTransform,
)

__all__ = ["GROUP_ACTS", "GROUP_PROOFS", "set_group"]

CONFIG = ConsumerConfig(ack_wait=timedelta(seconds=8))


def group_of(jet, name):
    """Return the group on the stream of an operation."""
    kinds = {"static": StaticGroup, "elastic": ElasticGroup}
    return kinds[name.partition("_")[0]](jet, name, "g")


def config_of(name):
    """Return a configuration of the group with one partition."""
    if name.startswith("static"):
        return StaticGroupConfig(max_members=1, members=["m"])
    by_key = PartitioningFilter(filter=f"p.{name}.*", partitioning_wildcards=[1])
    return ElasticGroupConfig(max_members=1, partitioning_filters=[by_key], members=["m"])


async def set_group(jet, name):
    """Create the stream of an operation with three messages, and its group."""
    kind = name.partition("_")[0]
    group = group_of(jet, name)
    # The stream of an elastic group first: `delete` refuses to remove the only copies of messages.
    for each in dict.fromkeys([group.source_stream_name, name]):
        with suppress(js.StreamNotFound):
            await jet.delete_stream(each)
    with suppress(GroupNotFound):
        await group.delete()
    transform = None
    if kind == "static":
        dest = f"{{{{Partition(1,1)}}}}.p.{name}.{{{{Wildcard(1)}}}}"
        transform = SubjectTransform(src=f"p.{name}.*", dest=dest)
    await jet.create_stream(
        StreamConfig(
            name=name, subjects=[f"p.{name}.>"], storage="memory", subject_transform=transform
        )
    )
    for number in range(3):
        await jet.publish(f"p.{name}.a", b"%d" % number)
    if name.endswith("create"):
        with suppress(js.BucketNotFound):
            await jet.delete_key_value(f"{kind}-consumer-groups")
        return
    await group.create(config_of(name))
    if name == "elastic_group_delete":

        async def copied():
            return (await jet.get_stream(group.source_stream_name)).cached_info.state.messages == 3

        # So that `delete` has to look at the original stream.
        await eventually(copied)
    if name.endswith("delete_mappings"):
        await group.set_mappings({"n": [0]})
    if name.endswith("step_down") or name == "static_group_delete":
        # One that was served, so that a pin is there to be lost, or a consumer to be deleted.
        await served(group)


async def served(group, short=20):
    """Run a worker until all messages are handled."""
    handled = []

    async def handler(message):
        await message.double_ack()
        handled.append(message)

    async def done():
        return len(handled) == 3

    async with group.worker("m", handler, config=CONFIG):
        await eventually(done, patience=short)


async def create(jet, stage):
    group = group_of(jet, stage.stream)
    for _ in range(2):
        assert (await group.create(config_of(stage.stream))).members == ["m"]


async def info(jet, stage):
    assert (await group_of(jet, stage.stream).info()).partitions("m") == (0,)


async def active_members(jet, stage):
    assert await group_of(jet, stage.stream).active_members() == []


async def step_down(jet, stage):
    await group_of(jet, stage.stream).step_down("m")


async def delete(jet, stage):
    await group_of(jet, stage.stream).delete()


async def add_members(jet, stage):
    assert await group_of(jet, stage.stream).add_members("n") == ["m", "n"]


async def remove_members(jet, stage):
    assert await group_of(jet, stage.stream).remove_members("m") == []


async def set_mappings(jet, stage):
    assert await group_of(jet, stage.stream).set_mappings({"n": [0]}) == ["n"]


async def delete_mappings(jet, stage):
    await group_of(jet, stage.stream).delete_mappings()


async def names(jet, stage):
    kinds = {"static": static_groups, "elastic": elastic_groups}
    listed = kinds[stage.stream.partition("_")[0]](jet, stage.stream, timeout=stage.short)
    assert [each async for each in listed] == ["g"]


async def worker(jet, stage):
    group, reports = group_of(jet, stage.stream), []
    consumer = "m" if stage.stream.startswith("elastic") else "g-m"

    async def handler(message):
        # For the second worker.
        raise OSError("not yet")

    async def joined_again():
        kinds = [type(each) for each in reports]
        left = kinds.index(PartitionsRevoked) if PartitionsRevoked in kinds else len(kinds)
        return HandlerFailed in kinds[left:]

    # For what comes where nothing is denied.
    patience = min(10 * stage.short, 30)
    retry = Retry(attempts=None, first=0.05)
    one = group.worker("m", handler, config=CONFIG, retry=retry, on_report=reports.append)
    await one.start()
    try:
        await eventually(
            pulls, jet.bind_consumer(group.source_stream_name, consumer), patience=patience
        )
        # Its end shows whether it may read the configuration again.
        await jet.bind_stream(group.source_stream_name).delete_consumer(consumer)
        if stage.stream.startswith("static"):
            with pytest.raises(js.ConsumerDeleted):
                await one.wait(timeout=patience)
        else:
            await eventually(joined_again, patience=stage.short)
    finally:
        with suppress(js.ConsumerDeleted):
            await one.stop()
    await served(group, stage.short)


async def pulls(consumer):
    return (await consumer.info()).num_waiting


async def no_pin(jet, stage):
    group = group_of(jet, stage.stream)
    consumer = "m" if stage.stream.startswith("elastic") else "g-m"
    found = await (await jet.get_stream(group.source_stream_name)).get_consumer(consumer)
    assert pin_holder(found.cached_info) == ""


GROUP_PROOFS = {"static_group_worker": no_pin, "elastic_group_worker": no_pin}

_BOTH = {
    "create": (("g",), create, "2.11"),
    "info": (("g",), info, "2.11"),
    "active_members": (("g",), active_members, "2.11"),
    "step_down": (("g", "m"), step_down, "2.11"),
    "delete": (("g",), delete, "2.11"),
    "worker": (("g", "m"), worker, "2.11"),
}
GROUP_ACTS = {
    "static_groups": ((), names, "2.11"),
    "elastic_groups": ((), names, "2.11"),
    **{f"static_group.{name}": act for name, act in _BOTH.items()},
    **{f"elastic_group.{name}": act for name, act in _BOTH.items()},
    "elastic_group.add_members": (("g",), add_members, "2.11"),
    "elastic_group.remove_members": (("g",), remove_members, "2.11"),
    "elastic_group.set_mappings": (("g",), set_mappings, "2.11"),
    "elastic_group.delete_mappings": (("g",), delete_mappings, "2.11"),
}
