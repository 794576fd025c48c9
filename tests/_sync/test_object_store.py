# Generated from tests/_async/test_object_store.py by codegen/twin.py. Edit that file instead.
"""Object stores: content and descriptions, links, changes and the stores themselves."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from datetime import UTC, datetime, timedelta

import pytest

import js_sync as js
from twinstream.core.object_store.info import digest_bytes
from twinstream.models import ObjectStoreConfig, Placement, StreamConfig, StreamSource, evolve
from tests._sync.flow import eventually, together

NAMES = ["plain", "a/b c.txt", "umläut", "smile 😀", "?>?>", ">>>???", "a.b.*.>", " ", "x" * 900]
SIZES = [0, 1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 3 * 1024 * 1024 + 7]


def stored(jet, name, **options):
    """Return a store in memory."""
    config = ObjectStoreConfig(bucket=name, storage="memory", **options)
    return jet.create_object_store(config)


def chunk_subjects(store):
    """Return the subjects of chunks that the store holds, with their numbers."""
    found = store.stream.subjects(f"$O.{store.bucket}.C.>")
    return {subject: count for subject, count in found}


def digest_of(data):
    return "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()


# ---- stores


def test_a_store_is_the_stream_that_other_clients_expect(opened, name):
    with opened() as jet:
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
        store = jet.create_object_store(config)
        assert (store.bucket, store.stream.name) == (name, f"OBJ_{name}")
        stream = (jet.get_stream(f"OBJ_{name}")).config
        assert stream.subjects == [f"$O.{name}.C.>", f"$O.{name}.M.>"]
        assert (stream.discard, stream.compression) == ("new", "s2")
        assert (stream.allow_rollup_hdrs, stream.allow_direct) == (True, True)
        assert (stream.deny_delete, stream.deny_purge) == (False, False)
        assert stream.max_msgs_per_subject == -1
        status = store.status()
        assert status.config == config
        assert (status.bucket, status.size, status.is_sealed) == (name, 0, False)
        assert status.mirror_of is None
        # An equal one is fine, another one is refused with the difference.
        jet.create_object_store(config)
        with pytest.raises(js.StreamExists, match="max_bytes"):
            jet.create_object_store(evolve(config, max_bytes=1 << 21))


def test_settings_are_replaced_and_what_a_store_does_not_know_stays(opened, name):
    with opened() as jet:
        stored(jet, name, description="old", metadata={"a": "b"})
        jet.bind_stream(f"OBJ_{name}").change(
            lambda config: evolve(config, max_consumers=-1, duplicate_window=timedelta(seconds=7))
        )
        config = ObjectStoreConfig(bucket=name, storage="memory", max_bytes=12345)
        store = jet.update_object_store(config)
        stream = (store.stream.info()).config
        assert stream.duplicate_window == timedelta(seconds=7)
        assert (stream.max_bytes, stream.description) == (12345, None)
        assert (store.status()).config.metadata is None
        again = evolve(config, description="new", ttl=timedelta(hours=2))
        store = jet.create_or_update_object_store(again)
        assert (store.status()).config == evolve(again, num_replicas=1, compression=False)
        other = ObjectStoreConfig(bucket=f"{name}_2", storage="memory")
        jet.create_or_update_object_store(other)
        jet.create_or_update_object_store(other)
        found = {status.bucket for status in jet.object_stores()}
        assert {name, f"{name}_2"} <= found
        assert found == {bucket for bucket in jet.object_store_names()}
        jet.delete_object_store(name)
        with pytest.raises(js.ObjectStoreNotFound, match=name):
            jet.delete_object_store(name)
        with pytest.raises(js.ObjectStoreNotFound, match=name):
            jet.get_object_store(name)
        with pytest.raises(js.ObjectStoreNotFound, match=name):
            jet.update_object_store(config)


def test_what_is_no_store_is_refused(opened, name):
    with opened() as jet:
        jet.create_stream(StreamConfig(name=f"OBJ_{name}", subjects=[f"{name}.>"]))
        with pytest.raises(js.NotAnObjectStore, match="not an object store"):
            jet.get_object_store(name)
        with pytest.raises(js.NotAnObjectStore):
            jet.update_object_store(ObjectStoreConfig(bucket=name))
        assert name not in {status.bucket for status in jet.object_stores()}
        for bad in ("", "a.b", "a b", "ä", "a\n", "*", None, 7):
            with pytest.raises(js.BadArgument, match="bucket"):
                jet.get_object_store(bad)
        with pytest.raises(js.BadArgument, match="ObjectStoreConfig"):
            jet.create_object_store({"bucket": name})
        with pytest.raises(js.BadArgument, match="letters"):
            jet.create_object_store(ObjectStoreConfig(bucket="a.b"))


def test_a_refused_placement_is_the_error_of_the_server(opened, name):
    with opened() as jet:
        with pytest.raises(js.JetStreamError):
            stored(jet, name, placement=Placement(cluster="nowhere"), num_replicas=3)


# ---- content


@pytest.mark.parametrize("size", SIZES)
def test_content_comes_back_as_it_was(opened, name, size):
    data = os.urandom(size)
    with opened() as jet:
        store = stored(jet, name)
        before = datetime.now(UTC)
        made = store.put("a", data)
        assert (made.size, made.chunks) == (size, -(-size // (128 * 1024)))
        assert made.digest == digest_of(data)
        assert store.get_bytes("a") == data
        info = store.info("a")
        assert abs(info.mtime - before) < timedelta(seconds=60)
        assert info == evolve(made, mtime=info.mtime)
        assert info.revision == (store.stream.info()).state.last_seq
        with store.get("a") as reader:
            pieces = [piece for piece in reader]
        assert b"".join(pieces) == data
        assert all(pieces)


@pytest.mark.parametrize("object_name", NAMES)
def test_any_text_is_a_name(opened, name, object_name):
    with opened() as jet:
        store = stored(jet, name)
        store.put(object_name, b"x")
        assert (store.info(object_name)).name == object_name
        assert [info.name for info in store.list()] == [object_name]
        store.delete(object_name)
        with pytest.raises(js.ObjectDeleted):
            store.info(object_name)


def test_bad_names_and_arguments_are_refused_before_anything_is_sent(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        for bad in ("", None, 7, "\ud800", "x" * 5000):
            with pytest.raises(js.BadArgument, match="object"):
                store.put(bad, b"")
        for source, match in [
            ("text", "encode"),
            (7, "iterable"),
            (io.StringIO("text"), "binary mode"),
            (["text"], "encode"),
            ([7], "must come as bytes, got int"),
            (None, "iterable"),
        ]:
            with pytest.raises(js.BadArgument, match=match):
                store.put("a", source)
        with pytest.raises(js.BadArgument, match="chunk_size"):
            js.ObjectMeta("a", chunk_size=0)
        with pytest.raises(js.BadArgument, match="metadata"):
            js.ObjectMeta("a", metadata={"a": 1})
        with pytest.raises(js.BadArgument, match="header"):
            js.ObjectMeta("a", headers={"a b": "1"})
        with pytest.raises(js.BadArgument, match="SHA-256"):
            store.put("a", b"", digest="MD5=abc")
        with pytest.raises(js.BadArgument, match="window"):
            store.put("a", b"", window=0)
        with pytest.raises(js.BadArgument, match="on_progress"):
            store.put("a", b"", on_progress=7)
        with pytest.raises(js.BadArgument, match="start"):
            store.get("a", start=-1)
        assert (store.stream.info()).state.last_seq == 0


def blocks(count, size):
    for number in range(count):
        yield bytes([number % 256]) * size


def test_sources_of_each_kind(opened, name, tmp_path):
    data = os.urandom(400_000)
    path = tmp_path / "in.bin"
    path.write_bytes(data)
    with opened() as jet:
        store = stored(jet, name)
        with path.open("rb") as file:
            store.put("file", file)
        store.put("view", memoryview(data)[::1])
        store.put("array", bytearray(data))
        store.put("pieces", [data[:1], b"", data[1:200_001], data[200_001:]])
        store.put("generated", blocks(300, 1000))
        store.put_file(path)
        store.put_file(path, "named")
        for each in ("file", "view", "array", "pieces", "in.bin", "named"):
            assert store.get_bytes(each) == data, each
            assert (store.info(each)).chunks == 4
        generated = b"".join([block for block in blocks(300, 1000)])
        assert store.get_bytes("generated") == generated
        # What is read can be stored elsewhere as it comes.
        with store.get("file") as reader:
            store.put("copy", reader)
        assert store.get_bytes("copy") == data
        with pytest.raises(OSError, match="regular"):
            store.put_file(tmp_path)


def test_a_description_holds_what_the_program_says(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        meta = js.ObjectMeta(
            "a",
            description="words",
            headers={"One": "1", "Two": ["2", "3"]},
            metadata={"k": "v"},
            chunk_size=1000,
        )
        made = store.put(meta, b"x" * 2500)
        assert made.chunks == 3
        assert made.options.max_chunk_size == 1000
        info = store.info("a")
        assert info.headers == {"One": ["1"], "Two": ["2", "3"]}
        assert (info.description, info.metadata) == ("words", {"k": "v"})
        assert store.get_bytes("a") == b"x" * 2500
        subject = f"$O.{name}.M.{base64.urlsafe_b64encode(b'a').decode()}"
        message = store.stream.get_last_message(subject)
        assert message.headers["Nats-Rollup"] == "sub"
        written = json.loads(message.data)
        assert "revision" not in written
        assert written["mtime"].endswith("Z")
        assert [subject] == [each for each, _ in store.stream.subjects(f"$O.{name}.M.>")]


def test_chunks_are_as_small_as_the_server_wants(server_factory, name):
    with server_factory(f"max_payload: {64 * 1024}") as server:
        with js.connect(server.url) as connection:
            jet = connection.jetstream()
            store = stored(jet, name)
            data = os.urandom(300_000)
            made = store.put("a", data)
            assert made.options.max_chunk_size < 64 * 1024
            assert store.get_bytes("a") == data
            store.stream.change(lambda config: evolve(config, max_msg_size=4096))
            store = jet.get_object_store(name)
            made = store.put("b", data)
            assert made.options.max_chunk_size < 4096
            assert store.get_bytes("b") == data


def test_progress_rises_to_the_whole(opened, name, tmp_path):
    data = os.urandom(1_000_000)
    sent, received = [], []
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", data, on_progress=sent.append)
        store.get_file("a", tmp_path / "out", on_progress=received.append)
    for reports in (sent, received):
        counts = [report.transferred for report in reports]
        assert counts == sorted(set(counts))
        assert counts[-1] == len(data)
        assert {(report.name, report.size) for report in reports} == {("a", len(data))}


def test_a_wanted_digest_is_compared_before_the_object_is_there(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"right", digest=digest_of(b"right"))
        with pytest.raises(js.DigestMismatch, match="not the one that was given"):
            store.put("a", b"wrong", digest=digest_of(b"right"))
        assert store.get_bytes("a") == b"right"
        assert len(chunk_subjects(store)) == 1


def test_an_object_is_replaced_whole(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        for number in range(5):
            store.put("a", bytes([number]) * 200_000)
        assert store.get_bytes("a") == bytes([4]) * 200_000
        info = store.info("a")
        assert chunk_subjects(store) == {f"$O.{name}.C.{info.nuid}": 2}


def test_a_source_that_fails_leaves_the_old_object_and_no_chunks(opened, name):
    def failing():
        for _ in range(10):
            yield b"x" * 200_000
        raise ZeroDivisionError("the source")

    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"old")
        with pytest.raises(ZeroDivisionError, match="the source"):
            store.put("a", failing())
        assert store.get_bytes("a") == b"old"
        assert len(chunk_subjects(store)) == 1


def test_a_full_store_keeps_the_old_object_and_no_chunks(opened, name):
    with opened() as jet:
        store = stored(jet, name, max_bytes=1_000_000)
        store.put("a", b"old" * 1000)
        with pytest.raises(js.PutFailed, match="maximum bytes") as caught:
            store.put("a", blocks(2000, 1000))
        assert isinstance(caught.value.__cause__, js.StoreRefused)
        assert caught.value.cleaned
        assert store.get_bytes("a") == b"old" * 1000
        assert len(chunk_subjects(store)) == 1


def test_several_clients_put_one_name_at_once(opened, name):
    with opened() as jet:
        store = stored(jet, name)

        def writer(number):
            def work():
                return store.put("a", bytes([number]) * 300_000)

            return work

        made = together(*(writer(number) for number in range(6)))
        last = max(made, key=lambda info: info.revision)
        assert (store.info("a")).nuid == last.nuid
        assert list(chunk_subjects(store)) == [f"$O.{name}.C.{last.nuid}"]
        data = store.get_bytes("a")
        assert data == data[:1] * 300_000


def test_reading_like_a_file(opened, name):
    data = os.urandom(300_000)
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", data)
        with store.get("a") as reader:
            found = b""
            while piece := reader.read(7001):
                assert len(piece) <= 7001
                found += piece
            assert found == data
            assert reader.read() == b""
        with store.get("a") as reader:
            head = reader.read(10)
            assert head + reader.read() == data
        with store.get("a") as reader:
            with pytest.raises(js.BadArgument, match="300000 bytes, at most 10"):
                reader.read_all(10)
        with pytest.raises(js.BadArgument, match="at most"):
            store.get_bytes("a", max_bytes=299_999)
        assert store.get_bytes("a", max_bytes=300_000) == data


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
def test_a_part_of_an_object(opened, name, start, end):
    data = os.urandom(3500)
    with opened() as jet:
        store = stored(jet, name)
        store.put("other", b"x" * 5000)
        store.put(js.ObjectMeta("a", chunk_size=1000), data)
        with store.get("a", start=start, end=end) as reader:
            assert reader.read_all() == data[start:end]


# ---- trouble of content


def test_missing_chunks_are_an_error_at_once(opened, name, tmp_path):
    with opened() as jet:
        store = stored(jet, name)
        store.put(js.ObjectMeta("a", chunk_size=1000), b"x" * 5000)
        seqs = [message.seq for message in store.stream.read(subjects=f"$O.{name}.C.>")]
        store.stream.delete_message(seqs[2])
        with pytest.raises(js.ObjectIncomplete, match="4 of 5 chunks"):
            store.get_bytes("a")
        with pytest.raises(js.ObjectIncomplete):
            with store.get("a", start=10) as reader:
                reader.read()
        with pytest.raises(js.ObjectIncomplete):
            store.get_file("a", tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        store.stream.purge(subject=f"$O.{name}.C.>")
        with pytest.raises(js.ObjectIncomplete, match="0 of 5 chunks"):
            store.get_bytes("a")


def replaced_chunk(jet, store, name):
    """Store an object of three chunks, the last of which is another one than it should be."""
    made = store.put(js.ObjectMeta("a", chunk_size=1000), b"x" * 3000)
    subject = f"$O.{name}.C.{made.nuid}"
    last = store.stream.get_last_message(subject)
    store.stream.delete_message(last.seq)
    jet.publish(subject, b"y" * 1000)
    # Behind the chunk, as its description is stored behind all of them.
    store.update_meta("a", description="again")


def test_wrong_content_is_never_handed_over_whole(opened, name, tmp_path):
    with opened() as jet:
        store = stored(jet, name)
        replaced_chunk(jet, store, name)
        with store.get("a") as reader:
            for _ in range(2):
                with pytest.raises(js.DigestMismatch, match="the content has the digest"):
                    reader.read_all()
        for resume in (False, True):
            target = tmp_path / "out"
            target.write_bytes(b"before")
            with pytest.raises(js.DigestMismatch):
                store.get_file("a", target, resume=resume)
            assert target.read_bytes() == b"before"
            assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_object_that_is_replaced_while_it_is_read(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"old" * 100_000)
        # Nothing was handed over: the new object, whole.
        with store.get("a") as reader:
            store.put("a", b"new" * 100_000)
            assert reader.read_all() == b"new" * 100_000
            assert reader.info.nuid == (store.info("a")).nuid
        with store.get("a") as reader:
            store.delete("a")
            with pytest.raises(js.ObjectChanged):
                reader.read_all()


def test_a_part_that_is_replaced_while_it_is_read_is_an_error(opened, name, tmp_path):
    with opened() as jet:
        store = stored(jet, name)
        # More than the pages that are read ahead.
        store.put("a", os.urandom(40 << 20))
        with store.get("a") as reader:
            first = reader.read(1000)
            assert len(first) == 1000
            store.put("a", b"new")
            with pytest.raises(js.ObjectChanged, match="was replaced"):
                reader.read_all()
        assert store.get_bytes("a") == b"new"


def test_a_file_is_whole_or_not_there(opened, name, tmp_path):
    data = os.urandom(500_000)
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", data)
        target = tmp_path / "out"
        target.write_bytes(b"x" * 900_000)
        info = store.get_file("a", target)
        assert info.name == "a"
        assert target.read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        with pytest.raises(js.ObjectNotFound):
            store.get_file("b", tmp_path / "b")
        with pytest.raises(js.BadArgument, match="s3"):
            store.get_file("a", "s3://bucket/a")
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_continued_where_it_was_broken_off(opened, name, tmp_path):
    data = os.urandom(3_500_000)
    target = tmp_path / "out"

    class Broken(Exception):
        pass

    def stop(report):
        if report.transferred > 2_000_000:
            raise Broken

    with opened() as jet:
        store = stored(jet, name)
        made = store.put("a", data)
        with pytest.raises(Broken):
            store.get_file("a", target, resume=True, on_progress=stop)
        part = tmp_path / f".out.{made.nuid}.part"
        # As a program leaves it that is killed in the middle of a chunk.
        part.write_bytes(data[:1_000_000])
        reports = []
        store.get_file("a", target, resume=True, on_progress=reports.append)
        assert target.read_bytes() == data
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert reports[0].transferred > 900_000
        # A part with all of it needs no further chunk.
        part.write_bytes(data)
        store.get_file("a", target, resume=True)
        assert target.read_bytes() == data
        # A part with other content is not continued twice.
        part.write_bytes(b"x" * 1_000_000)
        with pytest.raises(js.DigestMismatch):
            store.get_file("a", target, resume=True)
        store.get_file("a", target, resume=True)
        assert target.read_bytes() == data


# ---- descriptions


def test_missing_and_deleted_objects(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        for call in (store.info, store.get, store.delete, store.get_bytes):
            with pytest.raises(js.ObjectNotFound, match="has no object 'a'"):
                call("a")
        with pytest.raises(LookupError):
            store.info("a")
        made = store.put("a", b"x" * 200_000)
        gone = store.delete("a")
        assert (gone.deleted, gone.size, gone.chunks, gone.digest) == (True, 0, 0, None)
        assert gone.nuid == made.nuid
        assert chunk_subjects(store) == {}
        with pytest.raises(js.ObjectDeleted, match="was deleted") as caught:
            store.get("a")
        assert caught.value.info.nuid == made.nuid
        assert (store.info("a", deleted=True)).deleted
        assert [info for info in store.list()] == []
        assert [info.name for info in store.list(deleted=True)] == ["a"]
        again = store.delete("a")
        assert again.revision == gone.revision
        store.put("a", b"back")
        assert store.get_bytes("a") == b"back"


def test_texts_of_a_description_are_changed(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        meta = js.ObjectMeta("a", description="d", headers={"H": "1"}, metadata={"k": "v"})
        made = store.put(meta, b"content")
        changed = store.update_meta("a", description="e", metadata=None)
        assert (changed.description, changed.headers, changed.metadata) == ("e", {"H": ["1"]}, None)
        assert changed.revision > made.revision
        info = store.info("a")
        assert info == evolve(changed, mtime=info.mtime)
        assert store.get_bytes("a") == b"content"
        with pytest.raises(js.ObjectNotFound):
            store.update_meta("b", description="e")
        store.delete("a")
        with pytest.raises(js.ObjectDeleted):
            store.update_meta("a", description="e")


def test_an_object_gets_another_name(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"content")
        store.put("live", b"live")
        store.put("dead", b"dead")
        store.delete("dead")
        with pytest.raises(js.ObjectExists, match="'live' already"):
            store.update_meta("a", new_name="live")
        assert (store.update_meta("a", new_name="b", description="d")).name == "b"
        with pytest.raises(js.ObjectNotFound):
            store.info("a", deleted=True)
        store.update_meta("b", new_name="dead")
        assert store.get_bytes("dead") == b"content"
        assert (store.info("dead")).description == "d"
        assert sorted([info.name for info in store.list()]) == ["dead", "live"]
        # The same name is no new one.
        assert (store.update_meta("dead", new_name="dead")).name == "dead"


def test_links_to_objects(opened, name):
    with opened() as jet:
        store, other = stored(jet, name), stored(jet, f"{name}_2")
        target = other.put("target", b"content")
        link = store.add_link("link", target)
        assert link.options.link.bucket == f"{name}_2"
        assert (link.size, link.chunks, link.digest) == (0, 0, None)
        assert store.get_bytes("link") == b"content"
        with store.get("link") as reader:
            assert reader.info.name == "target"
        with pytest.raises(js.LinkError, match="has no content"):
            store.get("link", follow=False)
        # A link is replaced by another, an object by none.
        own = store.put("own", b"own")
        store.add_link(js.ObjectMeta("link", description="d"), own)
        assert store.get_bytes("link") == b"own"
        with pytest.raises(js.ObjectExists):
            store.add_link("own", target)
        store.put("link", b"an object now")
        assert store.get_bytes("link") == b"an object now"
        store.delete("own")
        store.add_link("own", target)
        assert store.get_bytes("own") == b"content"
        store.delete("own")
        with pytest.raises(js.ObjectDeleted):
            store.get_bytes("own")
        assert other.get_bytes("target") == b"content"


def test_links_that_lead_nowhere(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        target = store.put("target", b"content")
        link = store.add_link("link", target)
        with pytest.raises(js.LinkError, match="is a link itself"):
            store.add_link("second", link)
        with pytest.raises(js.LinkError, match="itself"):
            store.add_link("target", target)
        # A circle that other clients make: each leads to the other.
        store.add_link("other", target)
        store.delete("target")
        with pytest.raises(js.LinkError, match="which is not there") as caught:
            store.get_bytes("link")
        assert (caught.value.bucket, caught.value.name) == (name, "target")
        with pytest.raises(js.LinkError, match="deleted"):
            store.add_link("third", target)
        jet.delete_stream(f"OBJ_{name}")
        store = stored(jet, name)
        a, b = store.put("a", b""), store.put("b", b"")
        store.add_link("x", a)
        store.delete("a")
        store.add_link("a", b)
        with pytest.raises(js.LinkError, match=r"'x' of bucket .* is a link to 'a' .* itself"):
            store.get_bytes("x")
        with pytest.raises(js.LinkError, match="cannot lead to"):
            store.add_link("y", evolve(a, bucket=f"{name}_3"))


def test_links_to_stores(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        link = store.add_bucket_link("docs", "DOCS")
        assert (link.options.link.bucket, link.options.link.name) == ("DOCS", None)
        with pytest.raises(js.LinkError, match="whole bucket DOCS") as caught:
            store.get_bytes("docs")
        assert (caught.value.bucket, caught.value.name) == ("DOCS", None)
        with pytest.raises(js.LinkError, match="bucket itself"):
            store.add_bucket_link("me", name)


# ---- watching


def test_a_watch_tells_what_is_there_and_what_changes(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        with store.watch() as watch:
            assert watch.next(10) is None
            assert watch.is_current
            with pytest.raises(js.RequestTimeout):
                watch.next(0.05)
            store.put("a", b"1")
            info = watch.next(10)
            assert (info.name, info.size) == ("a", 1)
            assert info.revision == watch.revision
        store.put("b", b"22")
        store.put("a", b"333")
        store.delete("b")
        with store.watch() as watch:
            found = [watch.next(10) for _ in range(3)]
            assert [(each.name, each.deleted) for each in found[:2]] == [("a", None), ("b", True)]
            assert found[2] is None
            store.delete("a")
            assert (watch.next(10)).deleted
        with pytest.raises(js.IterationEnded):
            watch.next(1)
        assert [each for each in watch] == []
        with store.watch(deletes=False) as watch:
            assert watch.next(10) is None
            store.put("c", b"")
            assert (watch.next(10)).name == "c"
        with store.watch(updates_only=True) as watch:
            store.put("d", b"")
            assert watch.next(10) is None
            assert (watch.next(10)).name == "d"


def test_a_watch_leaves_no_consumer(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"x" * 5000)
        for _ in range(5):
            with store.watch() as watch:
                watch.next(10)
            with store.get("a", start=3) as reader:
                reader.read()
            assert [info.name for info in store.list()] == ["a"]
        assert [each for each in store.stream.consumer_names()] == []


# ---- the whole store


def test_a_sealed_store_can_only_be_read(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        made = store.put("a", b"x")
        assert (store.seal()).is_sealed
        assert (store.status()).is_sealed
        assert store.get_bytes("a") == b"x"
        for call in (
            lambda: store.delete("a"),
            lambda: store.put("b", b""),
            lambda: store.put("b", b"x"),
            lambda: store.update_meta("a", description="d"),
            lambda: store.add_link("l", made),
        ):
            with pytest.raises((js.JetStreamError, js.PutFailed), match="sealed"):
                call()


def test_what_killed_uploads_leave_is_swept(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.put("a", b"x" * 300_000)
        store.put("b", b"y")
        store.delete("b")
        for number in range(3):
            jet.publish(f"$O.{name}.C.orphan", b"%d" % number)
        # It may be of an upload that goes on.
        assert store.sweep() == js.Swept(uploads=0, chunks=0)
        assert store.sweep(older_than=0, dry_run=True) == js.Swept(uploads=1, chunks=3)
        assert store.sweep(older_than=0) == js.Swept(uploads=1, chunks=3)
        assert store.sweep(older_than=0) == js.Swept(uploads=0, chunks=0)
        assert store.get_bytes("a") == b"x" * 300_000
        jet.publish(f"$O.{name}.M.YQ==", b"no JSON")
        with pytest.raises(js.BadObjectInfo, match="'a' at sequence"):
            store.sweep(older_than=0)


def test_a_mirror_is_read_and_not_written(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        data = os.urandom(300_000)
        made = store.put("a", data)
        copy = stored(jet, f"{name}_M", mirror=StreamSource(name=name))
        status = copy.status()
        assert status.mirror_of == name
        assert status.config.mirror.name == f"OBJ_{name}"
        copy = jet.get_object_store(f"{name}_M")

        def caught_up():
            return (copy.stream.info()).state.last_seq >= made.revision

        eventually(caught_up)
        assert copy.get_bytes("a") == data
        info = copy.info("a")
        assert (info.bucket, info.revision) == (f"{name}_M", made.revision)
        assert [each.name for each in copy.list()] == ["a"]
        with copy.watch() as watch:
            assert (watch.next(10)).name == "a"
        for call in (
            lambda: copy.put("b", b""),
            lambda: copy.delete("a"),
            lambda: copy.update_meta("a", description="d"),
            lambda: copy.sweep(),
        ):
            with pytest.raises(js.BadArgument, match="is a mirror of"):
                call()
        assert f"{name}_M" in {each.bucket for each in jet.object_stores()}


def test_a_store_without_direct_gets(opened, name):
    with opened() as jet:
        store = stored(jet, name)
        store.stream.change(lambda config: evolve(config, allow_direct=False))
        store = jet.get_object_store(name)
        data = os.urandom(1_000_000)
        store.put("a", data)
        assert store.get_bytes("a") == data
        with store.get("a", start=500_000) as reader:
            assert reader.read() == data[500_000:]
        assert [info.name for info in store.list()] == ["a"]


def test_a_bound_store_asks_when_it_is_used(opened, name):
    with opened() as jet:
        store = jet.bind_object_store(name)
        with pytest.raises(js.StreamNotFound):
            store.info("a")
        stored(jet, name)
        store.put("a", b"x")
        assert store.get_bytes("a") == b"x"
        assert digest_bytes((store.info("a")).digest) == hashlib.sha256(b"x").digest()
