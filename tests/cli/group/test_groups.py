"""`twinstream group`: partitioned consumer groups."""

from __future__ import annotations

import pytest

import js_sync
from js_sync.groups import ElasticGroup
from tests.cli.output import Run, json_lines
from twinstream.models import StreamConfig, SubjectTransform

pytestmark = pytest.mark.since("2.11")


def test_an_elastic_group_gets_and_loses_members(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    where = (stream, "packers")
    words = ("--partitions", "4", "--filter", f"{stream}.*", "--key", "1", "--member", "anna")
    limits = ("--max-buffered-bytes", "1MB")
    assert run("group", "create", *where, *words, *limits).exit_code == 0
    assert run("group", "create", *where, *words, *limits).exit_code == 0  # it is the same
    assert run("group", "create", *where, "--partitions", "5").exit_code == 1
    assert run("group", "add", *where, "bert", "carl").stdout == (
        "members of packers: anna, bert, carl\n"
    )
    listed = [line.split("\t") for line in run("group", "members", *where).stdout.splitlines()]
    assert [row[:2] for row in listed] == [["anna", "no"], ["bert", "no"], ["carl", "no"]]
    given = [part for row in listed for part in row[2].split(", ")]
    assert sorted(given) == ["0", "1", "2", "3"]
    assert "Remove carl" in run("group", "remove", *where, "carl", input="n\n").stderr
    (left,) = json_lines(run("group", "remove", *where, "carl", "-f", "--json"))
    assert left["members"] == ["anna", "bert"]
    page = run("group", "info", *where).stdout
    assert f"stream of the consumers\t{stream}-packers\n" in page
    assert "max_members\t4\n" in page
    (info,) = json_lines(run("group", "info", *where, "--json"))
    assert info["config"]["max_buffered_bytes"] == 1 << 20
    group = ElasticGroup(jet, stream, "packers")
    with group.worker("anna", lambda message: None):
        states = json_lines(run("group", "members", *where, "--json"))
    assert {each["member"]: each["active"] for each in states}["bert"] is False
    group.delete()
    assert run("group", "info", *where).exit_code == 3


def test_a_static_group_keeps_its_members(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    transform = SubjectTransform(src=f"{stream}s.*", dest="{{partition(2,1)}}." + f"{stream}s.$1")
    name = f"{stream}-STATIC"
    jet.create_stream(
        StreamConfig(name=name, subjects=[f"{stream}s.*"], subject_transform=transform)
    )
    words = ("--partitions", "2", "--static", "--member", "a", "--member", "b")
    made = run("group", "create", name, "fixed", *words)
    assert made.exit_code == 0, made.stderr
    rows = [line.split("\t") for line in run("group", "members", name, "fixed").stdout.splitlines()]
    assert [row[0] for row in rows] == ["a", "b"]
    refused = run("group", "add", name, "fixed", "c")
    assert (refused.exit_code, "whose members are fixed" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("create S g", 2, "--partitions"),
        ("create S g --partitions 2 --static", 2, "needs its members"),
        ("create S g --partitions 2 --key 1", 2, "wildcards of a --filter"),
        ("create S g --partitions 2 --static --member a --key 1", 2, "has neither --key"),
        ("info {} none", 3, "has no consumer group none"),
        ("add {} none a", 3, "has no consumer group none"),
    ],
)
def test_mistakes_are_named(run: Run, stream: str, words: str, code: int, said: str) -> None:
    result = run("group", *words.format(stream).split())
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
