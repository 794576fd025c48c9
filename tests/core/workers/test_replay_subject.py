"""The subject of a replay: own subjects, transforms undone, streams that a stream copies from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.wire.subject_match import covers
from twinstream.core.wire.subjects import check_subject
from twinstream.core.workers.replay_subject import Place, PlaceSearch, is_reserved
from twinstream.core.workers.undo_transform import before_transform, transformed
from twinstream.models import ExternalStream, StreamConfig, StreamSource, SubjectTransform


def transform(src: str, dest: str) -> SubjectTransform:
    return SubjectTransform(src=src, dest=dest)


@pytest.mark.parametrize(
    ("src", "dest", "before", "stored"),
    [
        ("a.*", "{{Partition(4,1)}}.a.{{Wildcard(1)}}", "a.x", "3.a.x"),
        (">", "{{Partition(4)}}.>", "a.x.y", "3.a.x.y"),
        ("", "p.>", "a.b", "p.a.b"),
        ("a.*.*", "b.$2.$1", "a.x.y", "b.y.x"),
        ("a.*", "a.$1.{{left(1,1)}}", "a.xyz", "a.xyz.x"),
        ("a.>", "", "a.b", "a.b"),
        ("a", "b", "a", "b"),
        # What the destination does not repeat, or splits, is not determined.
        ("a.*.*", "b.$1", None, "b.x"),
        ("a.*", "{{random(5)}}.$1", None, "3.x"),
        ("a.*", "b.{{split(1,-)}}", None, "b.x.y"),
        ("a.*", "b.{{slicefromleft(1,1)}}", None, "b.x.y"),
        # No subject leads to these.
        ("a.*", "{{Partition(4,1)}}.a.{{Wildcard(1)}}", None, "2.a.x"),
        ("a.*", "b.$1", None, "$JS.API.STREAM.DELETE.VICTIM"),
        ("a.*", "b.$1", None, "b"),
        ("a.*", "b.$1", None, "b.x.y"),
        ("a.*", "b.$1.$1", None, "b.x.y"),
        ("a.>", "b.>", None, "b"),
        ("a.*", "b.$1", None, "b.*"),
        # A server refuses this transform.
        ("a", "b.$7", None, "b.x"),
    ],
)
def test_a_transform_is_undone(src: str, dest: str, before: str | None, stored: str) -> None:
    assert before_transform(transform(src, dest), stored) == before


_TOKENS = st.sampled_from(["a", "b", "x-y", "$1", "$2", "$0", "{{Partition(3,1)}}", "{{left(1,1)}}",
    "{{split(1,-)}}", "{{random(2)}}", "*", ">", ""])  # fmt: skip
_SUBJECTS = st.lists(_TOKENS, min_size=1, max_size=4).map(".".join)


@given(_SUBJECTS, _SUBJECTS, _SUBJECTS)
def test_undone_subjects_lead_back(src: str, dest: str, stored: str) -> None:
    made = transform(src, dest)
    before = before_transform(made, stored)
    assert before is None or transformed(made, before) == stored


A = StreamConfig(name="A", subjects=["a.>"])
B = StreamConfig(name="B", subjects=["b.*"])
BY_KEY = transform("a.*", "{{Partition(4,1)}}.a.$1")
CONFIGS = {
    "A": A,
    "B": B,
    "IN": StreamConfig(name="IN", subjects=["in.>"], subject_transform=transform("in.>", "out.>")),
    "MIRROR": StreamConfig(name="MIRROR", mirror=StreamSource(name="A")),
    "AGAIN": StreamConfig(name="AGAIN", mirror=StreamSource(name="MIRROR")),
    "GROUP": StreamConfig(name="GROUP", sources=[
        StreamSource(name="A", subject_transforms=[BY_KEY]), StreamSource(name="B")]),
    "PART": StreamConfig(name="PART", mirror=StreamSource(name="A", filter_subject="a.x.>")),
    "TWO": StreamConfig(name="TWO", sources=[
        StreamSource(name="A", subject_transforms=[transform("a.>", "t.>")]),
        StreamSource(name="B", subject_transforms=[transform("b.>", "t.>")])]),
    "OWN": StreamConfig(name="OWN", subjects=["t.>"], sources=[
        StreamSource(name="A", subject_transforms=[transform("a.>", "t.>")])]),
    "FAR": StreamConfig(name="FAR", mirror=StreamSource(name="A", external=ExternalStream(
        api="$JS.hub.API"))),
    "LOOP": StreamConfig(name="LOOP", sources=[
        StreamSource(name="LOOP", subject_transforms=[transform(">", "x.>")])]),
    "CHANGED": StreamConfig(name="CHANGED", subject_transform=transform("a.>", "new.a.>"),
        sources=[StreamSource(name="A")]),
}  # fmt: skip


def places(stream: str, subject: str) -> list[Place]:
    search = PlaceSearch(stream, subject)
    while (place := search.next()) is not None:
        search.enter(place, CONFIGS[place.stream])
    return search.found


@pytest.mark.parametrize(
    ("stream", "subject", "found"),
    [
        ("A", "a.b", [("A", "a.b")]),
        ("IN", "out.b", [("IN", "in.b")]),
        ("IN", "in.b", []),
        ("MIRROR", "a.b", [("A", "a.b")]),
        ("AGAIN", "a.b", [("A", "a.b")]),
        ("GROUP", "3.a.x", [("A", "a.x")]),
        ("GROUP", "2.a.x", []),
        ("GROUP", "a.x", []),
        ("GROUP", "b.x", [("B", "b.x")]),
        ("PART", "a.x.y", [("A", "a.x.y")]),
        ("PART", "a.y", []),
        ("TWO", "t.x", [("A", "a.x"), ("B", "b.x")]),
        ("TWO", "t.x.y", [("A", "a.x.y")]),
        ("OWN", "t.x", [("OWN", "t.x")]),
        ("FAR", "a.b", []),
        ("LOOP", "x." * 500 + "x", []),
        ("CHANGED", "new.a.b", [("A", "a.b")]),
        ("CHANGED", "a.b", []),
        *(("A", subject, []) for subject in (
            "$JS.API.STREAM.DELETE.VICTIM", "b.x", "a", "a.*", "a.>", ">", "a..b", "a.b c", "",
            "a.b\r\nPUB x 0")),
    ],
)  # fmt: skip
def test_places_where_a_message_was_published(
    stream: str, subject: str, found: list[tuple[str, str]]
) -> None:
    assert [(place.stream, place.subject) for place in places(stream, subject)] == found


@given(st.sampled_from(sorted(CONFIGS)), st.text() | _SUBJECTS | st.lists(
    st.sampled_from(["a", "b", "t", "x", "in", "out", "3", "new", "*", ">", "$JS", "API"])
).map(".".join))  # fmt: skip
def test_every_place_is_a_subject_of_a_known_stream(stream: str, subject: str) -> None:
    for place in places(stream, subject):
        assert any(covers(each, place.subject) for each in CONFIGS[place.stream].subjects or [])
        check_subject(place.subject)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("$JS.API.STREAM.DELETE.S", True),
        ("$SYS.REQ", True),
        ("$SRV.PING", True),
        ("$JS", True),
        ("_INBOX.a", True),
        ("_R_.a", True),
        ("api.acc.STREAM.DELETE.S", True),
        ("api.acc", True),
        ("api.account", False),
        ("_mine.a", True),
        ("$KV.bucket.key", False),
        ("$O.store.C.x", False),
        ("orders.new", False),
    ],
)
def test_reserved_subjects(subject: str, expected: bool) -> None:
    assert is_reserved(subject, ("api.acc", "_mine")) is expected
