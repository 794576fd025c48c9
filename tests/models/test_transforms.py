"""Subject transforms and partitions: by examples, and compared with a real server."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

import js_sync as js
from twinstream.models import StreamConfig, SubjectTransform, partition, transform_subject
from twinstream.testing import NatsServer

SUBJECTS = 200
_LETTERS = "abcxyz019-_+=:/"


@pytest.mark.parametrize(
    ("source", "destination", "subject", "wanted"),
    [
        ("a.*", "b.$1", "a.x", "b.x"),
        ("a.*", "b.$1", "c.x", None),
        ("a.*", "b.$1", "a.x.y", None),
        ("", "b.>", "a.x", "b.a.x"),
        (">", ">", "a.x", "a.x"),
        ("a.>", "", "a.x", "a.x"),
        ("a.>", "", "b.x", None),
        ("a.*.*.>", "$2.{{wildcard(1)}}.>", "a.1.2.3.4", "2.1.3.4"),
        ("a.*", "b.$x.$1", "a.x", "b.$x.x"),
        ("a.b", "c", "a.b", "c"),
        ("*", "x.{{splitfromleft(1,3)}}", "abcde", "x.abc.de"),
        ("*", "x.{{splitfromleft(1,5)}}", "abcde", "x.abcde"),
        ("*", "x.{{splitfromright(1,3)}}", "abcde", "x.ab.cde"),
        ("*", "x.{{slicefromleft(1,2)}}", "abcde", "x.ab.cd.e"),
        ("*", "x.{{slicefromright(1,2)}}", "abcde", "x.a.bc.de"),
        ("*", "x.{{slicefromright(1,2)}}", "abcd", "x.ab.cd"),
        ("*", "x.{{split(1,-)}}", "-ab--cd-", "x.ab.cd"),
        ("*", "x.{{split(1,)}}", "abc", "x.a.b.c"),
        ("*", "x.{{left(1,2)}}", "abcde", "x.ab"),
        ("*", "x.{{right(1,2)}}", "abcde", "x.de"),
        ("*", "x.{{right(1,0)}}", "abcde", "x.abcde"),
        ("*", "{{partition(0,1)}}", "abcde", "0"),
        ("*", "x.{{left(1,2)}}-{{right(1,3)}}", "abcde", "x.cde"),
        ("*.*", "x.a{{wildcard(2)}}", "b.c", "x.a{{wildcard(2)}}"),
        ("*", "x.{{split(1,-)}}-{{wildcard(1)}}", "a-b", "x.a-b"),
        ("*", "x.{{random(5)}}{{split(1,))}}", "a)b", "x.a.b"),
        ("*", "x.{{wildcard(1)}}}}", "a", "x.a"),
        ("a.>", "x.$0.$-1.{{wildcard(0)}}.>", "a.b", "x.a.a.a.b"),
        ("*", f"x.${2**63}", "a", f"x.${2**63}"),
        ("*", "{{partition(1,1)}}", "abcde", "0"),
        ("*", "{{partition(-3,1)}}", "hello", "1335831723"),
    ],
)
def test_subjects_are_transformed_as_by_the_server(
    source: str, destination: str, subject: str, wanted: str | None
) -> None:
    assert transform_subject(source, destination, subject) == wanted


@pytest.mark.parametrize(
    ("source", "destination", "subject", "told"),
    [
        ("a.*", "b.$2", "a.x", "names more wildcards"),
        (">", "{{partition(3,1)}}.>", "a.x", "needs a *"),
        ("a.*", "b.{{nonsense(1)}}", "a.x", "not a function"),
        ("a.*.*", "b.{{wildcard(1)}}-{{wildcard(2)}}", "a.x.y", "takes the number of a wildcard"),
        ("a.*", "b.{{left(1,2)}}-{{left(1,2)}}", "a.x", "and a second number"),
        ("a.*", "b.$x y", "a.x", "has a blank"),
        ("a.*", "b.$1 ", "a.x", "has a blank"),
        ("a.*", "b.{{wildcard(1\t)}}", "a.x", "takes the number"),
        ("a.*", "b.{{wildcard\x0b(1)}}", "a.x", "not a function"),
        ("a.*", f"b.{{{{partition(-{2**64})}}}}", "a.x", "number of partitions"),
        ("a.>", "b.$1.>", "a.x", "needs a *"),
        ("a.b", "b.$0", "a.b", "needs a *"),
        ("a.*", "b.{{random(5)}}", "a.x", "chooses the number"),
        ("a.*", "b.$1", "a.*", "cannot publish to"),
        ("a.*", "b.$1", "a..x", "cannot publish to"),
    ],
)
def test_transforms_that_cannot_be_foretold(
    source: str, destination: str, subject: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        transform_subject(source, destination, subject)


def test_older_servers_have_fewer_functions() -> None:
    assert transform_subject("*", "{{left(1,2)}}", "abc") == "ab"
    with pytest.raises(ValueError, match=r"needs server 2\.15"):
        transform_subject("*", "{{left(1,2)}}", "abc", server="2.12")


@pytest.mark.parametrize("none", [0, 2**40])
def test_no_partition_ends_older_servers(none: int) -> None:
    destination = f"{{{{partition({none},1)}}}}"
    with pytest.raises(ValueError, match="0 partitions, which crash servers before"):
        transform_subject("*", destination, "abc", server="2.11.4")


def test_a_rest_counted_for_nothing_once() -> None:
    assert transform_subject("a.>", "b.$0.>", "a.x") == "b.a.x"
    with pytest.raises(ValueError, match="needs a"):
        transform_subject("a.>", "b.$0.>", "a.x", server="2.11")


def test_partitions_follow_fnv_1a() -> None:
    # Test values of FNV-1a, 32 bits.
    assert partition("", 2**32) == 0x811C9DC5
    assert partition("a", 2**32) == 0xE40C292C
    assert partition("foobar", 2**32) == 0xBF9CF968
    assert partition(["foo", "bar"], 2**32) == 0xBF9CF968
    assert {partition(f"orders.{number}", 5) for number in range(50)} == set(range(5))
    with pytest.raises(ValueError, match="at least 1"):
        partition("a", 0)


FUNCTIONS = [
    ("i.*.*", "{{wildcard(2)}}.$1"),
    ("i.*.*", "p.{{partition(7,1)}}.{{wildcard(2)}}"),
    ("i.*.*", "p.{{ Partition( 1000 , 2, 1 ) }}.$1.$2"),
    ("i.*.*", "{{partition(12)}}.$1.$2"),
    (">", "{{partition(12)}}.>"),
    ("i.a.>", "{{partition(5)}}.>"),
    ("i.*.>", "{{partition(5,1)}}.$1.>"),
    ("i.*.*", "x.{{splitfromleft(1,3)}}"),
    ("i.*.*", "x.{{SplitFromRight(2,3)}}"),
    ("i.*.*", "x.{{SliceFromLeft(1,3)}}"),
    ("i.*.*", "x.{{sliceFromRight(1,4)}}"),
    ("i.*.*", "x.{{sliceFromRight(1,0)}}.{{splitfromleft(1,-3)}}"),
    ("i.*.*", "x.{{split(1,-)}}.y"),
    ("i.*.*", "x.{{Split(1,ab)}}.{{left(2,3)}}"),
    ("i.*.*", "q.{{split(1,)}}"),
    ("i.*.*", "q.{{wildcard(0)}}.{{right(1,2)}}"),
    ("i.*.b.*", "{{right(2,5)}}-.{{left(1,1)}}.$3x"),
    ("i.a.*.>", "b.$1.c.>"),
    ("i.b", "c.{{partition(9)}}"),
    ("i.*.*", "c.{{left(2,3)}}-{{right(1,2)}}-x"),
    ("i.*.*", "c.{{slicefromright(2,3)}}{{splitfromleft(1,2)}}"),
    ("i.*.*", "c.{{wildcard(1)}}-{{wildcard(2)}}"),
    ("i.>", "c.$0.{{wildcard(-1)}}.>"),
]


@pytest.mark.parametrize(("source", "destination"), FUNCTIONS)
def test_server_agrees_on_hundreds_of_subjects(
    server: NatsServer, source: str, destination: str
) -> None:
    version = os.environ.get("TWINSTREAM_SERVER")
    draw = random.Random(f"{source} {destination}")
    with js.connect(server.url) as nc:
        jet = nc.jetstream()
        config = StreamConfig(
            name="TRANSFORMS",
            subjects=["i.>"],
            subject_transform=SubjectTransform(src=source, dest=destination),
        )
        subjects = [subject_for(source, draw) for _ in range(SUBJECTS)]
        try:
            foretold = [transform_subject(source, destination, s, server=version) for s in subjects]
        except ValueError:
            with pytest.raises(js.JetStreamError, match="transform"):
                jet.create_stream(config)
            return
        stream = jet.create_stream(config)
        try:
            for each in jet.publish_many(js.PublishRequest(subject=s) for s in subjects):
                assert not isinstance(each, js.PublishFailure), each
            stored = [stream.get_message(seq).subject for seq in range(1, SUBJECTS + 1)]
        finally:
            jet.delete_stream("TRANSFORMS")
    assert stored == foretold


def subject_for(source: str, draw: random.Random) -> str:
    """Return a matching subject, with non-ASCII characters unless the transform cuts texts."""
    makers: dict[str, Callable[[], str]] = {
        "*": lambda: token(draw),
        ">": lambda: ".".join([token(draw) + "ü日", *(token(draw) for _ in range(2))]),
    }
    found = [makers.get(each, lambda each=each: each)() for each in source.split(".")]
    return ".".join(found if source != ">" else ["i", *found])


def token(draw: random.Random) -> str:
    return "".join(draw.choices(_LETTERS, k=draw.randint(1, 12)))
