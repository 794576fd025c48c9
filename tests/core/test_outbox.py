"""In which order events go, and which errors are their own."""

from __future__ import annotations

import pytest

from js_core.errors import (
    BadArgument,
    RequestTimeout,
    SubjectTaken,
    TwinstreamError,
    api_error,
)
from js_core.outbox import Lanes, OutboxEvent, OutboxReport, is_fault_of_event


def event(number: int, key: str | None = None) -> OutboxEvent:
    return OutboxEvent(number=number, id=str(number), subject="s", data=b"", key=key)


def waves(lanes: Lanes) -> list[list[int]]:
    found: list[list[int]] = []
    while wave := lanes.next_wave():
        found.append([each.number for each in wave])
    return found


def test_those_of_a_key_go_one_after_the_other() -> None:
    keys = ["a", "a", None, "b", "a", None, "b"]
    events = [event(number, key) for number, key in enumerate(keys)]
    assert waves(Lanes(events)) == [[2, 5, 0, 3], [1, 6], [4]]


def test_a_key_is_held_behind_what_was_not_stored() -> None:
    events = [event(number, key) for number, key in enumerate(["a", "a", "b", "b", None])]
    lanes = Lanes(events)
    lanes.next_wave()
    lanes.hold(events[0])
    lanes.hold(events[4])
    assert waves(lanes) == [[3]]


def test_a_request_carries_the_identity() -> None:
    plain = event(1).request("S")
    assert (plain.msg_id, plain.expected_stream, plain.headers) == ("1", "S", None)
    full = OutboxEvent(number=1, id="x", subject="s", data=b"d", headers=(("A", "b"), ("A", "c")))
    headers = full.request("S").headers
    assert headers is not None
    assert dict(headers) == {"A": "b"}


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (BadArgument("x"), True),
        (SubjectTaken("x"), True),
        (RequestTimeout("x"), False),
        (api_error({"err_code": 10054, "description": "too large"}), True),
        (api_error({"err_code": 10077, "description": "maximum bytes exceeded"}), False),
    ],
)
def test_whose_fault_an_error_is(error: TwinstreamError, own: bool) -> None:
    assert is_fault_of_event(error) is own


def test_reports_read_well() -> None:
    error = BadArgument("too bad")
    assert str(OutboxReport(error=error)) == "too bad"
    assert str(OutboxReport(error=error, event=event(3))) == ("event 3 (s) not stored yet: too bad")
    assert str(OutboxReport(error=error, event=event(3), refused=True)) == (
        "event 3 (s) refused: too bad"
    )
    assert str(OutboxReport(error=error, ended=True)) == "the relay has ended: too bad"
