"""Calls of an object store that are cancelled at any of their suspensions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import pytest

import js_async as js
import js_async.publish.publisher
from tests._async.cancelling import WAYS, cancelled_at
from tests._async.flow import eventually
from tests.descriptors import open_files
from twinstream.models import ObjectStoreConfig


@WAYS
@pytest.mark.parametrize("call", ["put", "delete", "rename"])
async def test_cancelled_at_each_point_no_object_loses_its_content(server, way, call) -> None:
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        config = ObjectStoreConfig(bucket=f"CUT{call}{WAYS.args[1].index(way)}", storage="memory")
        store = await jet.create_object_store(config)
        for stop_at in range(1, 100):
            old, new = f"old{stop_at}", f"new{stop_at}"
            await store.put(old, b"old")
            work = {
                "put": lambda name: store.put(name, b"new"),
                "delete": store.delete,
                "rename": lambda name: store.update_meta(name, new_name=f"new{name[3:]}"),
            }[call](old)
            reached, _ = await cancelled_at(work, stop_at, way)
            if call == "rename":

                async def has_one_name(names: frozenset[str] = frozenset({old, new})) -> bool:
                    return len(names & {info.name async for info in store.list()}) == 1

                await eventually(has_one_name)
            await store.put(old, b"new")
            found = {info.name: await store.get_bytes(info.name) async for info in store.list()}
            assert found[old] == b"new"
            assert found.get(new, b"old") == b"old"
            if not reached:
                return
    raise AssertionError("the call never ran through")


@WAYS
@pytest.mark.parametrize("call", ["get", "resume", "put"])
async def test_files_are_closed_when_a_transfer_is_cancelled(server, way, call, tmp_path) -> None:
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        config = ObjectStoreConfig(bucket=f"FD{call}{WAYS.args[1].index(way)}", storage="memory")
        store = await jet.create_object_store(config)
        source, target = tmp_path / "in", tmp_path / "out"
        source.write_bytes(b"x" * 100_000)
        await store.put("a", b"x" * 100_000)
        for stop_at in range(1, 100):
            work = {
                "get": partial(store.get_file, "a", target),
                "resume": partial(store.get_file, "a", target, resume=True),
                "put": partial(store.put_file, source, name="b"),
            }[call]()
            reached, _ = await cancelled_at(work, stop_at, way)
            assert open_files(tmp_path) == []
            parts = {path.name for path in tmp_path.iterdir()} - {"in", "out"}
            assert call == "resume" or parts == set()
            if not reached:
                return
    raise AssertionError("the call never ran through")


async def test_a_cancelled_put_leaves_the_old_object_and_no_chunks(server) -> None:
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.create_object_store(ObjectStoreConfig(bucket="CUT", storage="memory"))
        await store.put("a", b"old")
        sent = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            for number in itertools.count():
                if number == 20:
                    sent.set()
                    await asyncio.Event().wait()
                yield b"x" * 100_000

        task = asyncio.create_task(store.put("a", endless(), window=300_000))
        await sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.get_bytes("a") == b"old"
        subjects = [
            each async for each, _ in jet.bind_stream(store.stream_name).subjects("$O.CUT.C.>")
        ]
        assert len(subjects) == 1
        # A read that is cut short may go on.
        await store.put("b", b"y" * 3_000_000)
        async with store.get("b") as reader:
            found, patience = b"", 0.0005
            while len(found) < 3_000_000:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        found += await reader.read(100_000)
                patience *= 1.2
        assert found == b"y" * 3_000_000
