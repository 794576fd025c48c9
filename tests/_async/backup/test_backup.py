"""Backups and restores: equal streams, complete or nothing, and broken connections."""

from __future__ import annotations

import hashlib
import json
import os
import resource

import pytest

import js_async as js
from js_async.backup import backup_stream, read_backup, restore_stream
from js_async.backup.files import BackupWriter
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from tests.hooked import hooked
from tests.huge import huge
from tests.inside import api_of
from tests.soak import rounds, state
from twinstream.disk.exchange import exchange_at_once
from twinstream.disk.safe_files import temporary_stem
from twinstream.errors import InvalidResponse
from twinstream.models import ConsumerConfig, StreamConfig, StreamState, encode
from twinstream.testing import FakePeer, FakeServer, Proxy


async def filled(jet, name, count=3000, size=512, **options):
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **options))
    requests = [
        js.PublishRequest(
            subject=f"{name}.{number % 7}",
            data=noise(number, size),
            headers={"N": str(number)},
        )
        for number in range(count)
    ]
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


def noise(number, size):
    """Return bytes that cannot be compressed, so that their archive has a certain size."""
    parts = (hashlib.sha512(b"%d %d" % (number, at)).digest() for at in range(0, size, 64))
    return b"".join(parts)


async def content(stream):
    return [message async for message in stream.read()]


async def test_stream_is_restored_unchanged(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name)
        for seq in (1, 17, 3000):
            await stream.delete_message(seq)
        worker = await stream.create_consumer(ConsumerConfig(durable_name="worker"))
        for message in await worker.fetch(10, timeout=10):
            await message.double_ack()
        before, info = await content(stream), await stream.info()
        reports = []
        backup = await backup_stream(
            jet, stream.name, tmp_path / "copy", chunk_size=20_000, on_progress=reports.append
        )
        assert (backup.stream_name, backup.path) == (name, tmp_path / "copy")
        assert backup == read_backup(tmp_path / "copy")
        assert backup.state.messages == 2997
        assert reports[-1].transferred == backup.size
        assert reports[-1].expected == backup.state.bytes
        assert reports[-1].unpacked == pytest.approx(backup.state.bytes, rel=0.1)
        assert len({report.transferred for report in reports}) == len(reports)
        await jet.delete_stream(name)

        reports.clear()
        restored = await restore_stream(jet, tmp_path / "copy", on_progress=reports.append)
        assert (restored.name, restored.cached_info.config) == (name, info.config)
        assert reports[-1].transferred == reports[-1].size == backup.size
        again = await restored.info()
        assert again.state.last_seq == 3000
        assert again.state.messages == 2997
        assert await content(restored) == before
        worker = await restored.get_consumer("worker")
        assert (await worker.info()).ack_floor.stream_seq == 11
        [message] = await worker.fetch(1, timeout=60)
        assert message.metadata.stream_seq == 12


@pytest.mark.parametrize("length", [161, 230, 255])
async def test_a_backup_may_have_the_longest_name(opened, name, tmp_path, length):
    folder = tmp_path / ("n" * length)
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        await backup_stream(jet, stream.name, folder)
        left = tmp_path / f"{temporary_stem(folder)}.part-12345678"
        left.mkdir()
        (left / "stream.tar.s2").touch()
        await backup_stream(jet, stream.name, folder, overwrite=True)
        assert [path.name for path in tmp_path.iterdir()] == [folder.name]
        await stream.delete()
        restored = await restore_stream(jet, folder)
        assert len(await content(restored)) == 10


