"""Object stores: content and descriptions, links, changes and the stores themselves."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import json
import os
import sys
from datetime import UTC, datetime, timedelta

import pytest

import js_async as js
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, together
from tests._async.lossy import Lossy
from tests.inside import api_of, session_of, stream_in
from twinstream.core.object_store.changes import SweepResult
from twinstream.core.object_store.info import digest_bytes
from twinstream.disk.safe_files import temporary_stem
from twinstream.errors import (
    InvalidObjectInfo,
    LinkError,
    NotABucket,
    ObjectDeleted,
    ObjectIncomplete,
    ObjectPutFailed,
)
from twinstream.models import (
    ObjectStoreConfig,
    Placement,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    evolve,
)

NAMES = ["plain", "a/b c.txt", "umläut", "smile 😀", "?>?>", ">>>???", "a.b.*.>", " ", "x" * 900]
SIZES = [0, 1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 3 * 1024 * 1024 + 7]


async def stored(jet, name, **options):
    """Return a store in memory."""
    config = ObjectStoreConfig(bucket=name, storage="memory", **options)
    return await jet.create_object_store(config)


async def chunk_subjects(store):
    """Return the subjects of chunks in the store, with their counts."""
    found = stream_in(store).subjects(f"$O.{store.bucket}.C.>")
    return {subject: count async for subject, count in found}


def digest_of(data):
    return "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()


# ---- stores


async def test_a_store_is_the_stream_that_other_clients_expect(opened, name):
    async with opened() as jet:
        config = ObjectStoreConfig(
            bucket=name,
            description="files",
            ttl=timedelta(hours=1),
            max_bytes=1 << 20,
            storage="file",
            num_replicas=1,
            compression=True,
            metadata={"a": "b"},
        )
        store = await jet.create_object_store(config)
        assert (store.bucket, store.stream_name) == (name, f"OBJ_{name}")
        stream = (await jet.get_stream(f"OBJ_{name}")).cached_info.config
        assert stream.subjects == [f"$O.{name}.C.>", f"$O.{name}.M.>"]
        assert (stream.discard, stream.compression) == ("new", "s2")
        assert (stream.allow_rollup_hdrs, stream.allow_direct) == (True, True)
        assert (stream.deny_delete, stream.deny_purge) == (False, False)
        assert stream.max_msgs_per_subject == -1
        status = await store.status()
        assert status.config == config
        assert (status.bucket, status.size, status.is_sealed) == (name, 0, False)
        assert status.mirror_of is None
        # An equal one is fine, another one is refused with the difference.
        await jet.create_object_store(config)
        with pytest.raises(js.BucketExists, match="update_object_store changes them") as caught:
            await jet.create_object_store(evolve(config, max_bytes=1 << 21))
        assert [each.field for each in caught.value.differences] == ["max_bytes"]


async def test_a_ttl_below_the_duplicate_window_and_above_it_again(opened, name):
    async with opened() as jet:
        await stored(jet, name)
        for ttl in (timedelta(seconds=30), timedelta(hours=1)):
            config = ObjectStoreConfig(bucket=name, storage="memory", ttl=ttl)
            await jet.update_object_store(config)
            store = await jet.create_object_store(config)
            assert (await store.status()).config.ttl == ttl
        with pytest.raises(js.BucketExists, match="ttl: wanted 7200 s, is 3600 s"):
            await jet.create_object_store(evolve(config, ttl=timedelta(hours=2)))


async def test_settings_are_replaced_and_what_a_store_does_not_know_stays(opened, name):
    async with opened() as jet:
        await stored(jet, name, description="old", metadata={"a": "b"})
        await jet.bind_stream(f"OBJ_{name}").change(
            lambda config: evolve(config, max_consumers=-1, duplicate_window=timedelta(seconds=7))
        )
        config = ObjectStoreConfig(bucket=name, storage="memory", max_bytes=12345)
        store = await jet.update_object_store(config)
        stream = (await stream_in(store).info()).config
        assert stream.duplicate_window == timedelta(seconds=7)
        assert (stream.max_bytes, stream.description) == (12345, None)
        assert (await store.status()).config.metadata is None
        again = evolve(config, description="new", ttl=timedelta(hours=2))
        store = await jet.create_or_update_object_store(again)
        assert (await store.status()).config == evolve(again, num_replicas=1, compression=False)
        other = ObjectStoreConfig(bucket=f"{name}_2", storage="memory")
        await jet.create_or_update_object_store(other)
        await jet.create_or_update_object_store(other)
        found = {status.bucket async for status in jet.object_stores()}
        assert {name, f"{name}_2"} <= found
        assert found <= {bucket async for bucket in jet.object_store_names()}
        await jet.delete_object_store(name)
        with pytest.raises(js.BucketNotFound, match=name):
            await jet.delete_object_store(name)
        with pytest.raises(js.BucketNotFound, match=name):
            await jet.get_object_store(name)
        with pytest.raises(js.BucketNotFound, match=name):
            await jet.update_object_store(config)


async def test_a_store_that_is_deleted_during_its_update_is_created(opened, name):
    async with opened() as jet:
        config = ObjectStoreConfig(bucket=name, max_bytes=1 << 20)
        await jet.create_object_store(config)
        transport = Disturbed(
            api_of(jet).transport, "STREAM.UPDATE", before=lambda: jet.delete_object_store(name)
        )
        other = evolve(config, max_bytes=1 << 21)
        store = await transport.jetstream(timeout=20).create_or_update_object_store(other)
        assert store.cached_status.config.max_bytes == 1 << 21


async def test_what_is_no_store_is_refused(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=f"OBJ_{name}", subjects=[f"{name}.>"]))
        with pytest.raises(NotABucket, match="not an object store"):
            await jet.get_object_store(name)
        with pytest.raises(NotABucket):
            await jet.update_object_store(ObjectStoreConfig(bucket=name))
        assert name not in {status.bucket async for status in jet.object_stores()}
        for bad in ("", "a.b", "a b", "ä", "a\n", "*", None, 7):
            with pytest.raises(js.BadArgument, match="bucket"):
                await jet.get_object_store(bad)
        with pytest.raises(js.BadArgument, match="ObjectStoreConfig"):
            await jet.create_object_store({"bucket": name})
        with pytest.raises(js.BadArgument, match="letters"):
            await jet.create_object_store(ObjectStoreConfig(bucket="a.b"))


async def test_a_refused_placement_is_the_error_of_the_server(opened, name):
    async with opened() as jet:
        with pytest.raises(js.JetStreamError):
            await stored(jet, name, placement=Placement(cluster="nowhere"), num_replicas=3)


# ---- content


@pytest.mark.parametrize("size", SIZES)
async def test_content_is_read_as_stored(opened, name, size):
    data = os.urandom(size)
    async with opened() as jet:
        store = await stored(jet, name)
        before = datetime.now(UTC)
        made = await store.put("a", data)
        assert (made.size, made.chunks) == (size, -(-size // (128 * 1024)))
        assert made.digest == digest_of(data)
        assert await store.get_bytes("a") == data
        info = await store.info("a")
        assert abs(info.mtime - before) < timedelta(seconds=60)
        assert info == evolve(made, mtime=info.mtime)
        assert info.revision == (await stream_in(store).info()).state.last_seq
        async with store.get("a") as reader:
            pieces = [piece async for piece in reader]
        assert b"".join(pieces) == data
        assert all(pieces)


@pytest.mark.parametrize("object_name", NAMES)
async def test_any_text_is_a_name(opened, name, object_name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put(object_name, b"x")
        assert (await store.info(object_name)).name == object_name
        assert [info.name async for info in store.list()] == [object_name]
        await store.delete(object_name)
        with pytest.raises(ObjectDeleted):
            await store.info(object_name)


async def test_bad_names_and_arguments_are_refused_before_anything_is_sent(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        for bad in ("", None, 7, "\ud800", "x" * 5000):
            with pytest.raises(js.BadArgument, match="object"):
                await store.put(bad, b"")
        for source, match in [
            ("text", "encode"),
            (7, "iterable"),
            (io.StringIO("text"), "binary mode"),
            (["text"], "encode"),
            ([7], "must come as bytes, got int"),
            (None, "iterable"),
        ]:
            with pytest.raises(js.BadArgument, match=match):
                await store.put("a", source)
        with pytest.raises(js.BadArgument, match="chunk_size"):
            js.ObjectMeta("a", chunk_size=0)
        with pytest.raises(js.BadArgument, match="metadata"):
            js.ObjectMeta("a", metadata={"a": 1})
        with pytest.raises(js.BadArgument, match="header"):
            js.ObjectMeta("a", headers={"a b": "1"})
        with pytest.raises(js.BadArgument, match="SHA-256"):
            await store.put("a", b"", digest="MD5=abc")
        with pytest.raises(js.BadArgument, match="window"):
            await store.put("a", b"", window=0)
        with pytest.raises(js.BadArgument, match="on_progress"):
            await store.put("a", b"", on_progress=7)
        with pytest.raises(js.BadArgument, match="start"):
            store.get("a", start=-1)
        assert (await stream_in(store).info()).state.last_seq == 0


async def blocks(count, size):
    for number in range(count):
        yield bytes([number % 256]) * size


async def test_sources_of_each_kind(opened, name, tmp_path):
    data = os.urandom(400_000)
    path = tmp_path / "in.bin"
    path.write_bytes(data)
    async with opened() as jet:
        store = await stored(jet, name)
        with path.open("rb") as file:
            await store.put("file", file)
        await store.put("view", memoryview(data)[::1])
        await store.put("array", bytearray(data))
        await store.put("pieces", [data[:1], b"", data[1:200_001], data[200_001:]])
        await store.put("generated", blocks(300, 1000))
        await store.put_file(path)
        await store.put_file(path, name="named")
        for each in ("file", "view", "array", "pieces", "in.bin", "named"):
            assert await store.get_bytes(each) == data, each
            assert (await store.info(each)).chunks == 4
        generated = b"".join([block async for block in blocks(300, 1000)])
        assert await store.get_bytes("generated") == generated
        # What is read can be stored elsewhere as it comes.
        async with store.get("file") as reader:
            await store.put("copy", reader)
        assert await store.get_bytes("copy") == data
        with pytest.raises(OSError, match="regular"):
            await store.put_file(tmp_path)


async def test_description_contains_the_given_values(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        meta = js.ObjectMeta(
            "a",
            description="words",
            headers={"One": "1", "Two": ["2", "3"]},
            metadata={"k": "v"},
            chunk_size=1000,
        )
        made = await store.put(meta, b"x" * 2500)
        assert made.chunks == 3
        assert made.options.max_chunk_size == 1000
        info = await store.info("a")
        assert info.headers == {"One": ["1"], "Two": ["2", "3"]}
        assert (info.description, info.metadata) == ("words", {"k": "v"})
        assert await store.get_bytes("a") == b"x" * 2500
        subject = f"$O.{name}.M.{base64.urlsafe_b64encode(b'a').decode()}"
        message = await stream_in(store).get_last_message(subject)
        assert message.headers["Nats-Rollup"] == "sub"
        written = json.loads(message.data)
        assert "revision" not in written
        assert written["mtime"].endswith("Z")
        assert [subject] == [each async for each, _ in stream_in(store).subjects(f"$O.{name}.M.>")]


async def test_chunks_are_as_small_as_the_server_wants(server_factory, name):
    with server_factory(f"max_payload: {64 * 1024}") as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            store = await stored(jet, name)
            data = os.urandom(300_000)
            made = await store.put("a", data)
            assert made.options.max_chunk_size < 64 * 1024
            assert await store.get_bytes("a") == data
            await stream_in(store).change(lambda config: evolve(config, max_msg_size=4096))
            store = await jet.get_object_store(name)
            made = await store.put("b", data)
            assert made.options.max_chunk_size < 4096
            assert await store.get_bytes("b") == data


async def test_progress_rises_to_the_whole(opened, name, tmp_path):
    data = os.urandom(1_000_000)
    sent, received = [], []
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", data, on_progress=sent.append)
        await store.get_file("a", tmp_path / "out", on_progress=received.append)
    for reports in (sent, received):
        counts = [report.transferred for report in reports]
        assert counts == sorted(set(counts))
        assert counts[-1] == len(data)
        assert {(report.name, report.size) for report in reports} == {("a", len(data))}


async def test_a_wanted_digest_is_compared_before_the_object_is_there(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"right", digest=digest_of(b"right"))
        with pytest.raises(js.DigestMismatch, match="not the one that was given"):
            await store.put("a", b"wrong", digest=digest_of(b"right"))
        assert await store.get_bytes("a") == b"right"
        assert len(await chunk_subjects(store)) == 1


async def test_an_object_is_replaced_whole(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        for number in range(5):
            await store.put("a", bytes([number]) * 200_000)
        assert await store.get_bytes("a") == bytes([4]) * 200_000
        info = await store.info("a")
        assert await chunk_subjects(store) == {f"$O.{name}.C.{info.nuid}": 2}


async def test_a_source_that_fails_leaves_the_old_object_and_no_chunks(opened, name):
    async def failing():
        for _ in range(10):
            yield b"x" * 200_000
        raise ZeroDivisionError("the source")

    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"old")
        with pytest.raises(ZeroDivisionError, match="the source"):
            await store.put("a", failing())
        assert await store.get_bytes("a") == b"old"
        assert len(await chunk_subjects(store)) == 1


async def test_a_full_store_keeps_the_old_object_and_no_chunks(opened, name):
    async with opened() as jet:
        store = await stored(jet, name, max_bytes=1_000_000)
        await store.put("a", b"old" * 1000)
        with pytest.raises(ObjectPutFailed, match="maximum bytes") as caught:
            await store.put("a", blocks(2000, 1000))
        assert isinstance(caught.value.__cause__, js.StoreFailed)
        assert caught.value.cleaned
        assert await store.get_bytes("a") == b"old" * 1000
        assert len(await chunk_subjects(store)) == 1


async def test_several_clients_put_one_name_at_once(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)

        def writer(number):
            async def work():
                return await store.put("a", bytes([number]) * 300_000)

            return work

        made = await together(*(writer(number) for number in range(6)))
        last = max(made, key=lambda info: info.revision)
        assert (await store.info("a")).nuid == last.nuid
        assert list(await chunk_subjects(store)) == [f"$O.{name}.C.{last.nuid}"]
        data = await store.get_bytes("a")
        assert data == data[:1] * 300_000


async def test_reading_like_a_file(opened, name):
    data = os.urandom(300_000)
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", data)
        async with store.get("a") as reader:
            found = b""
            while piece := await reader.read(7001):
                assert len(piece) <= 7001
                found += piece
            assert found == data
            assert await reader.read() == b""
        async with store.get("a") as reader:
            head = await reader.read(10)
            assert head + await reader.read() == data
        async with store.get("a") as reader:
            with pytest.raises(js.BadArgument, match="300000 bytes, more than max_bytes=10"):
                await reader.read_all(10)
        with pytest.raises(js.BadArgument, match="more than max_bytes=299999"):
            await store.get_bytes("a", max_bytes=299_999)
        assert await store.get_bytes("a", max_bytes=300_000) == data


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (0, 0),
        (0, 1),
        (5, 5),
        (0, 999),
        (999, 1001),
        (1000, 2000),
        (2999, None),
        (3000, None),
        (1500, 9000),
        (9000, None),
        (0, 3500),
        (9, 3),
    ],
)
async def test_a_part_of_an_object(opened, name, start, end):
    data = os.urandom(3500)
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("other", b"x" * 5000)
        await store.put(js.ObjectMeta("a", chunk_size=1000), data)
        async with store.get("a", start=start, end=end) as reader:
            assert await reader.read_all() == data[start:end]


@pytest.mark.parametrize("way", ["put", "delete"])
async def test_an_object_that_is_replaced_at_the_end_of_a_rename(opened, name, way):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"old")

        async def change():
            await (store.put("a", b"new") if way == "put" else store.delete("a"))

        transport = Disturbed(api_of(jet).transport, "STREAM.PURGE", before=change)
        other = await transport.jetstream().get_object_store(name)
        with pytest.raises(js.ObjectChanged, match="was not renamed"):
            await other.update_meta("a", new_name="b")
        with pytest.raises(js.ObjectNotFound):
            await store.info("b")
        if way == "put":
            assert await store.get_bytes("a") == b"new"


# ---- trouble of content


@pytest.mark.parametrize("stated", ["0", "70", "many", "9" * 309])
async def test_a_publisher_does_not_decide_the_sizes_of_chunks(opened, name, tmp_path, stated):
    async with opened() as jet:
        store = await stored(jet, name)
        data = bytes(range(250)) * 20
        info = await store.put(js.ObjectMeta("a", chunk_size=1000), data)
        subject = f"$O.{name}.C.{info.nuid}"
        await stream_in(store).purge(subject=subject)
        for at in range(0, len(data), 1000):
            headers = {"Nats-Msg-Size": stated}
            await jet.publish(subject, data[at : at + 1000], headers=headers)
        # The chunks of an object precede its description.
        await store.update_meta("a", description="again")
        async with store.get("a", start=1500, end=3500) as reader:
            assert await reader.read() == data[1500:3500]
        (tmp_path / f".out.{info.nuid}.part").write_bytes(data[:1000])
        await store.get_file("a", tmp_path / "out", resume=True)
        assert (tmp_path / "out").read_bytes() == data


async def test_missing_chunks_are_an_error_at_once(opened, name, tmp_path):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put(js.ObjectMeta("a", chunk_size=1000), b"x" * 5000)
        seqs = [message.seq async for message in stream_in(store).read(subjects=f"$O.{name}.C.>")]
        await stream_in(store).delete_message(seqs[2])
        with pytest.raises(ObjectIncomplete, match="4 of 5 chunks"):
            await store.get_bytes("a")
        with pytest.raises(ObjectIncomplete):
            async with store.get("a", start=10) as reader:
                await reader.read()
        with pytest.raises(ObjectIncomplete):
            await store.get_file("a", tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        await stream_in(store).purge(subject=f"$O.{name}.C.>")
        with pytest.raises(ObjectIncomplete, match="0 of 5 chunks"):
            await store.get_bytes("a")


async def replaced_chunk(jet, store, name):
    """Store an object of three chunks, the last of which has the wrong content."""
    made = await store.put(js.ObjectMeta("a", chunk_size=1000), b"x" * 3000)
    subject = f"$O.{name}.C.{made.nuid}"
    last = await stream_in(store).get_last_message(subject)
    await stream_in(store).delete_message(last.seq)
    await jet.publish(subject, b"y" * 1000)
    # Behind the chunk, as its description is stored behind all of them.
    await store.update_meta("a", description="again")


async def test_wrong_content_is_never_handed_over_whole(opened, name, tmp_path):
    async with opened() as jet:
        store = await stored(jet, name)
        await replaced_chunk(jet, store, name)
        async with store.get("a") as reader:
            for _ in range(2):
                with pytest.raises(js.DigestMismatch, match="the content has the digest"):
                    await reader.read_all()
        for resume in (False, True):
            target = tmp_path / "out"
            target.write_bytes(b"before")
            with pytest.raises(js.DigestMismatch):
                await store.get_file("a", target, resume=resume)
            assert target.read_bytes() == b"before"
            assert [path.name for path in tmp_path.iterdir()] == ["out"]


async def test_an_object_that_is_replaced_while_it_is_read(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"old" * 100_000)
        # Nothing was handed over: the new object, whole.
        async with store.get("a") as reader:
            await store.put("a", b"new" * 100_000)
            assert await reader.read_all() == b"new" * 100_000
            assert reader.info.nuid == (await store.info("a")).nuid
        async with store.get("a") as reader:
            await store.delete("a")
            with pytest.raises(js.ObjectChanged):
                await reader.read_all()


async def test_a_part_that_is_replaced_while_it_is_read_is_an_error(opened, name, tmp_path):
    async with opened() as jet:
        store = await stored(jet, name)
        # More than the pages that are read ahead.
        await store.put("a", os.urandom(40 << 20))
        async with store.get("a") as reader:
            first = await reader.read(1000)
            assert len(first) == 1000
            await store.put("a", b"new")
            with pytest.raises(js.ObjectChanged, match="was replaced"):
                await reader.read_all()
        assert await store.get_bytes("a") == b"new"


# The last one has characters of two bytes, and none of them must be cut in two.
LONG_NAMES = ["n" * 161, "n" * 230, "n" * 255, "ä" * 127 + "n", "n" + "ä" * 127]


@pytest.mark.parametrize("file_name", LONG_NAMES, ids=lambda given: str(len(given)))
@pytest.mark.parametrize("resume", [False, True])
async def test_a_file_may_have_the_longest_name(opened, name, tmp_path, file_name, resume):
    data = os.urandom(5_000)
    async with opened() as jet:
        store = await stored(jet, name)
        info = await store.put("a", data)
        left = tmp_path / f"{temporary_stem(tmp_path / file_name)}.{info.nuid}.part"
        left.write_bytes(b"")
        await store.get_file("a", tmp_path / file_name, resume=resume)
        assert (tmp_path / file_name).read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == [file_name]


async def test_a_file_is_whole_or_not_there(opened, name, tmp_path):
    data = os.urandom(500_000)
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", data)
        target = tmp_path / "out"
        target.write_bytes(b"x" * 900_000)
        info = await store.get_file("a", target)
        assert info.name == "a"
        assert target.read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        with pytest.raises(js.ObjectNotFound):
            await store.get_file("b", tmp_path / "b")
        with pytest.raises(js.BadArgument, match="s3"):
            await store.get_file("a", "s3://bucket/a")
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


async def test_only_regular_files_are_replaced(opened, name, tmp_path):
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    folder.mkdir()
    file, link = folder / "file", tmp_path / "link"
    file.write_bytes(b"before")
    link.symlink_to(file)
    dangling, made = tmp_path / "dangling", folder / "made"
    dangling.symlink_to(made)
    before = {path.name for path in tmp_path.iterdir()}
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"after")
        for resume in (False, True):
            with pytest.raises(IsADirectoryError, match="folder"):
                await store.get_file("a", folder, resume=resume)
            with pytest.raises(IsADirectoryError, match="'/'"):
                await store.get_file("a", "/", resume=resume)
            with pytest.raises(OSError, match="fifo is not a regular file"):
                await store.get_file("a", fifo, resume=resume)
        for path in (link, dangling):
            await store.get_file("a", path)
            assert path.is_symlink()
    assert (file.read_bytes(), made.read_bytes()) == (b"after", b"after")
    assert fifo.is_fifo()
    assert {path.name for path in tmp_path.iterdir()} == before


async def test_a_file_is_continued_where_it_was_broken_off(opened, name, tmp_path):
    data = os.urandom(3_500_000)
    target = tmp_path / "out"

    class Broken(Exception):
        pass

    def stop(report):
        if report.transferred > 2_000_000:
            raise Broken

    async with opened() as jet:
        store = await stored(jet, name)
        made = await store.put("a", data)
        with pytest.raises(Broken):
            await store.get_file("a", target, resume=True, on_progress=stop)
        part = tmp_path / f".out.{made.nuid}.part"
        # As a program leaves it that is killed in the middle of a chunk.
        part.write_bytes(data[:1_000_000])
        reports = []
        await store.get_file("a", target, resume=True, on_progress=reports.append)
        assert target.read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert reports[0].transferred > 900_000
        # A part with all of it needs no further chunk.
        part.write_bytes(data)
        await store.get_file("a", target, resume=True)
        assert target.read_bytes() == data
        # If a part has other content, the object is read again from its beginning.
        part.write_bytes(b"x" * 1_000_000)
        target.unlink()
        await store.get_file("a", target, resume=True)
        assert target.read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


async def test_the_folder_is_listed_once_for_a_file(opened, name, tmp_path):
    """Many files in one folder would otherwise take quadratic time."""
    listed = []

    def count(event, args):
        # An audit hook cannot be removed, so it counts only for this folder.
        if event in ("os.listdir", "os.scandir") and str(args[0]) == str(tmp_path):
            listed.append(event)

    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"x")
        sys.addaudithook(count)
        await store.get_file("a", tmp_path / "out")
    assert len(listed) == 1


async def test_parts_of_killed_transfers_are_removed_by_the_next(opened, name, tmp_path):
    data, target = os.urandom(300_000), tmp_path / "out"
    own = tmp_path / ".out.short.part"
    others = tmp_path / f".other.once-{'A' * 22}.part"
    for path in (own, others):
        path.write_bytes(b"x")
    kept = {own.name, others.name, "out"}

    def parts():
        return {path.name for path in tmp_path.iterdir()} - kept

    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", data)
        for token in ("once-" + "A" * 22, "B" * 22):
            (tmp_path / f".out.{token}.part").write_bytes(b"x")

        seen = []

        def look(_):
            seen.append(parts())

        await store.get_file("a", target, on_progress=look)
        # What a call with `resume` may continue is kept until the content is complete.
        assert "B" * 22 in str(seen[0])
        assert "A" * 22 not in str(seen[0])
        assert parts() == set()
        # A part that another call is writing is kept, and is not continued by two calls.
        made = await store.info("a")
        part = tmp_path / f".out.{made.nuid}.part"
        part.write_bytes(data[:200_000])
        with open(part, "rb") as writing:
            fcntl.flock(writing, fcntl.LOCK_EX)
            await store.get_file("a", target)
            with pytest.raises(BlockingIOError, match="another call"):
                await store.get_file("a", target, resume=True)
            assert part.read_bytes() == data[:200_000]
        await store.get_file("a", target, resume=True)
        assert target.read_bytes() == data
        assert parts() == set()


async def test_a_nuid_with_slashes_leads_to_no_other_folder(opened, name, tmp_path):
    data = b"x" * 1000
    async with opened() as jet:
        store = await stored(jet, name)
        nuid = "/etc/" + "n" * 300
        await jet.publish(f"$O.{name}.C.{nuid}", data)
        described = {"name": "a", "nuid": nuid, "size": 1000, "chunks": 1}
        members = {**described, "digest": digest_of(data)}
        await jet.publish(f"$O.{name}.M.YQ==", json.dumps(members).encode())
        for resume in (False, True):
            await store.get_file("a", tmp_path / "out", resume=resume)
            assert (tmp_path / "out").read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


# ---- descriptions


async def test_missing_and_deleted_objects(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        for call in (store.info, store.get, store.delete, store.get_bytes):
            with pytest.raises(js.ObjectNotFound, match="has no object 'a'"):
                await call("a")
        with pytest.raises(LookupError):
            await store.info("a")
        made = await store.put("a", b"x" * 200_000)
        gone = await store.delete("a")
        assert (gone.deleted, gone.size, gone.chunks, gone.digest) == (True, 0, 0, None)
        assert gone.nuid == made.nuid
        assert await chunk_subjects(store) == {}
        with pytest.raises(ObjectDeleted, match="was deleted") as caught:
            await store.get("a")
        assert caught.value.info.nuid == made.nuid
        assert (await store.info("a", deleted=True)).deleted
        assert [info async for info in store.list()] == []
        assert [info.name async for info in store.list(deleted=True)] == ["a"]
        again = await store.delete("a")
        assert again.revision == gone.revision
        await store.put("a", b"back")
        assert await store.get_bytes("a") == b"back"


async def test_texts_of_a_description_are_changed(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        meta = js.ObjectMeta("a", description="d", headers={"H": "1"}, metadata={"k": "v"})
        made = await store.put(meta, b"content")
        changed = await store.update_meta("a", description="e", metadata={})
        assert (changed.description, changed.headers, changed.metadata) == ("e", {"H": ["1"]}, None)
        assert changed.revision > made.revision
        info = await store.info("a")
        assert info == evolve(changed, mtime=info.mtime)
        assert await store.get_bytes("a") == b"content"
        with pytest.raises(js.ObjectNotFound):
            await store.update_meta("b", description="e")
        await store.delete("a")
        with pytest.raises(ObjectDeleted):
            await store.update_meta("a", description="e")


async def test_an_object_gets_another_name(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"content")
        await store.put("live", b"live")
        await store.put("dead", b"dead")
        await store.delete("dead")
        with pytest.raises(js.ObjectExists, match="already has an object 'live'"):
            await store.update_meta("a", new_name="live")
        assert (await store.update_meta("a", new_name="b", description="d")).name == "b"
        with pytest.raises(js.ObjectNotFound):
            await store.info("a", deleted=True)
        await store.update_meta("b", new_name="dead")
        assert await store.get_bytes("dead") == b"content"
        assert (await store.info("dead")).description == "d"
        assert sorted([info.name async for info in store.list()]) == ["dead", "live"]
        # The same name is no new one.
        assert (await store.update_meta("dead", new_name="dead")).name == "dead"


async def test_links_to_objects(opened, name):
    async with opened() as jet:
        store, other = await stored(jet, name), await stored(jet, f"{name}_2")
        target = await other.put("target", b"content")
        link = await store.add_link("link", target)
        assert link.options.link.bucket == f"{name}_2"
        assert (link.size, link.chunks, link.digest) == (0, 0, None)
        assert await store.get_bytes("link") == b"content"
        async with store.get("link") as reader:
            assert reader.info.name == "target"
        with pytest.raises(LinkError, match="has no content"):
            await store.get("link", follow=False)
        # A link is replaced by another, an object by none.
        own = await store.put("own", b"own")
        await store.add_link(js.ObjectMeta("link", description="d"), own)
        assert await store.get_bytes("link") == b"own"
        with pytest.raises(js.ObjectExists):
            await store.add_link("own", target)
        await store.put("link", b"an object now")
        assert await store.get_bytes("link") == b"an object now"
        await store.delete("own")
        await store.add_link("own", target)
        assert await store.get_bytes("own") == b"content"
        await store.delete("own")
        with pytest.raises(ObjectDeleted):
            await store.get_bytes("own")
        assert await other.get_bytes("target") == b"content"


async def test_links_that_lead_nowhere(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        target = await store.put("target", b"content")
        link = await store.add_link("link", target)
        with pytest.raises(LinkError, match="is a link itself"):
            await store.add_link("second", link)
        with pytest.raises(LinkError, match="itself"):
            await store.add_link("target", target)
        # A circle that other clients make: each leads to the other.
        await store.add_link("other", target)
        await store.delete("target")
        with pytest.raises(LinkError, match="which does not exist") as caught:
            await store.get_bytes("link")
        assert (caught.value.bucket, caught.value.name) == (name, "target")
        with pytest.raises(LinkError, match="deleted"):
            await store.add_link("third", target)
        await jet.delete_stream(f"OBJ_{name}")
        store = await stored(jet, name)
        a, b = await store.put("a", b""), await store.put("b", b"")
        await store.add_link("x", a)
        await store.delete("a")
        await store.add_link("a", b)
        with pytest.raises(LinkError, match=r"'x' of bucket .* is a link to 'a' .* itself"):
            await store.get_bytes("x")
        with pytest.raises(LinkError, match="cannot lead to"):
            await store.add_link("y", evolve(a, bucket=f"{name}_3"))


async def test_links_to_stores(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        link = await store.add_bucket_link("docs", "DOCS")
        assert (link.options.link.bucket, link.options.link.name) == ("DOCS", None)
        with pytest.raises(LinkError, match="whole bucket DOCS") as caught:
            await store.get_bytes("docs")
        assert (caught.value.bucket, caught.value.name) == ("DOCS", None)
        with pytest.raises(LinkError, match="bucket itself"):
            await store.add_bucket_link("me", name)


# ---- watching


async def test_watch_reports_the_state_and_changes(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        async with store.watch() as watch:
            assert [each async for each in watch.initial()] == []
            assert watch.is_current
            assert await watch.next(timeout=0.05) is None
            await store.put("a", b"1")
            info = await watch.next(timeout=10)
            assert (info.name, info.size) == ("a", 1)
            assert info.revision == watch.revision
        await store.put("b", b"22")
        await store.put("a", b"333")
        await store.delete("b")
        async with store.watch() as watch:
            found = []
            async for each in watch:
                found.append((each.name, each.deleted, watch.is_current))
                if watch.is_current:
                    break
            assert found == [("a", None, False), ("b", True, True)]
            await store.delete("a")
            assert (await watch.next(timeout=10)).deleted
        with pytest.raises(js.IterationEnded):
            await watch.next(timeout=1)
        assert [each async for each in watch] == []
        async with store.watch(deletes=False) as watch:
            assert [each async for each in watch.initial()] == []
            await store.put("c", b"")
            assert (await watch.next(timeout=10)).name == "c"
        async with store.watch(updates_only=True) as watch:
            await store.put("d", b"")
            assert watch.is_current
            assert (await watch.next(timeout=10)).name == "d"


async def test_a_watch_of_updates_sees_those_of_a_store_that_is_created_again(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        for number in range(5):
            await store.put(f"{number}", b"x")
        async with store.watch(updates_only=True) as watch:
            await jet.delete_object_store(name)
            again = await stored(jet, name)
            await again.put("new", b"x")
            # The loss of the consumer is noticed when two heartbeats are missing.
            found = await watch.next(timeout=60)
            assert (found.name, watch.generation) == ("new", 2)


async def test_a_watch_repeats_the_objects_of_a_store_that_is_created_again(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("old", b"x")
        async with store.watch() as watch:
            assert [each.name async for each in watch.initial()] == ["old"]
            await jet.delete_object_store(name)
            again = await stored(jet, name)
            await again.put("new", b"x")
            await again.put("last", b"x")
            found = await watch.next(timeout=60)
            assert (found.name, watch.is_current, watch.generation) == ("new", False, 2)
            assert [each.name async for each in watch.initial()] == ["last"]
            await jet.delete_object_store(name)
            with pytest.raises(js.BucketNotFound, match="create it with create_object_store"):
                await watch.next(timeout=60)


@pytest.mark.parametrize("updates_only", [False, True])
async def test_changes_between_two_calls_are_delivered(opened, name, updates_only):
    async with opened() as jet:
        store = await stored(jet, name)
        async with store.watch(updates_only=updates_only) as watch:
            assert [each async for each in watch.initial()] == []
            sizes = []
            for number in range(1, 4):
                await store.put("a", b"x" * number)
                sizes.append(number)

                async def arrived(count=number):
                    sent = [each.delivered async for each in stream_in(store).consumers()]
                    return any((each.consumer_seq or 0) >= count for each in sent)

                await eventually(arrived)
            assert [(await watch.next(timeout=20)).size for _ in sizes] == sizes


async def test_a_watch_leaves_no_consumer(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"x" * 5000)
        for _ in range(5):
            async with store.watch() as watch:
                await watch.next(timeout=10)
            async with store.get("a", start=3) as reader:
                await reader.read()
            assert [info.name async for info in store.list()] == ["a"]
        assert [each async for each in stream_in(store).consumer_names()] == []


# ---- the whole store


async def test_a_sealed_store_can_only_be_read(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        made = await store.put("a", b"x")
        assert (await store.seal()).is_sealed
        assert (await store.status()).is_sealed
        assert await store.get_bytes("a") == b"x"
        for call in (
            lambda: store.delete("a"),
            lambda: store.put("b", b""),
            lambda: store.put("b", b"x"),
            lambda: store.update_meta("a", description="d"),
            lambda: store.add_link("l", made),
        ):
            with pytest.raises((js.JetStreamError, ObjectPutFailed), match="sealed"):
                await call()


async def test_what_killed_uploads_leave_is_swept(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"x" * 300_000)
        await store.put("b", b"y")
        await store.delete("b")
        for number in range(3):
            await jet.publish(f"$O.{name}.C.orphan", b"%d" % number)
        # It may be of an upload that goes on.
        assert await store.sweep() == SweepResult(uploads=0, chunks=0)
        assert await store.sweep(older_than=0, dry_run=True) == SweepResult(uploads=1, chunks=3)
        assert await store.sweep(older_than=0) == SweepResult(uploads=1, chunks=3)
        assert await store.sweep(older_than=0) == SweepResult(uploads=0, chunks=0)
        assert await store.get_bytes("a") == b"x" * 300_000
        # Metadata that cannot be read keeps the content that it names.
        info = await store.info("a")
        await jet.publish(f"$O.{name}.M.YQ==", b"no JSON of " + info.nuid.encode())
        await jet.publish(f"$O.{name}.C.orphan", b"0")
        assert await store.sweep(older_than=0) == SweepResult(uploads=1, chunks=1, unreadable=1)
        await store.delete("a")
        assert (await store.sweep(older_than=0)).uploads == 1
        assert await chunk_subjects(store) == {}


DAMAGED = {
    "big": b'{"name":"big","nuid":"N","size":%d,"chunks":1}' % 10**309,
    "bigger": b'{"name":"big","nuid":"N","size":1%s,"chunks":1}' % (b"0" * 5000),
    "negative": b'{"name":"n","nuid":"N","size":-1,"chunks":-1}',
    "no JSON": b"\xff",
    "nested": b"[" * 100_000,
    "nuid": b'{"name":"n","nuid":"../N.>","size":1,"chunks":1}',
}


async def test_damaged_metadata_is_listed_and_can_be_deleted(opened, name, caplog):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("good", b"x")
        caplog.clear()
        for each, text in DAMAGED.items():
            token = base64.urlsafe_b64encode(each.encode()).decode()
            await jet.publish(f"$O.{name}.M.{token}", text)
        for token in ("!!!", "x.Z29vZA=="):
            await jet.publish(f"$O.{name}.M.{token}", b'{"name":"good","size":0}')
        listed = {info.name: info.unknown.get("error") async for info in store.list()}
        assert listed.pop("good") is None
        assert set(listed) == {*DAMAGED, "!!!", "x.Z29vZA=="}
        assert all("cannot be read" in error for error in listed.values())
        logged = [each.getMessage() for each in caplog.records if "bucket" in each.msg]
        assert len(logged) == len(listed)
        assert all(text.startswith(f"bucket {name}: object '") for text in logged)
        async with store.watch() as watch:
            seen = [each async for each in watch.initial()]
        assert len(seen) == len(listed) + 1
        assert {info.name for info in seen if info.unknown} == set(listed)
        for each in DAMAGED:
            with pytest.raises(InvalidObjectInfo):
                await store.info(each)
        for each in listed:
            await store.delete(each)
        assert [info.name async for info in store.list()] == ["good"]
        assert await store.get_bytes("good") == b"x"
        with pytest.raises(js.ObjectNotFound):
            await store.delete("!!!")
        with pytest.raises(ObjectDeleted):
            await store.info("big")


@pytest.mark.parametrize("kind", ["put", "delete", "put after a deletion"])
async def test_metadata_of_a_stranger_does_not_remove_a_running_upload(opened, name, kind):
    async with opened() as jet:
        store = await stored(jet, name)
        parts = [os.urandom(1000) for _ in range(3)]
        forged = {"name": "x", "size": 1000, "chunks": 1, "deleted": kind.endswith("deletion")}
        nuid = "N" * 22
        chunks = f"$O.{name}.C.{nuid}"
        await jet.publish(chunks, parts[0])
        token = base64.urlsafe_b64encode(b"x").decode()
        text = json.dumps(forged | {"nuid": nuid, "bucket": name}).encode()
        await jet.publish(f"$O.{name}.M.{token}", text)
        await jet.publish(chunks, parts[1])
        await (store.delete("x") if kind == "delete" else store.put("x", b"new"))
        await jet.publish(chunks, parts[2])
        found = [message.data async for message in stream_in(store).read(subjects=chunks)]
        assert found == parts


async def test_a_mirror_is_read_and_not_written(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        data = os.urandom(300_000)
        made = await store.put("a", data)
        copy = await stored(jet, f"{name}_M", mirror=StreamSource(name=name))
        status = await copy.status()
        assert status.mirror_of == name
        assert status.config.mirror.name == f"OBJ_{name}"
        copy = await jet.get_object_store(f"{name}_M")

        async def caught_up():
            return (await stream_in(copy).info()).state.last_seq >= made.revision

        await eventually(caught_up)
        assert await copy.get_bytes("a") == data
        info = await copy.info("a")
        assert (info.bucket, info.revision) == (f"{name}_M", made.revision)
        assert [each.name async for each in copy.list()] == ["a"]
        async with copy.watch() as watch:
            assert (await watch.next(timeout=10)).name == "a"
        for call in (
            lambda: copy.put("b", b""),
            lambda: copy.delete("a"),
            lambda: copy.update_meta("a", description="d"),
            lambda: copy.sweep(),
        ):
            with pytest.raises(js.BadArgument, match="is a mirror of"):
                await call()
        assert f"{name}_M" in {each.bucket async for each in jet.object_stores()}


async def test_mirrors_and_copies_of_all_kinds_have_the_objects(opened, name):
    def moved(src, dest):
        return [SubjectTransform(src=f"$O.{src}.>", dest=f"$O.{dest}.>")]

    async with opened() as jet:
        store = await stored(jet, name)
        data = os.urandom(300_000)
        await store.put("a", data)
        await stored(jet, f"{name}_M", mirror=StreamSource(name=name))
        await stored(jet, f"{name}_MM", mirror=StreamSource(name=f"{name}_M"))
        changed = moved(name, f"{name}_T")
        await stored(jet, f"{name}_T", mirror=StreamSource(name=name, subject_transforms=changed))
        copied = StreamSource(name=f"OBJ_{name}", subject_transforms=moved(name, f"{name}_C"))
        await jet.create_stream(StreamConfig(name=f"OBJ_{name}_C", sources=[copied]))
        for kind in ("M", "MM", "T", "C"):
            copy = await jet.get_object_store(f"{name}_{kind}")

            async def arrived(copy=copy):
                return [each.name async for each in copy.list()] == ["a"]

            await eventually(arrived)
            assert await copy.get_bytes("a") == data
            with pytest.raises(js.BadArgument, match="can only be read"):
                await copy.put("b", b"")
        of_mirror = StreamSource(
            name=f"OBJ_{name}_M", subject_transforms=moved(f"{name}_M", f"{name}_B")
        )
        subjects = [f"$O.{name}_B.C.>", f"$O.{name}_B.M.>"]
        await jet.create_stream(
            StreamConfig(name=f"OBJ_{name}_B", subjects=subjects, sources=[of_mirror])
        )
        with pytest.raises(NotABucket, match="is a mirror of"):
            await jet.get_object_store(f"{name}_B")


async def test_a_store_without_direct_gets(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await stream_in(store).change(lambda config: evolve(config, allow_direct=False))
        store = await jet.get_object_store(name)
        data = os.urandom(1_000_000)
        await store.put("a", data)
        assert await store.get_bytes("a") == data
        async with store.get("a", start=500_000) as reader:
            assert await reader.read() == data[500_000:]
        assert [info.name async for info in store.list()] == ["a"]


async def test_single_settings_are_changed(opened, name):
    async with opened() as jet:
        store = await stored(jet, name, description="old", metadata={"a": "b"})
        await store.put("a", b"x")
        status = await store.change(lambda config: evolve(config, max_bytes=1 << 20))
        assert (status.config.max_bytes, status.config.description) == (1 << 20, "old")
        assert store.cached_status == status
        assert (await store.status()).config == status.config
        assert (await store.change(lambda config: config)).config == status.config
        with pytest.raises(js.BadArgument, match="ObjectStoreConfig"):
            await store.change(lambda config: None)
        with pytest.raises(js.BadArgument, match="cannot be renamed"):
            await store.change(lambda config: evolve(config, bucket="other"))
        assert jet.bind_object_store(name).cached_status is None
        await jet.delete_object_store(name)
        with pytest.raises(ObjectPutFailed, match=f"bucket {name} does not exist") as caught:
            await store.put("b", b"x")
        assert isinstance(caught.value.__cause__, js.BucketNotFound)
        missing = jet.bind_object_store(f"{name}_no")
        for call in (
            lambda: missing.change(lambda config: config),
            lambda: missing.status(),
            lambda: missing.seal(),
            lambda: missing.put("a", b""),
            lambda: missing.get_bytes("a"),
            lambda: missing.delete("a"),
            lambda: missing.update_meta("a"),
            lambda: missing.add_bucket_link("a", name),
            lambda: missing.sweep(),
            lambda: missing.watch(),
        ):
            with pytest.raises(js.BucketNotFound, match=f"bucket {name}_no does not exist"):
                await call()


async def test_calls_end_at_their_timeout(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"x")

        endless = iter(lambda: b"x" * 100_000, None)
        with pytest.raises(ObjectPutFailed) as caught:
            await store.put("endless", endless, timeout=0.5)
        assert isinstance(caught.value.__cause__, js.RequestTimeout)
        assert caught.value.cleaned
        assert len(await chunk_subjects(store)) == 1
        for call in (store.info, store.delete, store.get_bytes):
            with pytest.raises(js.RequestTimeout):
                await call("a", timeout=0)
        assert await store.get_bytes("a", timeout=60) == b"x"
        await store.delete("a", timeout=60)


async def test_a_bound_store_asks_when_it_is_used(opened, name):
    async with opened() as jet:
        store = jet.bind_object_store(name)
        with pytest.raises(js.BucketNotFound, match="create it with create_object_store"):
            await store.info("a")
        await stored(jet, name)
        await store.put("a", b"x")
        assert await store.get_bytes("a") == b"x"
        assert digest_bytes((await store.info("a")).digest) == hashlib.sha256(b"x").digest()


async def test_a_deleted_object_can_be_opened_as_deleted(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await store.put("a", b"x")
        async with store.get("a", deleted=True) as reader:
            assert await reader.read() == b"x"
        await store.delete("a")
        with pytest.raises(ObjectDeleted):
            await store.get_bytes("a")
        async with store.get("a", deleted=True) as reader:
            assert reader.info.deleted
            assert await reader.read() == b""
        with pytest.raises(js.ObjectNotFound):
            await store.get("b", deleted=True)


async def test_a_digest_in_hex_is_read(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        digest = f"SHA-256={hashlib.sha256(b'x').hexdigest()}"
        info = await store.put("a", b"x", digest=digest)
        stored_info = await stream_in(store).get_message(info.revision)
        text = stored_info.data.replace(info.digest.encode(), digest.upper().encode())
        assert text != stored_info.data
        await jet.publish(stored_info.subject, text, rollup="sub")
        assert await store.get_bytes("a") == b"x"
        wrong = text.replace(digest.upper().encode(), f"SHA-256={'0' * 64}".encode())
        await jet.publish(stored_info.subject, wrong, rollup="sub")
        with pytest.raises(js.DigestMismatch):
            await store.get_bytes("a")


async def test_metadata_that_was_stored_is_not_taken_for_refused(server, name):
    """The response to an earlier attempt was lost, and a former leader refuses the next one."""
    async with js.connect(server.url) as connection:
        lossy = Lossy(session_of(connection))
        store = await stored(lossy.jetstream(), name)
        lossy.losses = ["behind"]
        info = await store.put("a", b"")
        assert info.revision == (await store.info("a")).revision == 1
        lossy.losses = ["behind"]
        assert (await store.update_meta("a", description="d")).revision == 2
        assert (await store.info("a")).description == "d"
