"""The order in which events are sent, and which errors belong to an event."""

from __future__ import annotations

import pytest

from twinstream.core.exactly_once.outbox import (
    Lanes,
    OutboxEvent,
    OutboxReport,
    graver,
    is_fault_of_event,
    is_of_event_alone,
    request_of,
)
from twinstream.errors import (
    BadArgument,
    PermissionDenied,
    RequestTimeout,
    SubjectTaken,
    TwinstreamError,
    api_error,
)


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


def test_a_held_key_stays_held_in_the_next_page() -> None:
    held: set[str] = set()
    first = Lanes([event(0, "a"), event(1, "b")], held)
    first.hold(first.next_wave()[0])
    assert waves(Lanes([event(2, "a"), event(3, "b"), event(4)], held)) == [[4, 3]]


def test_trouble_that_others_meet_too_is_graver() -> None:
    own, common = PermissionDenied("x"), RequestTimeout("y")
    assert is_of_event_alone(own)
    assert not is_of_event_alone(common)
    assert graver(None, None) is None
    assert graver(own, None) is graver(None, own) is own
    assert graver(own, common) is graver(common, own) is common


def test_a_request_carries_the_identity() -> None:
    plain = request_of(event(1), "S")
    assert (plain.msg_id, plain.expected_stream, plain.headers) == ("1", "S", None)
    full = OutboxEvent(number=1, id="x", subject="s", data=b"d", headers=(("A", "b"), ("A", "c")))
    headers = request_of(full, "S").headers
    assert headers is not None
    assert dict(headers) == {"A": "b"}


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (BadArgument("x"), True),
        (SubjectTaken("x"), True),
        (RequestTimeout("x"), False),
        (api_error({"err_code": 10054, "description": "too large"}), True),
        (api_error({"err_code": 10174, "description": "batch publish is disabled"}), True),
        (api_error({"err_code": 10188, "description": "message schedules is disabled"}), True),
        (api_error({"err_code": 10203, "description": "schedules source is invalid"}), True),
        (api_error({"err_code": 10212, "description": "schedules invalid scheduler"}), True),
        (api_error({"err_code": 10223, "description": "schedules time zone is invalid"}), True),
        (api_error({"err_code": 10227, "description": "source header is not allowed"}), True),
        (api_error({"err_code": 10077, "description": "maximum bytes exceeded"}), False),
    ],
)
def test_errors_caused_by_the_event_itself(error: TwinstreamError, own: bool) -> None:
    assert is_fault_of_event(error) is own


def test_reports_read_well() -> None:
    error = BadArgument("too bad")
    assert str(OutboxReport(error=error)) == (
        "the outbox cannot be sent now, it is tried again: too bad"
    )
    assert str(OutboxReport(error=error, event=event(3))) == (
        "event 3 (s) is not stored yet: too bad"
    )
    assert str(OutboxReport(error=error, event=event(3), refused=True)) == (
        "event 3 (s) is refused and set aside: too bad"
    )
    assert str(OutboxReport(error=error, ended=True)) == "the relay has ended: too bad"
