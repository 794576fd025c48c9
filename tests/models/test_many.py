"""Configs with many subjects, filters and sources, too many to compare all pairs.

With 20,000, each of these took more than a minute before.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinstream.models import lint_consumer, load_configs, validate_consumer, validate_stream

MANY = 10_000
CONSUMER = {"durable_name": "C", "ack_policy": "explicit", "max_deliver": 5}


@pytest.mark.parametrize("wild", ["", ".*", ".>"])
def test_many_subjects_and_filters(wild: str) -> None:
    subjects = [f"a.{number}{wild}" for number in range(MANY)]
    stream: dict[str, Any] = {"name": "S", "max_msgs": 10, "subjects": subjects}
    consumer = {**CONSUMER, "filter_subjects": subjects}
    assert validate_stream(stream) == []
    assert validate_consumer(consumer, stream) == []
    assert lint_consumer(consumer, stream) == []
    again = validate_stream({**stream, "subjects": [*subjects, subjects[17]]})
    assert [(one.rule, one.path) for one in again] == [("S-SUBJ-SELF", "subjects[17]")]
    again = validate_consumer({**consumer, "filter_subjects": [*subjects, subjects[17]]})
    paths = [f"filter_subjects[{number}]" for number in (17, MANY)]
    assert [(one.rule, one.path) for one in again] == [("C-FILTER-OVERLAP", path) for path in paths]


def test_subjects_with_wildcards_in_many_places() -> None:
    half = MANY // 2
    subjects = [f"a.x{number}.*.b" for number in range(half)]
    subjects += [f"a.*.y{number}.c" for number in range(half)]
    assert validate_stream({"name": "S", "subjects": subjects}) == []
    assert len(validate_stream({"name": "S", "subjects": [*subjects, "a.*.*.c"]})) == half


def test_many_sources_and_transforms() -> None:
    transforms = [{"src": f"a.{number}.>", "dest": f"b.{number}.>"} for number in range(5)]
    sources = [{"name": f"O{number}", "subject_transforms": transforms} for number in range(5_000)]
    assert validate_stream({"name": "S", "sources": sources}) == []
    sources.append(sources[7])
    [found] = validate_stream({"name": "S", "sources": sources})
    assert (found.rule, found.path) == ("S-SOURCE-DUP", "sources[5000].name")
    many = [{"src": f"a.{number}.>", "dest": f"b.{number}.>"} for number in range(MANY)]
    assert validate_stream({"name": "S", "mirror": {"name": "O", "subject_transforms": many}}) == []


def test_many_sources_of_the_stream_itself() -> None:
    subjects = [f"a.{number}" for number in range(MANY)]
    sources = [{"name": "S", "filter_subject": f"b.{number}"} for number in range(5_000)]
    stream = {"name": "S", "subjects": subjects, "sources": sources}
    assert validate_stream(stream) == []
    sources.append({"name": "S", "filter_subject": "*.5"})
    assert [one.rule for one in validate_stream(stream)] == ["S-CYCLE"]


def test_file_with_many_faults_has_a_position_for_each() -> None:
    text = json.dumps({"name": "S", "max_bytes": 5, "subjects": ["a.b"] * MANY}).encode()
    assert len(load_configs("s.json", text=text).errors) == MANY - 1
