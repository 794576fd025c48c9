"""Create the consumer of a member, and release it for the next instance."""

from __future__ import annotations

from contextlib import suppress

from js_async import Consumer, JetStream
from js_async.groups.member_worker import MemberWorker
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline
from twinstream.core.groups.member_consumer import (
    PRIORITY_GROUP,
    is_of_member,
    member_consumer,
    pin_holder,
    stored_filters,
)
from twinstream.core.groups.membership import PAUSE, deletes_consumer, is_free
from twinstream.core.groups.names import GroupNames
from twinstream.core.server_faults.delays import DELETION
from twinstream.errors import (
    ConsumerExists,
    ConsumerNotFound,
    JetStreamError,
    PermissionDenied,
    StreamNotFound,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import ConsumerConfig, Timestamp
from twinstream.models.error_codes import CONSUMER_CREATE

__all__ = [
    "create_member_consumer",
    "delete_member_consumer",
    "delete_own_consumer",
    "hand_over",
    "release_pin",
]


async def create_member_consumer(
    jet: JetStream,
    names: GroupNames,
    member: str,
    filters: tuple[str, ...],
    template: ConsumerConfig,
    *,
    looks_first: bool = False,
) -> Consumer:
    """Create the consumer of a member, or return it if another instance has created it.

    Raises `ConsumerExists` if the consumer has other settings. In an elastic group, the function
    replaces such a consumer instead, unless another instance may still work on its messages.

    After `ConsumerExists`, pass `looks_first=True` to the next call. The call then waits until the
    deletion of the other consumer is complete.
    """
    config = member_consumer(names, member, filters, template)
    if looks_first:
        await _wait_for_deletion(jet, names.source, names.consumer(member))
    try:
        return await _create(jet, names.source, config)
    except ConsumerExists:
        if names.kind == "static":
            raise
        info = await jet.bind_consumer(names.source, member).info()
        if not is_free(pin_holder(info), info.num_waiting or 0, stored_filters(info), filters):
            raise
    with suppress(ConsumerNotFound):
        await jet.delete_consumer(names.source, member)
    return await _create(jet, names.source, config)


async def _create(jet: JetStream, stream: str, config: ConsumerConfig) -> Consumer:
    try:
        return await jet.create_consumer(stream, config)
    except JetStreamError as error:
        if error.err_code != CONSUMER_CREATE:
            raise
    # The server may still be deleting the directory of an inactive consumer of this name.
    await sleep(DELETION)
    return await jet.create_consumer(stream, config)


async def _wait_for_deletion(jet: JetStream, stream: str, consumer: str) -> None:
    """If the member's consumer does not exist any more, wait until its deletion is complete.

    A consumer that is created earlier may inherit the delivery state of the deleted one. It would
    then skip messages of a partition that is new to the member.
    """
    try:
        await jet.bind_consumer(stream, consumer).info()
    except ConsumerNotFound:
        await sleep(DELETION)


async def delete_member_consumer(
    jet: JetStream, names: GroupNames, member: str, *, created: Timestamp | None = None
) -> None:
    """Delete the consumer of a member, if it exists.

    With `created`, the consumer is only deleted if it was created at this time. So the consumer of
    a new group with the same name is kept.
    """
    consumer = names.consumer(member)
    with suppress(ConsumerNotFound, StreamNotFound):
        if created is not None:
            info = await jet.bind_consumer(names.source, consumer).info()
            if info.created != created:
                return
        await jet.delete_consumer(names.source, consumer)


async def delete_own_consumer(
    jet: JetStream, names: GroupNames, member: str, filters: tuple[str, ...], deadline: Deadline
) -> str | None:
    """Delete the consumer of a member of a deleted group, if it exists.

    Return its name if it was kept, because it is not a consumer of the group; otherwise None.
    """
    consumer = names.consumer(member)
    with suppress(ConsumerNotFound, StreamNotFound):
        found = jet.bind_consumer(names.source, consumer)
        info = await found.info(timeout=deadline.remaining())
        if not is_of_member(info, consumer, filters):
            return consumer
        await found.delete(timeout=deadline.remaining())
    return None


async def hand_over(worker: MemberWorker, wanted: tuple[str, ...]) -> float:
    """Delete the consumer of a stopped worker if this instance is responsible for it.

    Returns the seconds to wait before the consumer is created again: 0 if the consumer is deleted,
    otherwise `PAUSE`, in which the pinned instance can delete the consumer.
    """
    consumer = worker.consumer
    try:
        info = await consumer.info()
        if deletes_consumer(pin_holder(info), worker.pin, stored_filters(info), wanted):
            await consumer.delete()
            return 0.0
    except ConsumerNotFound:
        return 0.0
    except FAILED_REQUEST:
        # The server deletes the consumer after its `inactive_threshold`.
        return PAUSE
    return PAUSE


async def release_pin(worker: MemberWorker) -> None:
    """Unpin this instance if it is pinned, so that the server pins another one at once."""
    with suppress(*FAILED_REQUEST, PermissionDenied):
        if worker.pin is not None and pin_holder(await worker.consumer.info()) == worker.pin:
            await worker.consumer.unpin(PRIORITY_GROUP)
