"""Archives in pieces: frames of S2, and chunks of a snapshot."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import status_frame
from twinstream.core.backup.backup import Backup, SnapshotChunks
from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.wire.protocol import Frame
from twinstream.errors import InvalidResponse, JetStreamError
from twinstream.models import StreamConfig, StreamState

BEGIN = b"\xff\x06\x00\x00S2sTwO"


def frame(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "little") + body


PLAIN = frame(1, b"crc4" + b"hello")
PACKED = frame(0, b"crc4" + b"\xac\x02" + b"packed bytes")  # 300 in base 128
WHOLE = BEGIN + PACKED + PLAIN + frame(0xFE, b"\0" * 20) + frame(0x80, b"")
HUGE = frame(0, b"crc4" + b"\xff" * 5)


def walked(*pieces: bytes) -> S2Frames:
    frames = S2Frames()
    for piece in pieces:
        frames.feed(piece)
    return frames


def test_a_whole_archive() -> None:
    frames = walked(WHOLE)
    assert (frames.whole, frames.unpacked, frames.trouble) == (True, 305, "")
    assert walked(WHOLE, frame(0xFF, b"sNaPpY")).whole
    assert not walked().whole
    assert walked(BEGIN, HUGE).unpacked > 1 << 32


@given(st.lists(st.integers(0, len(WHOLE))))
def test_any_pieces_are_the_same_archive(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[a:b] for a, b in pairwise(places)]
    frames = walked(*pieces)
    assert (frames.whole, frames.unpacked) == (True, 305)


def test_any_archive_that_is_cut_short_is_noticed() -> None:
    ends = {len(BEGIN), len(BEGIN + PACKED), len(BEGIN + PACKED + PLAIN), len(WHOLE) - 4}
    for end in range(len(WHOLE)):
        assert walked(WHOLE[:end]).whole == (end in ends), end


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (PLAIN, "does not begin"),
        (frame(0xFF, b"NOTS2!"), "does not begin"),
        (BEGIN + frame(0x42, b"x"), "unknown kind, 66"),
        (b"any text that is no archive", "does not begin"),
    ],
)
def test_what_is_no_archive(data: bytes, said: str) -> None:
    frames = walked(data, WHOLE)
    assert not frames.whole
    assert said in frames.trouble


# ---- chunks


def chunk(data: bytes, index: int | None = None, size: int | None = None) -> Frame:
    reply = b""
    if index is not None:
        reply = b"$JS.SNAPSHOT.ACK.S.id.%d.%d" % (len(data) if size is None else size, index)
    return (b"_INBOX.1", reply, 0, data + b"\r\n")


END = (b"_INBOX.1", b"", 0, b"\r\n")


@pytest.mark.parametrize("end", [END, status_frame(204)])
def test_chunks_make_an_archive(end: Frame) -> None:
    chunks = SnapshotChunks("S")
    frames = [chunk(WHOLE[:9], 1), chunk(WHOLE[9:20], 2), chunk(WHOLE[20:])]
    assert b"".join(map(chunks.take, frames)) == WHOLE
    assert not chunks.ended
    assert chunks.take(end) == b""
    assert (chunks.ended, chunks.size, chunks.unpacked) == (True, len(WHOLE), 305)


@pytest.mark.parametrize("bad", [chunk(b"xy", 3), chunk(b"xy", 2, size=3), chunk(b"xy", 1)])
def test_a_missing_chunk_is_noticed(bad: Frame) -> None:
    chunks = SnapshotChunks("S")
    chunks.take(chunk(WHOLE[:9], 1))
    with pytest.raises(InvalidResponse, match="chunk 2"):
        chunks.take(bad)


def test_rewritten_reply_subject_is_accepted() -> None:
    chunks = SnapshotChunks("S")
    assert chunks.take((b"_INBOX.1", b"_R_.x.y", 0, b"data\r\n")) == b"data"


@pytest.mark.parametrize(
    ("data", "end", "error", "said"),
    [
        (WHOLE, status_frame(408, "No Interest"), JetStreamError, "408 No Interest"),
        (WHOLE[:-1], END, InvalidResponse, "incomplete"),
        (b"nonsense nonsense", status_frame(204), InvalidResponse, "does not begin"),
    ],
)
def test_a_backup_that_ends_badly_is_refused_with_the_reason(
    data: bytes, end: Frame, error: type[Exception], said: str
) -> None:
    chunks = SnapshotChunks("S")
    chunks.take(chunk(data))
    with pytest.raises(error, match=said):
        chunks.take(end)
    assert not chunks.ended


@pytest.mark.parametrize("name", ["S", None])
def test_a_backup_has_the_name_of_its_stream(name: str | None) -> None:
    state = StreamState(messages=0, bytes=0, first_seq=0, last_seq=0, consumer_count=0)
    made = Backup(
        path=Path("x"),
        config=StreamConfig(name=name),
        state=state,
        size=1,
        sha256=None,
        members={},
    )
    assert made.stream_name == (name or "")
