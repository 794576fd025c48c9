"""A call that is cancelled at any of its suspensions leaves no subscription and no consumer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import js_async as js
from js_async.backup import backup_stream
from js_async.coordination import Coordination
from tests._async.cancelling import WAYS, cancelled_at
from tests._async.consume import test_dropped_subscriptions as uses
from tests._async.consume.test_dropped_subscriptions import MOST_KEPT, Place, left
from tests._async.flow import eventually
from tests.dropping import begin_collecting
from twinstream.testing import NatsServer

# A use has fewer suspensions than this.
MANY = 60


async def backup(place: Any) -> None:
    """Copy a stream; the copy is removed with its folder."""
    await backup_stream(place.jet, place.stream.name, place.folder, overwrite=True)


async def lock(place: Any) -> None:
    """Wait for a lock that another client has."""
    coordination = Coordination(place.jet, "LOCKS", create=True)
    async with await coordination.lock("a", ttl=5).acquire(timeout=60):
        try:
            await coordination.lock("a", ttl=5).acquire(timeout=0.05)
        except js.RequestTimeout:
            return


async def once(place: Any) -> None:
    """Wait for work that no client does."""
    coordination = Coordination(place.jet, "LOCKS", create=True)
    try:
        await coordination.once("never").wait(timeout=0.05)
    except js.RequestTimeout:
        return


async def watch_closed(place: Any) -> None:
    """Use a watch as it should be used."""
    async with place.bucket.watch() as watch:
        await watch.next(timeout=20)


async def ordered_closed(place: Any) -> None:
    """Use an ordered read as it should be used."""
    async with place.stream.ordered() as messages:
        await messages.next(timeout=20)


async def read_closed(place: Any) -> None:
    """Use a read by a consumer as it should be used."""
    async with place.stream.read(via="consumer", page_messages=1) as messages:
        await anext(messages)


async def messages_closed(place: Any) -> None:
    """Use an iterator over the messages of a consumer as it should be used."""
    async with place.consumer.messages() as messages:
        await messages.next(timeout=0.01)


# If these reads are cancelled before they have ended, the program has left them open.
READS = [uses.read, uses.object_reader]
TIDY = [
    *(use for use in uses.TIDY if use not in READS),
    backup,
    lock,
    once,
    watch_closed,
    ordered_closed,
    read_closed,
    messages_closed,
]
FORGOTTEN = [*READS, *(use for use, _ in uses.FORGOTTEN if use is not uses.sent)]


async def everywhere(
    server: NatsServer, name: str, use: Any, way: str, folder: Path
) -> list[warnings.WarningMessage]:
    """Cancel a use at each of its suspensions, and check that it leaves nothing behind."""
    async with js.connect(server.url) as connection:
        place: Any = Place(connection.jetstream(timeout=60), connection, name)
        place.folder = folder / "copy"
        await place.set()
        begin_collecting()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")

            async def is_clean() -> bool:
                return await left(connection, server) <= MOST_KEPT and await place.consumers() == [
                    "c"
                ]

            # Long uses repeat the same steps, and each check takes a tenth of a second.
            for stop_at in (*range(1, 10), *range(10, MANY, 5)):
                reached, _ = await cancelled_at(use(place), stop_at, way)
                await eventually(is_clean)
                if not reached:
                    break
            else:
                raise AssertionError("the use never ran through")
        await place.remove()
        return found


@WAYS
@pytest.mark.parametrize("use", TIDY)
async def test_a_cancelled_call_leaves_nothing_behind(
    server: NatsServer, name: str, use: Any, way: str, tmp_path: Path
) -> None:
    assert not await everywhere(server, name, use, way, tmp_path)


@WAYS
@pytest.mark.parametrize("use", FORGOTTEN)
async def test_a_cancelled_iteration_leaves_nothing_behind(
    server: NatsServer, name: str, use: Any, way: str, tmp_path: Path
) -> None:
    found = await everywhere(server, name, use, way, tmp_path)
    assert {each.category for each in found} <= {ResourceWarning}