async def test_the_folder_is_the_one_of_the_nats_command(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 100)
        backup = await backup_stream(
            jet, stream.name, tmp_path / "copy", consumers=False, check=True
        )
        files = sorted(path.name for path in (tmp_path / "copy").iterdir())
        assert files == ["SHA256SUMS", "backup.json", "stream.tar.s2"]
        archive = (tmp_path / "copy" / "stream.tar.s2").read_bytes()
        assert archive.startswith(b"\xff\x06\x00\x00S2sTwO")
        assert hashlib.sha256(archive).hexdigest() == backup.sha256
        members = json.loads((tmp_path / "copy" / "backup.json").read_text())
        assert members.keys() == {"config", "state"}
        assert members["config"]["name"] == name
        # The nats command writes no checksums; its backups are as good.
        (tmp_path / "copy" / "SHA256SUMS").unlink()
        assert read_backup(tmp_path / "copy").sha256 is None
        await jet.delete_stream(name)
        restored = await restore_stream(jet, tmp_path / "copy")
        assert (await restored.info()).state.messages == 100


async def test_an_empty_stream_and_other_settings(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        backup = await backup_stream(jet, stream.name, tmp_path / "copy")
        assert backup.state.messages == 0
        await jet.delete_stream(name)
        config = StreamConfig(name=name, subjects=[f"{name}.*"], description="once more")
        restored = await restore_stream(jet, tmp_path / "copy", config=config)
        assert restored.cached_info.config.description == "once more"
        assert restored.cached_info.config.subjects == [f"{name}.*"]


async def test_another_file_system_is_refused(opened, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        for path in ("s3://bucket/x", "hdfs:///x"):
            with pytest.raises(js.BadArgument, match="is not supported, only folders of the local"):
                await backup_stream(jet, stream.name, path)
            with pytest.raises(js.BadArgument, match="is not supported, only folders of the local"):
                await restore_stream(jet, path)
        assert list(tmp_path.iterdir()) == []
        await backup_stream(jet, stream.name, f"file://{tmp_path}/copy")
        assert read_backup(tmp_path / "copy").config.name == name


async def test_nothing_is_overwritten_unawares(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        with pytest.raises(js.BadArgument, match="not empty"):
            await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.publish(f"{name}.x")
        backup = await backup_stream(jet, stream.name, tmp_path / "copy", overwrite=True)
        assert backup.state.messages == 11
        (tmp_path / "copy" / "mine.txt").write_text("precious")
        with pytest.raises(js.BadArgument, match=r"mine\.txt"):
            await backup_stream(jet, stream.name, tmp_path / "copy", overwrite=True)
        with pytest.raises(js.BadArgument, match="is a file"):
            await backup_stream(jet, stream.name, tmp_path / "copy" / "mine.txt")
        for wrong in ({"chunk_size": 10}, {"window_size": 10}, {"idle_timeout": -1}):
            with pytest.raises(js.BadArgument):
                await backup_stream(jet, stream.name, tmp_path / "other", **wrong)
        with pytest.raises(js.StreamExists):
            await restore_stream(jet, tmp_path / "copy")
        await jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound):
            await backup_stream(jet, stream.name, tmp_path / "other")
        assert [path.name for path in tmp_path.iterdir()] == ["copy"]


async def test_only_the_owner_can_read_a_backup(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "copy").iterdir()}
        assert modes == dict.fromkeys(["SHA256SUMS", "backup.json", "stream.tar.s2"], 0o600)
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("spoiled", ["SHA256SUMS", "backup.json", "stream.tar.s2"])
@pytest.mark.parametrize("kind", ["fifo", "device"])
async def test_a_backup_that_would_block_is_refused(opened, name, tmp_path, spoiled, kind):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        (tmp_path / "copy" / spoiled).unlink()
        if kind == "fifo":
            os.mkfifo(tmp_path / "copy" / spoiled)
        else:
            (tmp_path / "copy" / spoiled).symlink_to("/dev/zero")
        with pytest.raises(js.BadArgument, match=f"{spoiled} is not a regular file"):
            read_backup(tmp_path / "copy")
        with pytest.raises(js.BadArgument, match=f"{spoiled} is not a regular file"):
            await restore_stream(jet, tmp_path / "copy")


@pytest.mark.parametrize("sizes", [[200_000], [3_000], [1_200, 200_000]])
async def test_what_the_disk_does_not_take_is_named_and_leaves_nothing(tmp_path, sizes):
    writer = BackupWriter(tmp_path / "copy", overwrite=False)
    writer.open()

    def write():
        writer.write([bytes(size) for size in sizes])
        writer.finish({})

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))  # as a full disk does
    try:
        with pytest.raises(OSError, match=r"copy/stream\.tar\.s2"):
            write()
        writer.discard()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


