"""Priorities in pull requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from twinstream.core.consume.pull_request import Priority, fetch_limits, request_body
from twinstream.errors import BadArgument


@pytest.mark.parametrize("value", [None, 0, 1, 9])
@pytest.mark.parametrize(
    ("name", "member"),
    [("min_pending", "min_pending"), ("min_ack_pending", "min_ack_pending"), ("rank", "priority")],
)
def test_zero_is_a_value_of_a_priority(name: str, member: str, value: int | None) -> None:
    limits = evolve(fetch_limits(1, None, 5, "full"), priority=Priority(group="g", **{name: value}))
    body = json.loads(request_body(1, None, limits, "pin"))
    assert (body["group"], body["id"]) == ("g", "pin")
    assert body.get(member) == value
    assert (member in body) is (value is not None)


@pytest.mark.parametrize(
    "given",
    [
        {"group": ""},
        {"group": "a b"},
        {"group": "x" * 17},
        {"group": "g", "min_pending": -1},
        {"group": "g", "min_ack_pending": -1},
        {"group": "g", "rank": 10},
        {"group": "g", "rank": -1},
    ],
)
def test_priorities_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        Priority(**given)
