"""Backups and restores that are cancelled at any of their suspensions."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import js_async as js
import js_async.publish.publisher
from js_async.backup import Backup, backup_stream, read_backup, restore_stream
from tests._async.backup.test_backup import ARCHIVE, CONFIG, STATE
from tests._async.cancelling import WAYS, cancelled_at
from tests._async.flow import eventually
from tests.descriptors import open_files
from tests.hooked import hooked
from twinstream.models import StreamConfig
from twinstream.models.error_codes import RESTORE_FAILED
from twinstream.testing import FakePeer, FakeServer


class Interloper:
    """Cancel a task from another thread, and wait until the loop has processed the cancellation."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        dealt_with = threading.Event()

        def turn(left: int) -> None:
            if left:
                self.loop.call_soon(turn, left - 1)
            else:
                dealt_with.set()

        self.loop.call_soon_threadsafe(self.task.cancel)
        self.loop.call_soon_threadsafe(turn, 20)
        assert dealt_with.wait(30)


class CancellingThread(ThreadPoolExecutor):
    """A thread that cancels the task in one of its calls, after the call has begun."""

    def __init__(self, interloper: Interloper) -> None:
        super().__init__(max_workers=1)
        self.interloper = interloper
        self.left = 0

    def submit(self, work: Any, /, *args: Any, **options: Any) -> Future[Any]:
        self.left -= 1
        if self.left:
            return super().submit(work, *args, **options)

        def disturbed() -> Any:
            self.interloper.cancel()
            return work(*args, **options)

        return super().submit(disturbed)

    async def cancelled_at(self, step: int, work: Coroutine[Any, Any, Any]) -> bool:
        """Run work, wait until the thread is idle, and return whether the work was cancelled."""
        self.left = step
        self.interloper.task = task = asyncio.create_task(work)
        await asyncio.wait([task])
        assert task.cancelled() == (self.left <= 0)
        if not task.cancelled():
            task.result()
        self.left = 0
        await asyncio.to_thread(lambda: None)
        return task.cancelled()


async def copied(jet: js.JetStream, name: str, folder: Path) -> Backup:
    return await backup_stream(jet, name, folder, overwrite=True)


async def test_a_backup_may_be_cancelled_at_each_step_aside(server, tmp_path):
    interloper = Interloper()
    threads = CancellingThread(interloper)
    interloper.loop.set_default_executor(threads)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name="COPIED", subjects=["copied.>"]))
        await jet.publish("copied.1", b"one")
        for step in itertools.count(1):
            cancelled = await threads.cancelled_at(
                step, copied(jet, stream.name, tmp_path / "copy")
            )
            left = {path.name for path in tmp_path.iterdir()}
            assert left <= {"copy"}, f"left behind, cancelled at step {step}: {left}"
            if not cancelled:
                break
        # Servers of 2.11 send the mark of the archive's format ahead of the rest: two writes if
        # they are not here at once.
        early = connection.server_info.version_numbers < (2, 12)
        assert step == 6 or (early and step == 7)
        await jet.delete_stream("COPIED")


async def restored(jet: js.JetStream, folder: Path) -> js.Stream:
    try:
        return await restore_stream(jet, folder)
    except js.JetStreamError as error:
        if error.err_code != RESTORE_FAILED:
            raise
        # The server has found messages of the restore that was cancelled before.
        return await restore_stream(jet, folder)


async def test_a_restore_may_be_cancelled_at_each_step_aside(server, tmp_path):
    interloper = Interloper()
    threads = CancellingThread(interloper)
    interloper.loop.set_default_executor(threads)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name="BACK", subjects=["back.>"]))
        await jet.publish("back.1", b"one")
        await copied(jet, stream.name, tmp_path / "copy")
        await stream.delete()
        for step in itertools.count(1):
            cancelled = await threads.cancelled_at(step, restored(jet, tmp_path / "copy"))
            assert open_files(tmp_path) == [], f"cancelled at step {step}"
            if not cancelled:
                break
            assert [name async for name in jet.stream_names("back.1")] == []
        assert step > 3
        assert (await stream.info()).state.messages == 1
        await stream.delete()


@pytest.mark.since("2.15")
@WAYS
async def test_cancelled_restore_leaves_no_partial_stream_in_a_cluster(cluster, tmp_path, way):
    """Nodes of 2.15 keep the name of a requested restore forever."""
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=60)
        config = StreamConfig(name="HALF", subjects=["half.>"], num_replicas=3)
        stream = await jet.create_stream(config)
        await jet.publish("half.1", os.urandom(50_000))
        await copied(jet, stream.name, tmp_path / "copy")
        await stream.delete()

        async def removed():
            # The node that answers a deletion may be ahead of the node that lists the names.
            return [name async for name in jet.stream_names("half.1")] == []

        # The request is the third step, those behind it send chunks.
        for stop_at in range(1, 6):
            work = restore_stream(jet, tmp_path / "copy", chunk_size=8192)
            reached, was_cancelled = await cancelled_at(work, stop_at, way)
            assert (reached, was_cancelled) == (True, True)
            await eventually(removed)
        restored = await restore_stream(jet, tmp_path / "copy")
        assert (await restored.info()).state.messages == 1
        await restored.delete()


EXISTS = {"error": {"code": 400, "err_code": 10130, "description": "stream name in use"}}


@pytest.mark.parametrize(
    ("answer", "undone", "note"),
    [
        ({"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.x"}, True, ""),
        (EXISTS, False, ""),
        (None, False, "it is unknown whether this was done"),
    ],
    ids=["begun", "refused", "silent"],
)
async def test_cancelled_restore_waits_for_the_servers_response(tmp_path, answer, undone, note):
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))
    loop, reached = asyncio.get_running_loop(), asyncio.Event()

    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.15.1")
        asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S")
        loop.call_soon_threadsafe(reached.set)
        peer.wait_for("cancelled")
        if answer is not None:
            peer.answer(asked, answer)
        if undone:
            # The end of the transfer may come before the server is known to listen.
            for status in ("503", ""):
                end = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
                assert end.payload == b""
                peer.message(end.reply, b"", status=status)
            state = {**STATE, "messages": 0}
            info = {"config": CONFIG, "state": state, "created": "2026-01-01T00:00:00Z"}
            peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"), info)
            peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\.S"), {"success": True})
        peer.until_left()
        # Another's stream of this name is not to be touched.
        assert peer.count(r"^PUB .*DELETE") == undone

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream(timeout=0.5 if answer is None else 20)
            task = asyncio.create_task(restore_stream(jet, tmp_path))
            async with asyncio.timeout(30):
                await reached.wait()
            task.cancel()
            await asyncio.sleep(0)
            server.tell("cancelled")
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert note in "".join(getattr(caught.value, "__notes__", []))
            assert bool(note) == bool(getattr(caught.value, "__notes__", []))


async def test_backup_cancelled_during_rename_is_complete(server, tmp_path):
    interloper = Interloper()
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name="PLACED", subjects=["placed.>"]))
        await copied(jet, stream.name, tmp_path / "copy")
        await jet.publish("placed.1", b"one")
        with hooked("backup: before rename", lambda _: interloper.cancel()):
            interloper.task = asyncio.create_task(copied(jet, stream.name, tmp_path / "copy"))
            with pytest.raises(asyncio.CancelledError):
                await interloper.task
            await asyncio.get_running_loop().shutdown_default_executor()
        assert [path.name for path in tmp_path.iterdir()] == ["copy"]
        assert read_backup(tmp_path / "copy").state.messages == 1
        await jet.delete_stream("PLACED")