async def test_backup_and_created_folders_are_durable(opened, name, tmp_path, monkeypatch):
    synced = set()
    own = os.fsync

    def fsync(handle):
        synced.add(os.fstat(handle).st_ino)
        own(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        target = tmp_path / "new" / "deeper" / "copy"
        await backup_stream(jet, stream.name, target)
    paths = [tmp_path, target.parent.parent, target.parent, target, *target.iterdir()]
    assert [each for each in paths if each.stat().st_ino not in synced] == []


async def test_of_two_backups_into_one_folder_the_first_stays(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        other = await filled(jet, f"{name}-other", 10)
        inner = []

        def meanwhile(_):
            # Before the outer one has moved its folder to its place.
            if not inner:
                writer = BackupWriter(tmp_path / "copy", overwrite=False)
                writer.open()
                writer.write([b"of another one"])
                writer.finish({})
                inner.append(writer)

        with pytest.raises(js.BadArgument, match="not empty"):
            await backup_stream(jet, stream.name, tmp_path / "copy", on_progress=meanwhile)
        assert (tmp_path / "copy" / "stream.tar.s2").read_bytes() == b"of another one"
        assert [each.name for each in tmp_path.iterdir()] == ["copy"]
        await backup_stream(jet, other.name, tmp_path / "copy", overwrite=True)
        assert read_backup(tmp_path / "copy").stream_name == other.name


def written(target, members, exchange=exchange_at_once):
    writer = BackupWriter(target, overwrite=True, exchange=exchange)
    writer.open()
    writer.write([b"archive"])
    writer.finish(members)


def killed_in(point, target, members):
    """Write a backup in a process that is killed at a point."""
    process = os.fork()
    if not process:
        try:
            with point:
                written(target, members)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9


def members_of(name):
    state = StreamState(messages=0, bytes=0, first_seq=1, last_seq=0, consumer_count=0)
    return {"config": encode(StreamConfig(name=name)), "state": encode(state)}


async def test_a_backup_that_is_killed_leaves_the_former_one_or_the_new_one(tmp_path):
    target = tmp_path / "copy"
    written(target, members_of("former"))
    before, behind = (
        hooked("backup: before rename", lambda _: os._exit(9)),
        hooked("backup: renamed", lambda _: os._exit(9)),
    )
    for point, kept in ((before, "former"), (behind, "new")):
        killed_in(point, target, members_of("new"))
        assert read_backup(target).stream_name == kept
        assert len(list(tmp_path.iterdir())) == 2
        # The next backup removes what a killed one has left, and nothing of others.
        (tmp_path / ".copy.part-notes.txt").touch()
        (tmp_path / ".copy.part-12345678").mkdir()
        (tmp_path / ".copy.part-12345678" / "mine").touch()
        written(target, members_of("former"))
        assert read_backup(target).stream_name == "former"
        assert {each.name for each in tmp_path.iterdir()} == {
            "copy",
            ".copy.part-notes.txt",
            ".copy.part-12345678",
        }
        for each in (".copy.part-notes.txt", ".copy.part-12345678/mine"):
            (tmp_path / each).unlink()
        (tmp_path / ".copy.part-12345678").rmdir()


async def test_backups_that_could_not_be_exchanged_are_named(tmp_path):
    target = tmp_path / "copy"
    written(target, members_of("former"))
    written(target, members_of("second"), exchange=lambda new, former: False)
    assert [each.name for each in tmp_path.iterdir()] == ["copy"]
    assert read_backup(target).stream_name == "second"
    # As a process that is killed between the two renames leaves them.
    killed_in(hooked("backup: before rename", lambda _: os._exit(9)), target, members_of("new"))
    (new,) = (each for each in tmp_path.iterdir() if each != target)
    former = new.with_name(f"{new.name}-former")
    target.rename(former)
    with pytest.raises(js.BadArgument, match=f"has left {new} and {former}: rename one"):
        read_backup(target)
    former.rename(target)
    assert read_backup(target).stream_name == "second"


async def test_a_backup_that_is_being_written_is_not_removed(tmp_path):
    writer = BackupWriter(tmp_path / "copy", overwrite=True)
    writer.open()
    written(tmp_path / "copy", members_of("first"))
    writer.write([b"archive"])
    writer.finish(members_of("second"))
    assert read_backup(tmp_path / "copy").stream_name == "second"
    assert [each.name for each in tmp_path.iterdir()] == ["copy"]


async def test_a_link_to_a_backup_stays_a_link(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        link = tmp_path / "newest"
        link.symlink_to(tmp_path / "copy")
        for count in (10, 11):
            backup = await backup_stream(jet, stream.name, link, overwrite=True)
            assert (link.is_symlink(), backup.path, backup.state.messages) == (True, link, count)
            await jet.publish(f"{name}.more")
        assert read_backup(tmp_path / "copy").state.messages == 11
        assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "newest"]


async def test_a_damaged_backup_is_refused_before_anything_is_sent(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 1000)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        archive = tmp_path / "copy" / "stream.tar.s2"
        whole = archive.read_bytes()
        middle = len(whole) // 2
        damages = [
            (whole[:-1], "cut short"),
            (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], "damaged"),
            (b"not an archive", "does not begin"),
        ]
        for data, said in damages:
            archive.write_bytes(data)
            with pytest.raises(js.BadArgument, match=said):
                await restore_stream(jet, tmp_path / "copy")
        archive.write_bytes(whole)
        other = StreamConfig(name="OTHER", subjects=["other"])
        with pytest.raises(js.BadArgument, match="own name"):
            await restore_stream(jet, tmp_path / "copy", config=other)
        with pytest.raises(js.BadArgument, match="chunk_size"):
            await restore_stream(jet, tmp_path / "copy", chunk_size=5)
        meta = tmp_path / "copy" / "backup.json"
        deep = '{"config":' + "[" * 100_000
        for text in ("{}", "[]", "nonsense", '{"config": {}, "state": {}}', deep):
            meta.write_text(text)
            with pytest.raises(js.BadArgument):
                await restore_stream(jet, tmp_path / "copy")
        with pytest.raises(js.BadArgument, match="no backup"):
            await restore_stream(jet, tmp_path)
        with pytest.raises(js.StreamNotFound):
            await jet.get_stream(name)


async def test_a_broken_link_leaves_nothing_half_done(server, name, tmp_path):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            jet = connection.jetstream()
            stream = await filled(jet, name, 20_000)

            def cut(progress):
                if progress.transferred > 1_000_000 and not cuts:
                    cuts.append(progress)
                    proxy.cut()

            cuts = []
            with pytest.raises(js.ConnectionLost, match="nothing was kept"):
                await backup_stream(
                    jet, stream.name, tmp_path / "copy", chunk_size=20_000, on_progress=cut
                )
            assert list(tmp_path.iterdir()) == []

            async def again():
                try:
                    return await backup_stream(jet, stream.name, tmp_path / "copy")
                except js.JetStreamError as error:
                    # A server before 2.15 takes some seconds to give the broken one up.
                    if "in progress" not in error.description:
                        raise
                    return None

            backup = await eventually(again, patience=30.0)
            before = await content(stream)
            await jet.delete_stream(name)
            cuts.clear()
            proxy.delay = 0.5  # When the link is cut, responses to some chunks are still under way.
            with pytest.raises(js.ConnectionLost, match="restore again"):
                await restore_stream(jet, tmp_path / "copy", chunk_size=20_000, on_progress=cut)
            proxy.delay = 0.0
            with pytest.raises(js.StreamNotFound):
                await jet.get_stream(name)
            restored = await restore_stream(jet, tmp_path / "copy")
            assert await content(restored) == before
            assert restored.cached_info.state.messages == backup.state.messages


async def test_streams_are_copied_side_by_side_while_others_publish(opened, name, tmp_path):
    async with opened() as jet:
        streams = [await filled(jet, f"{name}{letter}", 2000) for letter in "abc"]

        async def write():
            for _ in range(300):
                await jet.publish(f"{name}a.x", b"y" * 100)

        works = [
            lambda stream=stream: backup_stream(jet, stream.name, tmp_path / stream.name)
            for stream in streams
        ]
        backups = (await together(*works, write))[:3]
        for stream, backup in zip(streams, backups, strict=True):
            assert backup.state.messages >= 2000
            before = await content(stream)
            await jet.delete_stream(stream.name)
            found = await content(await restore_stream(jet, backup.path))
            # The server tells how many there are first, and takes what is there then.
            assert len(found) >= backup.state.messages
            assert found == before[: len(found)]


@pytest.mark.since("2.15")
async def test_a_stream_in_memory(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 1000, storage="memory")
        before = await content(stream)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        assert await content(await restore_stream(jet, tmp_path / "copy")) == before


# ---- what no server does on demand

CONFIG = {"name": "S", "subjects": ["s"], "retention": "limits", "storage": "file"}
STATE = {"messages": 1, "bytes": 40, "first_seq": 1, "last_seq": 1, "consumer_count": 0}
ARCHIVE = b"\xff\x06\x00\x00S2sTwO" + b"\x01\x09\x00\x00" + b"crc4" + b"hello"


def refusal(code: int, text: str) -> dict[str, object]:
    return {"error": {"code": 500, "err_code": code, "description": text}}


NOT_FOUND = refusal(10059, "stream not found")


def begin(peer):
    peer.handshake()
    asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.SNAPSHOT\.S")
    inbox = json.loads(asked.payload)["deliver_subject"]
    peer.answer(asked, {"config": CONFIG, "state": STATE})
    return inbox


@pytest.mark.parametrize(
    ("replies", "end", "error", "said"),
    [
        (["1.10.1", "1.9.2"], None, InvalidResponse, "chunk 2 is missing"),
        (["1.10.1", "1.9.3"], None, InvalidResponse, "chunk 2 is missing"),
        (["1.10.1", "1.13.2"], "408 No Flow Response", js.JetStreamError, "No Flow Response"),
        (["1.10.1", "1.13.2"], "500 disk is gone", js.JetStreamError, "disk is gone"),
        (["1.10.1"], "204", None, ""),
        (["1.10.1", ""], "204", None, ""),
        (["1.10.1", "1.13.2"], "", None, ""),
    ],
)
async def test_holes_and_bad_ends_of_a_snapshot(replies, end, error, said, tmp_path):
    def script(peer: FakePeer) -> None:
        inbox = begin(peer)
        pieces = [ARCHIVE[:10], ARCHIVE[10:]]
        for number, (piece, reply) in enumerate(zip(pieces, replies, strict=False)):
            reply = f"$JS.SNAPSHOT.ACK.S.{reply}" if reply else ""
            peer.message(inbox, piece, reply=reply)
            if reply and (error is not InvalidResponse or number == 0):
                peer.expect(rf"^PUB {reply.replace('$', '[$]')}")
        if end is not None:
            peer.message(inbox, b"", status=end)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        if error is None:
            backup = await backup_stream(jet, "S", tmp_path / "copy")
            assert backup.size == (len(ARCHIVE) if len(replies) == 2 else 10)
        else:
            with pytest.raises(error, match=said):
                await backup_stream(jet, "S", tmp_path / "copy")
            assert list(tmp_path.iterdir()) == []


async def test_an_archive_that_is_cut_short_is_no_backup(tmp_path):
    def script(peer: FakePeer) -> None:
        inbox = begin(peer)
        peer.message(inbox, ARCHIVE[:-1])
        peer.message(inbox, b"", status="204")

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(InvalidResponse, match="incomplete"):
            await backup_stream(jet, "S", tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []


async def test_silence_during_a_backup_is_reported(tmp_path):
    def script(peer: FakePeer) -> None:
        inbox = begin(peer)
        peer.message(inbox, ARCHIVE[:10])
        peer.reach("silent")
        peer.wait_for("over")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            with pytest.raises(js.RequestTimeout, match="10 bytes"):
                await backup_stream(jet, "S", tmp_path / "copy", idle_timeout=0.3)
            assert list(tmp_path.iterdir()) == []
            server.tell("over")


@pytest.mark.parametrize("busy", [None, {"code": 503, "err_code": 10008, "description": "busy"}])
async def test_a_refusal_in_the_middle_of_a_restore(tmp_path, busy):
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))
    error = {"code": 500, "err_code": 10062, "description": "restore failed: no space left"}

    def script(peer: FakePeer) -> None:
        peer.handshake()
        asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S")
        assert json.loads(asked.payload) == {"config": CONFIG, "state": STATE}
        peer.answer(asked, {"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.x"})
        chunk = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
        assert chunk.payload == ARCHIVE
        peer.message(chunk.reply, json.dumps({"error": error}).encode())
        end = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
        assert end.payload == b""
        peer.message(end.reply, b"", status="503")
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"), NOT_FOUND)
        asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\.S")
        peer.answer(asked, {"error": busy} if busy else {"success": True})

    async with scripted(script) as connection:
        with pytest.raises(js.JetStreamError, match="no space left") as caught:
            await restore_stream(connection.jetstream(), tmp_path)
        notes = getattr(caught.value, "__notes__", [])
        assert ["delete it" in note for note in notes] == ([True] if busy else [])


