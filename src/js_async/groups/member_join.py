"""Create a member's consumer, and hand it over to the next instance."""

from __future__ import annotations

from contextlib import suppress

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.consumer import Consumer
from js_async.groups.member_worker import MemberWorker
from js_async.runtime.concurrency import sleep
from twinstream.core.error_details.transient import FAILED_REQUEST
from twinstream.core.groups.member_consumer import (
    PRIORITY_GROUP,
    member_consumer,
    pin_holder,
    stored_filters,
)
from twinstream.core.groups.membership import DELETION, PAUSE, deletes_consumer, is_free
from twinstream.core.groups.names import GroupNames
from twinstream.errors import (
    ConsumerExists,
    ConsumerNotFound,
    JetStreamError,
    PermissionDenied,
    StreamNotFound,
)
from twinstream.models import ConsumerConfig, Timestamp
from twinstream.models.error_codes import CONSUMER_CREATE

__all__ = ["create_member_consumer", "delete_member_consumer", "hand_over", "release_pin"]


async def create_member_consumer(
    api: Api,
    names: GroupNames,
    member: str,
    filters: tuple[str, ...],
    template: ConsumerConfig,
    *,
    looks_first: bool = False,
) -> Consumer:
    """Create the consumer of a member, or return the one that another instance created.

    For an elastic group, a consumer with other settings is replaced. If another instance uses it,
    and so may still work on its messages, `ConsumerExists` is raised. Pass `looks_first=True` to
    the attempt after that.
    """
    config = member_consumer(names, member, filters, template)
    if looks_first:
        await _wait_for_deletion(api, names.source, member)
    try:
        return await _create(api, names.source, config)
    except ConsumerExists:
        if names.kind == "static":
            raise
        info = await consumer_admin.info(api, names.source, member)
        if not is_free(pin_holder(info), info.num_waiting or 0, stored_filters(info), filters):
            raise
    with suppress(ConsumerNotFound):
        await consumer_admin.delete(api, names.source, member)
    return await _create(api, names.source, config)


async def _create(api: Api, stream: str, config: ConsumerConfig) -> Consumer:
    try:
        return await Consumer.create(api, stream, config, "create")
    except JetStreamError as error:
        if error.err_code != CONSUMER_CREATE:
            raise
    # The server may still be removing the folder of an inactive consumer.
    await sleep(DELETION)
    return await Consumer.create(api, stream, config, "create")


async def _wait_for_deletion(api: Api, stream: str, member: str) -> None:
    """If the conflicting consumer is gone, wait until its deletion is complete.

    A consumer created earlier may inherit its delivery state, and skip messages of a newly assigned
    partition.
    """
    try:
        await consumer_admin.info(api, stream, member)
    except ConsumerNotFound:
        await sleep(DELETION)


async def delete_member_consumer(
    api: Api, names: GroupNames, member: str, *, created: Timestamp | None = None
) -> None:
    """Delete the consumer of a member, if it exists.

    With `created`, only the consumer that was created at this time: a new group of the same name
    may have one, too.
    """
    consumer = names.consumer(member)
    with suppress(ConsumerNotFound, StreamNotFound):
        if created is not None:
            info = await consumer_admin.info(api, names.source, consumer)
            if info.created != created:
                return
        await consumer_admin.delete(api, names.source, consumer)


async def hand_over(worker: MemberWorker, wanted: tuple[str, ...]) -> float:
    """Delete the consumer of a stopped worker if `deletes_consumer` says so.

    Return the seconds to wait before it is created again, so that the instance that is pinned to it
    can delete it first.
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
        # The server deletes it after its `inactive_threshold`.
        return PAUSE
    return PAUSE


async def release_pin(worker: MemberWorker) -> None:
    """Unpin this instance if it is pinned, so that the server pins another one at once."""
    with suppress(*FAILED_REQUEST, PermissionDenied):
        if worker.pin is not None and pin_holder(await worker.consumer.info()) == worker.pin:
            await worker.consumer.unpin(PRIORITY_GROUP)
