"""Object stores: names and subjects, settings, descriptions, digests, and chunks."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.object_store.changes import (
    Needed,
    changed_info,
    deleted_info,
    link_info,
    orphans,
)
from twinstream.core.object_store.chunks import (
    Chunker,
    Content,
    ContentRange,
    StoredChunk,
    check_index,
    chunk_size,
    resumed_at,
    sent_number,
)
from twinstream.core.object_store.config import (
    changed_stream_config,
    store_config,
    store_stream_config,
)
from twinstream.core.object_store.info import (
    ObjectMeta,
    digest_bytes,
    digest_text,
    info_bytes,
    is_link,
    listed_info,
    new_info,
    read_info,
)
from twinstream.core.object_store.names import (
    ObjectSubjects,
    bucket_of,
    check_bucket,
    object_name_of,
    stream_of,
)
from twinstream.core.object_store.retry import ObjectRetry
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    DigestMismatch,
    InvalidObjectInfo,
    NotABucket,
    ObjectChanged,
    ObjectIncomplete,
    RequestTimeout,
)
from twinstream.models import (
    ObjectInfo,
    ObjectStoreConfig,
    StreamConfig,
    StreamSource,
    Timestamp,
    evolve,
)
from twinstream.records.headers import Headers

NOW = Timestamp.parse("2026-05-01T10:00:00Z")
SUBJECTS = ObjectSubjects("B")


def message(data: bytes, subject: str = "$O.B.M.YQ==") -> StreamMessage:
    return StreamMessage(
        stream_name="OBJ_B", subject=subject, seq=7, time=NOW, data=data, headers=Headers()
    )


# ---- names


def test_the_stream_of_a_bucket_and_back() -> None:
    assert stream_of("a-B_9") == "OBJ_a-B_9"
    assert bucket_of("OBJ_a-B_9") == "a-B_9"
    for stream in (None, "OBJ_", "OBJ_a.b", "KV_a", "obj_a", "OBJ_a\n"):
        assert bucket_of(stream) is None


@pytest.mark.parametrize("bucket", ["", "a.b", "a b", "ä", "a\n", ">", None, 3, "x" * 201])
def test_bad_names_of_buckets(bucket: object) -> None:
    with pytest.raises(BadArgument, match="bucket"):
        check_bucket(bucket)


@given(st.text(min_size=1, max_size=100).filter(lambda text: text.isprintable()))
def test_names_of_objects_survive_their_subjects(name: str) -> None:
    subject = SUBJECTS.info(name)
    assert object_name_of(subject) == name
    assert not set(subject) & set(" *>")
    assert subject.count(".") == 3
    other = SUBJECTS.other_info(name)
    if other is not None:
        assert object_name_of(other) == name


def test_subjects_of_names_with_different_encodings() -> None:
    assert SUBJECTS.info("a/b ü.txt") == "$O.B.M.YS9iIMO8LnR4dA=="
    assert SUBJECTS.other_info("a/b ü.txt") is None
    assert SUBJECTS.info("?>?>") == "$O.B.M.Pz4_Pg=="
    assert SUBJECTS.other_info("?>?>") == "$O.B.M.Pz4/Pg=="
    assert object_name_of("$O.B.M.no base64") == "no base64"


@pytest.mark.parametrize("nuid", ["", None, ">", "*", "a.b", "a b"])
def test_content_of_other_objects_is_out_of_reach(nuid: str | None) -> None:
    with pytest.raises(BadArgument, match="not a valid NUID"):
        SUBJECTS.chunks(nuid)


# ---- settings


def test_settings_become_those_of_a_stream_and_back() -> None:
    config = ObjectStoreConfig(
        bucket="B",
        description="d",
        ttl=timedelta(hours=1),
        max_bytes=5,
        storage="memory",
        num_replicas=3,
        compression=True,
        metadata={"a": "b"},
    )
    stream = store_stream_config(config)
    assert stream.name == "OBJ_B"
    assert stream.subjects == ["$O.B.C.>", "$O.B.M.>"]
    assert store_config(stream) == config
    answered = evolve(stream, metadata={"a": "b", "_nats.level": "1"})
    assert store_config(answered) == config


def test_an_update_keeps_what_a_store_has_no_setting_for() -> None:
    present = evolve(
        store_stream_config(ObjectStoreConfig(bucket="B", description="old", ttl=timedelta(1))),
        max_msg_size=7,
        metadata={"a": "b", "_nats.level": "1"},
    )
    changed = changed_stream_config(present, ObjectStoreConfig(bucket="B", max_bytes=9))
    assert (changed.max_msg_size, changed.max_bytes, changed.description) == (7, 9, None)
    assert changed.max_age == timedelta(0)
    assert changed.metadata == {"_nats.level": "1"}
    assert changed.num_replicas == 1


def test_mirror_has_no_subjects() -> None:
    config = ObjectStoreConfig(bucket="M", mirror=StreamSource(name="B"))
    stream = store_stream_config(config)
    assert stream.subjects is None
    assert stream.mirror == StreamSource(name="OBJ_B")
    assert (stream.mirror_direct, stream.allow_direct) == (True, True)
    assert store_config(stream).mirror == stream.mirror
    with pytest.raises(BadArgument, match="origin"):
        store_stream_config(ObjectStoreConfig(bucket="M", mirror=StreamSource()))


@pytest.mark.parametrize(
    "stream",
    [
        StreamConfig(name="S", subjects=["$O.S.C.>", "$O.S.M.>"]),
        StreamConfig(name="OBJ_B", subjects=["$O.B.C.>"]),
        StreamConfig(name="OBJ_B"),
        StreamConfig(name="OBJ_B", mirror=StreamSource(name="S")),
    ],
)
def test_other_streams_are_no_stores(stream: StreamConfig) -> None:
    with pytest.raises(NotABucket, match="not an object store"):
        store_config(stream)


# ---- descriptions


def test_a_description_is_written_and_read() -> None:
    meta = ObjectMeta("a", description="d", headers={"H": ["1", "2"]}, metadata={"k": "v"})
    sha = hashlib.sha256(b"x").digest()
    info = new_info(meta, "B", "NUID", chunk_size=10, size=1, chunks=1, sha=sha)
    text = info_bytes(evolve(info, revision=3), datetime(2026, 1, 1, tzinfo=UTC))
    written = json.loads(text)
    assert "revision" not in written
    assert written["mtime"] == "2026-01-01T00:00:00Z"
    assert written["digest"] == digest_text(sha)
    assert written["options"] == {"max_chunk_size": 10}
    assert read_info(message(text), "B") == evolve(info, mtime=NOW, revision=7)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "cannot be read"),
        (b"7", "no JSON object"),
        (b"{}", "name"),
        (b'{"name":"a","size":%d}' % 10**309, "more than 64 bits"),
        (b'{"name":"a","size":%d}' % 2**64, "more than 64 bits"),
        (b'{"name":"a","nuid":"N","chunks":-1}', "negative"),
        (b'{"name":"a","options":{"max_chunk_size":-1}}', "negative"),
        (b'{"name":"a","size":1' + b"0" * 5000 + b"}", "cannot be read"),
        (b'{"name":"a","size":"1"}', "size"),
        (b'{"name":"a","nuid":">"}', "valid NUID"),
        (b'{"name":"a","chunks":1}', "no nuid"),
    ],
)
def test_descriptions_that_cannot_be_read(text: bytes, match: str) -> None:
    with pytest.raises(InvalidObjectInfo, match=match):
        read_info(message(text), "B")
    listed = listed_info(message(text), "B")
    assert (listed.name, listed.revision) == ("a", 7)
    assert match in listed.unknown["error"]


def test_digests_in_all_forms() -> None:
    sha = hashlib.sha256(b"34").digest()
    standard, url = base64.b64encode(sha).decode(), base64.urlsafe_b64encode(sha).decode()
    assert standard != url
    for prefix in ("SHA-256=", "sha-256=", "Sha-256="):
        for encoded in (standard, url, standard.rstrip("="), url.rstrip("=")):
            assert digest_bytes(prefix + encoded) == sha
    for bad in ("", "MD5=abc", "SHA-256=a", standard):
        with pytest.raises(BadArgument, match="digest"):
            digest_bytes(bad)


def test_changes_of_descriptions() -> None:
    info = ObjectInfo(name="a", description="d", headers={"H": ["1"]}, nuid="N", size=3, chunks=1)
    assert changed_info(info, "a", None, None, None) == info
    changed = changed_info(info, "b", "", {"I": "2"}, {"k": "v"})
    assert (changed.name, changed.description, changed.headers) == ("b", None, {"I": ["2"]})
    gone = deleted_info(info)
    assert (gone.deleted, gone.size, gone.chunks, gone.nuid) == (True, 0, 0, "N")
    link = link_info(ObjectMeta("l"), "B", "M", "C", "a")
    assert is_link(link)
    assert not is_link(deleted_info(link))
    texts = [info_bytes(each, datetime.now(UTC)) for each in (info, evolve(gone, nuid="X"))]
    stored = [
        message(text) for text in (*texts, b'{"name":"d","nuid":"D","size":-1}', b"broken: E")
    ]
    chunks = {f"$O.B.C.{nuid}": 2 for nuid in "NXDEF"}
    needed = Needed.by(stored, "B")
    assert orphans(SUBJECTS, chunks, needed) == {"$O.B.C.X": 2, "$O.B.C.F": 2}
    assert len(needed.unreadable) == 2


def test_the_name_is_that_of_the_subject() -> None:
    text = b'{"name":"b","bucket":"C","size":0,"error":"none"}'
    info = read_info(message(text), "B")
    assert (info.name, info.bucket, info.unknown) == ("a", "B", {})


@pytest.mark.parametrize("token", ["!!!", "YQ", "Y!Q==", "YR==", "x.YQ==", "_w==", "="])
def test_metadata_under_a_subject_of_no_name(token: str) -> None:
    subject = f"$O.B.M.{token}"
    assert object_name_of(subject) == token
    stored = message(b'{"name":"a","size":0}', subject)
    with pytest.raises(InvalidObjectInfo, match="not that of an object's name"):
        read_info(stored, "B")
    assert SUBJECTS.literal_info(token) == subject


@pytest.mark.parametrize("token", ["YQ==", "Pz4/Pg==", ">", "*", "a.>", "a b", "", "a..b"])
def test_what_is_no_subject_of_damaged_metadata(token: str) -> None:
    assert SUBJECTS.literal_info(token) is None


# ---- content


def test_chunks_fit_into_messages() -> None:
    assert chunk_size(None, 1 << 20, None) == 128 * 1024
    assert chunk_size(10, 1 << 20, -1) == 10
    assert chunk_size(1 << 20, 1 << 20, -1) < 1 << 20
    assert chunk_size(None, 1 << 20, 4096) < 4096
    with pytest.raises(BadArgument, match="max_payload"):
        chunk_size(None, 512, None)


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 17))
def test_pieces_of_any_size_become_chunks_of_one(pieces: list[bytes], size: int) -> None:
    chunker, found = Chunker(size), []
    for piece in pieces:
        chunker.hash(memoryview(piece))
        found += chunker.cut(memoryview(piece))
    whole = b"".join(pieces)
    assert all(len(chunk) == size for chunk in found)
    assert b"".join([*found, chunker.last()]) == whole
    assert len(chunker.last()) < size
    assert chunker.size == len(whole)
    assert chunker.sha.digest() == hashlib.sha256(whole).digest()


def described(chunks: list[bytes]) -> ObjectInfo:
    whole = b"".join(chunks)
    digest = digest_text(hashlib.sha256(whole).digest())
    return ObjectInfo(name="a", size=len(whole), chunks=len(chunks), digest=digest)


@given(
    st.lists(st.binary(min_size=1, max_size=9), max_size=12),
    st.lists(st.integers(0, 12)),
    st.data(),
)
def test_last_chunk_is_returned_after_the_digest_was_verified(
    chunks: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    content = Content(described(chunks))
    bounds = [0, *sorted(cut for cut in cuts if cut <= len(chunks)), len(chunks)]
    handed: list[bytes] = []
    for begin, end in pairwise(bounds):
        handed += content.take([*chunks[begin:end], b""])
        if handed == chunks:
            assert content.is_whole
        else:
            assert b"".join(handed) != b"".join(chunks)
    assert handed == chunks
    assert content.is_whole
    if chunks:
        at = data.draw(st.integers(0, len(chunks) - 1))
        wrong = [*chunks[:at], bytes([chunks[at][0] ^ 1]) + chunks[at][1:], *chunks[at + 1 :]]
        with pytest.raises(DigestMismatch):
            Content(described(chunks)).take(wrong)


def test_content_of_another_size_or_without_a_digest() -> None:
    info = described([b"ab", b"c"])
    with pytest.raises(DigestMismatch, match="has 4 bytes"):
        Content(info).take([b"ab", b"cd"])
    assert Content(evolve(info, digest=None)).take([b"xy", b"z"]) == [b"xy", b"z"]
    with pytest.raises(InvalidObjectInfo, match="MD5"):
        Content(evolve(info, digest="MD5=x"))
    with pytest.raises(DigestMismatch):
        Content(ObjectInfo(name="a", size=1, chunks=0))
    # What lies behind the last chunk is no part of the object.
    assert Content(info).take([b"ab", b"c", b"more"]) == [b"ab", b"c"]


@given(
    st.lists(st.binary(min_size=1, max_size=9), max_size=9), st.integers(0, 60), st.integers(0, 60)
)
def test_ranges(chunks: list[bytes], start: int, end: int) -> None:
    whole, info = b"".join(chunks), described(chunks)
    end = min(end, len(whole))
    index = [StoredChunk(10 + at, len(chunk)) for at, chunk in enumerate(chunks)]
    part = ContentRange(info, index, start, end)
    first = max(part.first_seq - 10, 0)
    found = part.take([*range(10 + first, 10 + len(chunks))], chunks[first:])
    assert b"".join(found) == whole[start:end]
    assert part.is_whole
    assert part.total == len(whole[start:end]) or start > end


def test_chunks_that_an_upload_has_removed_are_no_part_of_a_range() -> None:
    info = described([b"ab", b"cd", b"ef"])
    index = [StoredChunk(4, 2), StoredChunk(5, 2), StoredChunk(6, 2)]
    part = ContentRange(info, index, 1, 6)
    assert part.take([2, 3, 4], [b"cd", b"ef", b"ab"]) == [b"b"]
    assert part.take([5, 6, 7], [b"cd", b"ef", b"gh"]) == [b"cd", b"ef"]
    assert part.is_whole


def test_the_number_of_a_chunk_is_that_of_its_own_upload() -> None:
    ids = ["N.1", "N.22", "M.1", "N.", "N", "N.x", "N.1.2", ".1", "", None]
    assert [sent_number(each, "N") for each in ids] == [1, 22, *[None] * 8]
    assert sent_number(".1", "") is None
    assert sent_number("a.b.3", "a.b") == 3


def test_what_does_not_fit_the_index() -> None:
    info = described([b"ab", b"c"])
    index = [StoredChunk(1, 2), StoredChunk(2, 1), StoredChunk(3, 9)]
    assert check_index(info, index) == index[:2]
    with pytest.raises(ObjectIncomplete, match="1 chunks of 2 bytes"):
        check_index(info, index[:1])
    with pytest.raises(ObjectChanged, match="3 bytes and the sequence 1, 2 bytes at 1"):
        ContentRange(info, index[:2], 0, 3).take([1], [b"abc"])
    with pytest.raises(ObjectChanged, match="1 bytes and the sequence 2, 2 bytes at 1"):
        ContentRange(info, index[:2], 0, 3).take([2], [b"c"])
    assert [resumed_at(index[:2], size) for size in range(5)] == [
        (0, 0),
        (0, 0),
        (1, 2),
        (2, 3),
        (2, 3),
    ]


def test_content_continues_after_earlier_pieces() -> None:
    content = Content(described([b"ab", b"c"]))
    content.resume(b"ab")
    content.resumed(1)
    assert content.take([b"c"]) == [b"c"]
    wrong = Content(described([b"ab", b"c"]))
    wrong.resume(b"xyz")
    with pytest.raises(DigestMismatch):
        wrong.resumed(2)


def test_what_is_lost_with_its_connection_is_sent_again_until_the_time_is_over() -> None:
    retry, lost = ObjectRetry(), ConnectionLost("broken")
    assert retry.left(50, 0.1, lost, lacks_leader=False) == 1
    assert retry.left(1, 0.0, lost, lacks_leader=False) == 0
    # As other messages are.
    silent = RequestTimeout("silent")
    assert retry.left(3, 10.0, silent, lacks_leader=False) == 0
    assert retry.left(1, 10.0, silent, lacks_leader=False) == 2
    assert retry.patience(60, True, 0) == 20