def saved(folder, last_ts=None):
    state = STATE if last_ts is None else STATE | {"last_ts": last_ts}
    (folder / "stream.tar.s2").write_bytes(ARCHIVE)
    (folder / "backup.json").write_text(json.dumps({"config": CONFIG, "state": state}))


def take_chunks(peer, end):
    """Let a restore send everything, and respond to the end with a status, or with an object."""
    peer.answer(
        peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S"),
        {"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.x"},
    )
    peer.message(peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x").reply, b"")
    asked = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
    assert asked.payload == b""
    if isinstance(end, str):
        peer.message(asked.reply, b"", status=end)
    else:
        peer.answer(asked, end)


def no_longer_listen(peer):
    peer.message(peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x").reply, b"", status="503")


DAMAGED = refusal(10062, "restore failed: damaged")


@pytest.mark.parametrize(
    ("end", "error", "said"),
    [
        ("503", js.NoResponders, "the server was lost .* partial stream is removed; restore again"),
        (DAMAGED, js.JetStreamError, "damaged"),
    ],
)
async def test_restore_that_fails_at_its_end_leaves_nothing(tmp_path, end, error, said):
    saved(tmp_path)

    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.15.1")
        take_chunks(peer, end)
        no_longer_listen(peer)
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"), NOT_FOUND)
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\.S"), {"success": True})

    async with scripted(script) as connection:
        with pytest.raises(error, match=said) as caught:
            await restore_stream(connection.jetstream(), tmp_path)
        assert getattr(caught.value, "__notes__", []) == []


async def test_a_restore_that_finds_messages_of_another_says_what_to_do(tmp_path):
    saved(tmp_path)
    found = "restore failed: failed to store message sequence 1: expected sequence does not match"

    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.15.1")
        take_chunks(peer, refusal(10062, found))
        no_longer_listen(peer)
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"), NOT_FOUND)
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\.S"), {"success": True})

    async with scripted(script) as connection:
        with pytest.raises(js.JetStreamError, match="sequence 1") as caught:
            await restore_stream(connection.jetstream(), tmp_path)
        (note,) = caught.value.__notes__
        assert note.endswith("restore again")


async def test_restore_says_if_the_partial_stream_was_not_removed(tmp_path):
    saved(tmp_path)

    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.15.1")
        take_chunks(peer, "503")
        no_longer_listen(peer)
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"), NOT_FOUND)
        peer.answer(
            peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\.S"), refusal(10008, "unavailable")
        )

    async with scripted(script) as connection:
        with pytest.raises(js.NoResponders) as caught:
            await restore_stream(connection.jetstream(), tmp_path)
        assert "removed" not in str(caught.value)
        [note] = caught.value.__notes__
        assert note.startswith("a part of S may be left on the server, delete it")


LATER = {"messages": 2, "last_seq": 2, "last_ts": "2026-01-01T00:00:01Z"}
NONE = {"messages": 0, "last_seq": 0, "last_ts": "0001-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("version", "end", "found"),
    [
        ("2.15.1", DAMAGED, LATER),
        ("2.15.1", "503", LATER),
        ("2.14.6", DAMAGED, LATER),
        ("2.14.6", DAMAGED, NONE),
        ("2.14.6", DAMAGED, {}),
        ("2.14.6", "503", NONE),
        ("2.14.6", DAMAGED, None),
        ("2.15.1", refusal(10130, "stream name already in use, cannot restore"), None),
    ],
)
async def test_failed_restore_deletes_no_stream_of_another_client(tmp_path, version, end, found):
    saved(tmp_path, "2026-01-01T00:00:00Z")
    is_asked = not (isinstance(end, dict) and end["error"]["err_code"] == 10130)

    def script(peer: FakePeer) -> None:
        peer.handshake(version=version)
        take_chunks(peer, end)
        no_longer_listen(peer)
        if is_asked:
            info = {"config": CONFIG, "created": "2026-01-01T00:00:00Z"}
            peer.answer(
                peer.expect(r"^PUB \$JS\.API\.STREAM\.INFO\.S"),
                NOT_FOUND if found is None else {**info, "state": {**STATE, **found}},
            )
        peer.until_left()
        assert peer.count(r"^PUB .*DELETE") == 0

    async with scripted(script) as connection:
        with pytest.raises(js.TwinstreamError) as caught:
            await restore_stream(connection.jetstream(), tmp_path)
        notes = getattr(caught.value, "__notes__", [])
        assert sum("is not deleted" in note for note in notes) == (found is not None)


async def test_failed_restore_keeps_the_stream_that_was_created_meanwhile(opened, name, tmp_path):
    async with opened() as jet:
        stream = await filled(jet, name, 500, 1000)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await stream.delete()

        async def create():
            await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            await jet.publish(f"{name}.precious", b"kept")

        def stop(_):
            raise KeyError

        # The first chunk is too small for a server to create the stream already.
        transport = Disturbed(api_of(jet).transport, "SNAPSHOT.RESTORE", before=create)
        with pytest.raises((KeyError, js.StreamExists)):
            await restore_stream(
                transport.jetstream(), tmp_path / "copy", chunk_size=1024, on_progress=stop
            )
        assert [message.data async for message in jet.bind_stream(name).read()] == [b"kept"]


async def test_restore_without_response_explains_what_may_exist(tmp_path):
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S")
        peer.until_left()

    async with scripted(script) as connection:
        with pytest.raises(js.RequestTimeout) as caught:
            await restore_stream(connection.jetstream(timeout=0.1), tmp_path)
        [note] = caught.value.__notes__
        assert note.startswith("the server may have begun: if S did not exist before, delete")


async def test_the_first_chunk_may_come_before_the_server_is_known_to_listen(tmp_path):
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))

    def script(peer: FakePeer) -> None:
        peer.handshake()
        asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S")
        peer.answer(asked, {"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.x"})
        for status in ("503", "503", ""):
            chunk = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
            assert chunk.payload == ARCHIVE
            peer.message(chunk.reply, b"", status=status)
        end = peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x")
        assert end.payload == b""
        made = {"config": CONFIG, "state": STATE, "created": "2026-01-01T00:00:00Z"}
        peer.answer(end, made)

    async with scripted(script) as connection:
        restored = await restore_stream(connection.jetstream(), tmp_path)
        assert restored.cached_info.state.last_seq == 1


EARLIER_ENDED = refusal(10048, "EOF")
EARLIER_STALLED = refusal(10062, "restore failed: stalled")
NAME_IN_USE = refusal(10130, "stream name already in use, can not restore")


async def test_failure_of_an_earlier_restore_is_not_that_of_the_next(tmp_path):
    """A cluster responds with it to the next request, whose stream it then removes."""
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for late in (EARLIER_ENDED, NAME_IN_USE, EARLIER_STALLED, NAME_IN_USE, None):
            asked = peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S")
            peer.answer(asked, late or {"deliver_subject": "$JS.SNAPSHOT.RESTORE.S.x"})
        peer.message(peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x").reply, b"")
        made = {"config": CONFIG, "state": STATE, "created": "2026-01-01T00:00:00Z"}
        peer.answer(peer.expect(r"^PUB \$JS\.SNAPSHOT\.RESTORE\.S\.x"), made)

    async with scripted(script) as connection:
        restored = await restore_stream(connection.jetstream(), tmp_path)
        assert restored.cached_info.state.last_seq == 1


async def test_restore_of_an_existing_stream_is_refused_at_once(tmp_path):
    (tmp_path / "stream.tar.s2").write_bytes(ARCHIVE)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.RESTORE\.S"), NAME_IN_USE)
        peer.until_left()
        assert peer.count(r"^PUB .*RESTORE") == 1

    async with scripted(script) as connection:
        with pytest.raises(js.StreamExists):
            await restore_stream(connection.jetstream(), tmp_path)


async def test_soak_many_messages_come_back_equal(opened, name, tmp_path):
    count = rounds(5000, 1_000_000)
    async with opened(timeout=60) as jet:
        stream = await filled(jet, name, count, 128, allow_direct=True)
        before = await digest(stream)
        backup = await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        restored = await restore_stream(jet, tmp_path / "copy")
        assert await digest(restored) == before
        assert restored.cached_info.state.messages == backup.state.messages == count
        state(f"{count:,} messages, {backup.size:,} bytes, came back equal")


async def digest(stream):
    """Return a checksum of everything in a stream."""
    found = hashlib.sha256()
    read = stream.read()
    while (page := await read.next_page()) is not None:
        for row in zip(
            *(page.seqs, page.subjects, page.times, page.headers, page.payloads), strict=True
        ):
            found.update(repr(row).encode())
    assert read.report.is_complete
    return found.hexdigest()


async def test_a_huge_description_is_refused_before_it_is_read_whole(tmp_path):
    (tmp_path / "stream.tar.s2").write_bytes(b"")
    huge(tmp_path / "backup.json")
    with pytest.raises(js.BadArgument, match="no backup of a stream: it has more than 64 MiB"):
        read_backup(tmp_path)
    (tmp_path / "backup.json").write_text(json.dumps({"config": CONFIG, "state": STATE}))
    huge(tmp_path / "SHA256SUMS")
    with pytest.raises(js.BadArgument, match="no backup of a stream: it has more than 64 MiB"):
        read_backup(tmp_path)
