"""Table tests of the pull engine: its actions for each event, with a simulated clock."""

from __future__ import annotations

import gc
from collections import deque
from itertools import count
from typing import Any

import pytest

from tests.core.frames import status_frame
from tests.fake.statuses import STATUSES, Then
from twinstream import errors
from twinstream.core.consume.buffer_limits import buffer_limits
from twinstream.core.consume.pull_engine import (
    Action,
    DropPin,
    Finish,
    Probed,
    PullEngine,
    SendProbe,
    SendPull,
    pull_error,
)
from twinstream.core.consume.pull_request import Priority, PullBounds
from twinstream.core.consume.reports import PullWarning
from twinstream.core.wire.single_answers import Verdict
from twinstream.core.wire.status import Status, read_status

NEVER = float("inf")


def status(code: int, text: str, token: bytes = b"1", **headers: object) -> Status:
    return read_status(status_frame(code, text, token, **headers))


class Bench:
    """A pull engine with a simulated clock, and a record of its actions."""

    def __init__(self, max_messages: int | None = 10, **options: Any) -> None:
        numbers = count(1)
        self.now = 0.0
        self.limits = buffer_limits(
            **{
                "max_messages": max_messages,
                "max_bytes": None,
                "expires": 30.0,
                "heartbeat": 15.0,
                "threshold_messages": None,
                "threshold_bytes": None,
                **options,
            }
        )
        self.engine = PullEngine(self.limits, lambda: b"%d" % next(numbers), self.now)

    def poll(self, **options: Any) -> list[Action]:
        return self.engine.poll(self.now, **options)

    def pulls(self) -> list[SendPull]:
        return [action for action in self.poll() if isinstance(action, SendPull)]

    def arrived(self, number: int, size: int = 0) -> None:
        self.engine.arrived(number, size)

    def handed(self, number: int = 1, size: int = 0) -> None:
        for _ in range(number):
            self.engine.handed_over(size, self.now)

    def status(self, code: int, text: str = "", token: bytes = b"1", **headers: object) -> None:
        self.engine.status(status(code, text, token, **headers), self.now)


def pull(token: bytes, batch: int, max_bytes: int | None = None) -> SendPull:
    return SendPull(token, batch, max_bytes)


# ---- asking for as much as fits


def test_the_first_poll_pulls_all_and_the_next_nothing() -> None:
    bench = Bench()
    assert bench.poll() == [pull(b"1", 10)]
    assert bench.poll() == []
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (10, 1)
    assert bench.engine.wake_at() == 30.0


def test_the_buffer_is_filled_again_at_the_threshold() -> None:
    bench = Bench()
    bench.poll()
    bench.arrived(10)
    assert (bench.engine.budget.buffered, bench.engine.requests.outstanding) == (10, 0)
    assert bench.engine.wake_at() == NEVER
    bench.handed(4)
    assert bench.poll() == []
    bench.handed()
    assert bench.engine.due(bench.now)
    assert bench.poll() == [pull(b"2", 5)]


@pytest.mark.parametrize(("threshold", "after"), [(0, 10), (4, 6), (9, 1)])
def test_the_buffer_is_refilled_at_its_threshold(threshold: int, after: int) -> None:
    bench = Bench(threshold_messages=threshold)
    bench.poll()
    bench.arrived(10)
    bench.handed(after - 1)
    assert bench.poll() == []
    bench.handed()
    assert bench.poll() == [pull(b"2", after)]


@pytest.mark.parametrize("threshold", range(11))
def test_as_much_is_granted_as_leaves_nothing_due(threshold: int) -> None:
    bench = Bench(threshold_messages=threshold)
    bench.poll()
    bench.arrived(10)
    granted = bench.engine.grant()
    assert granted == max(0, 9 - threshold)
    bench.handed(granted)
    assert not bench.engine.due(bench.now)
    bench.handed()
    assert bench.engine.due(bench.now)


@pytest.mark.parametrize("threshold", range(11))
def test_a_message_may_pass_where_it_leaves_nothing_due(threshold: int) -> None:
    bench = Bench(threshold_messages=threshold)
    bench.poll()
    for left in range(9, 0, -1):
        passes = bench.engine.may_pass()
        bench.arrived(1)
        bench.handed()
        assert passes == (not bench.engine.due(bench.now)) == (left > threshold)


def test_nothing_passes_by_bytes_or_past_what_is_buffered() -> None:
    by_bytes = Bench(None, max_bytes=1000)
    by_bytes.poll()
    assert not by_bytes.engine.may_pass()
    bench = Bench()
    bench.poll()
    bench.arrived(1)
    assert not bench.engine.may_pass()


def test_one_message_at_a_time_never_stalls() -> None:
    bench = Bench(1)
    for number in range(1, 100):
        assert bench.poll() == [pull(b"%d" % number, 1)]
        bench.arrived(1)
        assert bench.poll() == []
        bench.handed()


def test_buffer_by_count_starts_small_and_limits_bytes() -> None:
    bench = Bench(500)
    assert bench.poll() == [pull(b"1", 32)]
    bench.arrived(1)
    bench.engine.note_size(100)
    assert bench.poll() == [pull(b"2", 468)]
    bench.arrived(499)
    bench.engine.note_size(1 << 20)
    bench.handed(492)
    assert bench.poll() == [pull(b"3", 8)]
    bench.arrived(8)
    bench.engine.note_size(1 << 30)
    bench.handed(16)
    assert bench.poll() == [pull(b"4", 1)]
    # Short ones again: it grows step by step, not at once.
    asked = []
    for _ in range(200):
        bench.arrived(1)
        bench.engine.note_size(100)
        bench.handed()
        asked += [each.batch for each in bench.pulls()]
    assert asked[:3] == [1, 1, 1]
    assert bench.engine.requests.outstanding > 250


def test_bytes_are_filled_again_at_the_threshold() -> None:
    bench = Bench(None, max_bytes=1000)
    assert bench.poll() == [pull(b"1", 1_000_000, 1000)]
    bench.arrived(2, 700)
    assert (bench.engine.budget.buffered_bytes, bench.engine.requests.outstanding_bytes) == (
        700,
        300,
    )
    bench.handed(1, 350)
    assert bench.poll() == []
    bench.status(409, "Message Size Exceeds MaxBytes", Nats_Pending_Bytes=300)
    assert bench.poll() == [pull(b"2", 1_000_000, 650)]


def test_bytes_used_up_end_a_request_without_a_status() -> None:
    bench = Bench(None, max_bytes=1000)
    bench.poll()
    bench.arrived(3, 1000)
    assert len(bench.engine.requests.open) == 0
    bench.handed(3, 333)
    assert bench.pulls() == [pull(b"2", 1_000_000, 999)]


def test_more_bytes_than_requested_leave_no_debt() -> None:
    bench = Bench(None, max_bytes=1000)
    bench.poll()
    bench.arrived(3, 1300)
    bench.handed(3, 433)
    assert bench.engine.requests.outstanding_bytes == 0
    [again] = bench.pulls()
    assert again.max_bytes == 999


def test_stopping_asks_for_no_more() -> None:
    bench = Bench()
    bench.poll()
    bench.engine.stop()
    bench.arrived(10)
    bench.handed(10)
    assert bench.poll() == []
    assert bench.engine.wake_at() == NEVER


def test_an_age_limit_starts_small_and_follows_the_pace() -> None:
    from attrs import evolve

    bench = Bench(500)
    limits = evolve(bench.limits, max_age=10.0)
    engine = PullEngine(limits, lambda: b"1", 0.0)
    [first] = engine.poll(0.0)
    assert first == pull(b"1", 32)
    engine.arrived(32, 0)
    for second in range(1, 33):
        engine.handed_over(0, float(second))
    assert engine.poll(33.0) == [pull(b"1", 10)]


# ---- the end of a request, by its status

AGAIN, WARNED, OVER = Then.AGAIN, Then.WARNED, Then.OVER
TABLE = [(row.code, row.text, row.then, row.error) for row in STATUSES]
CASES = pytest.mark.parametrize(("code", "text", "wanted", "error"), TABLE)


@CASES
def test_an_end_with_nothing_delivered(code: int, text: str, wanted: Then, error: Any) -> None:
    bench = Bench()
    bench.poll()
    bench.status(code, text)
    actions = bench.poll()
    assert (bench.engine.requests.outstanding > 0) is (wanted == AGAIN)
    if wanted == OVER:
        [end] = actions
        assert isinstance(end, Finish)
        assert type(end.error) is error
        bench.now += 1000
        assert bench.poll() == []
        return
    warnings = [action for action in actions if isinstance(action, PullWarning)]
    assert len(warnings) == (wanted == WARNED)
    for warning in warnings:
        assert f"{code} {text}".strip() in warning.text
        assert not warning.again
    assert [type(each) for each in actions if isinstance(each, DropPin)] == [DropPin] * (
        code == 423
    )
    if wanted != AGAIN:
        assert bench.engine.wake_at() == pytest.approx(0.05)
        bench.now = bench.engine.wake_at()
        assert bench.pulls() == [pull(b"2", 10)]
    # Exactly one request is open again in any case.
    assert len(bench.engine.requests.open) == 1
    assert bench.pulls() == []


@CASES
def test_an_end_after_messages(code: int, text: str, wanted: Then, error: Any) -> None:
    """After progress, a repeatable status causes no pause, and a refusal ends nothing."""
    bench = Bench()
    bench.poll()
    bench.arrived(3)
    bench.handed(3)
    bench.status(code, text)
    terminal = code in {400, 412} or text in {"Consumer Deleted", "Consumer is push based"}
    actions = bench.poll()
    assert any(isinstance(action, Finish) for action in actions) is terminal
    if terminal:
        return
    waits = code in {503, 599} or "Exceeded " in text or text == "Something New"
    assert (len(bench.engine.requests.open) == 0) is waits
    assert any(isinstance(action, PullWarning) for action in actions) is waits
    bench.now += 0.05
    bench.poll()
    assert bench.engine.requests.outstanding == 10


@CASES
def test_an_end_of_a_request_that_is_not_open_changes_nothing(
    code: int, text: str, wanted: Then, error: Any
) -> None:
    bench = Bench()
    bench.poll()
    bench.status(code, text, b"OLD", Nats_Pending_Messages=10)
    assert bench.poll() == []
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (10, 1)


def test_a_probe_without_responders_lets_the_engine_pull_again() -> None:
    bench = Bench()
    bench.poll()
    bench.engine.probe_failed(bench.now)
    assert bench.poll() == [], "it pulls after a pause only"
    # More probes fail meanwhile: they do not extend the pause.
    wake_at = bench.engine.wake_at()
    bench.engine.probe_failed(bench.now)
    assert bench.engine.wake_at() == wake_at > bench.now
    bench.now = wake_at
    assert len(bench.pulls()) == 1


@CASES
def test_no_status_becomes_a_tight_loop(code: int, text: str, wanted: Then, error: Any) -> None:
    """A server that ends every request at once receives few requests in a simulated minute."""
    bench = Bench()
    sent = len(bench.pulls())
    while bench.now < 60.0:
        bench.status(code, text, b"%d" % sent)
        actions = bench.poll()
        if not any(isinstance(action, SendPull) for action in actions):
            if bench.engine.wake_at() == NEVER:
                break
            assert bench.engine.wake_at() > bench.now
            bench.now = bench.engine.wake_at()
            actions = bench.poll()
        new = sum(isinstance(action, SendPull) for action in actions)
        assert new == 1
        sent += new
        assert sent <= 22
    assert sent == 1 if wanted == OVER else sent >= 10


@CASES
def test_repeated_trouble_is_reported_once(code: int, text: str, wanted: Then, error: Any) -> None:
    bench = Bench()
    told: list[bool] = []
    for number in range(1, 6):
        bench.poll()
        bench.status(code, text, b"%d" % number)
        told += [a.again for a in bench.poll() if isinstance(a, PullWarning)]
        bench.now += 10.0
    assert told == ([False, True, True, True, True] if wanted == WARNED else [])
    if wanted == WARNED:
        bench.poll()
        bench.status(100, "Idle Heartbeat")
        bench.status(code, text, b"6")
        assert [a.again for a in bench.poll() if isinstance(a, PullWarning)] == [False]


def test_pauses_grow_and_end_with_progress() -> None:
    bench = Bench()
    pauses: list[float] = []
    for number in range(1, 10):
        assert bench.pulls()
        bench.status(503, "", b"%d" % number)
        bench.poll()
        pauses.append(round(bench.engine.wake_at() - bench.now, 3))
        bench.now = bench.engine.wake_at()
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    bench.poll()
    bench.arrived(1)
    bench.handed()
    bench.status(503, "", b"10")
    bench.poll()
    assert bench.engine.wake_at() - bench.now == pytest.approx(0.05)


def test_request_that_lived_makes_the_next_pause_short() -> None:
    bench = Bench()
    for number in range(1, 6):
        bench.poll()
        bench.status(503, "", b"%d" % number)
        bench.poll()
        bench.now = bench.engine.wake_at()
    bench.poll()
    bench.now += 30.0
    bench.status(408, "Request Timeout", b"6")
    assert len(bench.pulls()) == 1
    bench.status(503, "", b"7")
    bench.poll()
    assert bench.engine.wake_at() - bench.now == pytest.approx(0.05)


def test_a_wait_of_thirty_seconds_is_no_hurry() -> None:
    bench = Bench()
    for number in range(1, 50):
        assert bench.poll() == [pull(b"%d" % number, 10)]
        bench.now += 30.0 - 1e-6
        bench.engine.note_response(bench.now - 1)
        bench.status(408, "Request Timeout", b"%d" % number, Nats_Pending_Messages=10)


def test_a_big_message_behind_a_full_buffer_is_no_trouble() -> None:
    bench = Bench(None, max_bytes=1000)
    bench.poll()
    bench.arrived(1, 400)
    bench.status(409, "Message Size Exceeds MaxBytes", Nats_Pending_Bytes=600)
    assert bench.poll() == [pull(b"2", 1_000_000, 600)]
    bench.status(409, "Message Size Exceeds MaxBytes", b"2", Nats_Pending_Bytes=600)
    assert bench.poll() == []
    bench.handed(1, 400)
    bench.now = bench.engine.wake_at()
    assert bench.poll() == [pull(b"3", 1_000_000, 1000)]
    bench.status(409, "Message Size Exceeds MaxBytes", b"3", Nats_Pending_Bytes=1000)
    [warning] = bench.poll()
    assert isinstance(warning, PullWarning)


# ---- several requests


def two_requests() -> Bench:
    """Ten messages requested, six received, three taken; then three more requested."""
    bench = Bench(threshold_messages=9)
    bench.poll()
    bench.arrived(6)
    bench.handed(3)
    assert bench.poll() == [pull(b"2", 3)]
    assert (bench.engine.budget.buffered, bench.engine.requests.outstanding) == (3, 7)
    return bench


def test_messages_count_against_the_oldest_request() -> None:
    bench = two_requests()
    bench.arrived(5)
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (2, 1)
    bench.arrived(2)
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (0, 0)


@pytest.mark.parametrize(
    ("token", "left", "wanted"),
    [(b"1", 4, 3), (b"1", 6, 1), (b"1", 2, 5), (b"1", 99, 0), (b"2", 3, 4), (b"2", 1, 6)],
)
def test_pending_headers_put_the_books_right(token: bytes, left: int, wanted: int) -> None:
    bench = two_requests()
    bench.status(408, "Request Timeout", token, Nats_Pending_Messages=left)
    assert bench.engine.requests.outstanding == wanted


def test_pending_bytes_put_the_books_right() -> None:
    bench = Bench(None, max_bytes=1000, threshold_bytes=900)
    bench.poll()
    bench.arrived(1, 300)
    bench.handed(1, 300)
    assert bench.poll() == [pull(b"2", 1_000_000, 300)]
    assert bench.engine.requests.outstanding_bytes == 1000
    bench.status(408, "Request Timeout", Nats_Pending_Messages=10, Nats_Pending_Bytes=900)
    assert bench.engine.requests.outstanding_bytes == 100
    bench.status(408, "Request Timeout", b"2", Nats_Pending_Messages=10, Nats_Pending_Bytes=9)
    assert bench.engine.requests.outstanding_bytes == 0


def test_a_request_full_by_the_books_may_end_with_a_remainder() -> None:
    bench = two_requests()
    bench.arrived(4)
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (3, 1)
    bench.status(408, "Request Timeout", b"1", Nats_Pending_Messages=2)
    assert bench.engine.requests.outstanding == 1


def test_a_status_without_headers_voids_its_request_alone() -> None:
    bench = two_requests()
    bench.status(409, "Leadership Change", b"1")
    assert bench.engine.requests.outstanding == 3
    bench.status(409, "Leadership Change", b"2")
    assert bench.engine.requests.outstanding == 0


def test_messages_beyond_all_requests_leave_no_debt() -> None:
    bench = Bench()
    bench.poll()
    bench.arrived(25)
    assert (bench.engine.budget.buffered, bench.engine.requests.outstanding) == (25, 0)
    bench.handed(25)
    assert bench.poll() == [pull(b"2", 10)]


def test_a_pause_ends_though_another_request_is_open() -> None:
    bench = two_requests()
    bench.handed(3)
    bench.status(409, "Exceeded MaxWaiting", b"1")
    bench.poll()
    assert bench.engine.wake_at() == pytest.approx(0.05)
    bench.now = 0.06
    assert bench.pulls() == [pull(b"3", 7)]
    assert bench.engine.wake_at() == 30.0


# ---- silence and links


def test_silence_is_reported_once_and_pulled_over() -> None:
    bench = Bench()
    bench.poll()
    bench.now = 29.9
    assert bench.poll() == []
    bench.now = 30.0
    warning, again = bench.poll()
    assert isinstance(warning, PullWarning)
    assert "two heartbeats" in warning.text
    assert warning.status is None
    assert not warning.again
    assert again == pull(b"2", 10)
    assert bench.poll() == []
    bench.now = 60.0
    warning, again = bench.poll()
    assert isinstance(warning, PullWarning)
    assert warning.again
    assert again == pull(b"3", 10)
    # Messages of cancelled requests are accepted and not counted.
    bench.status(408, "Request Timeout", b"1", Nats_Pending_Messages=10)
    assert bench.poll() == []


def test_signs_of_life_keep_the_watchdog_quiet() -> None:
    bench = Bench()
    bench.poll()
    for _ in range(20):
        bench.now += 15.0
        bench.status(100, "Idle Heartbeat")
        assert bench.poll() == []
    bench.engine.note_response(bench.now + 10)
    bench.now += 39.0
    assert bench.poll() == []
    bench.engine.note_response(bench.now - 50)
    bench.now += 1.0
    assert len(bench.poll()) == 2


def test_an_owner_that_was_away_is_no_silent_server() -> None:
    bench = Bench()
    bench.poll()
    bench.arrived(1)
    bench.now = 100.0
    bench.handed()
    assert bench.poll(watch=False) == []
    assert bench.engine.wake_at() < bench.now
    assert len(bench.poll()) == 2


def test_watchdog_rests_without_open_requests() -> None:
    bench = Bench()
    bench.poll()
    bench.arrived(10)
    bench.now = 1000.0
    assert bench.poll() == []


def test_a_lost_link_voids_and_the_next_pulls_at_once() -> None:
    bench = Bench()
    bench.poll()
    bench.arrived(3)
    bench.engine.lost()
    assert (bench.engine.requests.outstanding, bench.engine.budget.buffered) == (0, 3)
    assert bench.engine.wake_at() == NEVER
    bench.now = 500.0
    assert bench.poll() == []
    bench.engine.restored(bench.now)
    assert bench.poll() == [pull(b"2", 7)]
    assert bench.engine.wake_at() == 530.0


def test_a_link_that_broke_unnoticed_voids_too() -> None:
    bench = Bench()
    bench.poll()
    bench.engine.restored(bench.now)
    assert bench.poll() == [pull(b"2", 10)]
    assert (bench.engine.requests.outstanding, len(bench.engine.requests.open)) == (10, 1)


def kept(engine: PullEngine) -> int:
    """Return the number of items in the containers of an engine."""
    parts = [*gc.get_referents(engine), *gc.get_referents(*gc.get_referents(engine))]
    own = {id(part): part for part in parts if isinstance(part, dict | set | list | deque)}
    return sum(map(len, own.values()))


def test_full_requests_are_not_kept_for_ever() -> None:
    bench, sizes = Bench(), list[int]()
    for _ in range(100):
        bench.poll()
        bench.arrived(10)
        bench.handed(10)
        sizes.append(kept(bench.engine))
    assert sizes[0] == sizes[-1]


def test_full_requests_do_not_pile_up_while_another_is_open() -> None:
    bench, sizes = Bench(), list[int]()
    for _ in range(2000):
        bench.poll()
        bench.arrived(1)
        bench.handed()
        assert len(bench.engine.requests.open)
        sizes.append(kept(bench.engine))
    assert sizes[0] < max(sizes) <= sizes[0] + 65


def test_a_new_link_ends_a_pause() -> None:
    bench = Bench()
    bench.poll()
    bench.status(503)
    bench.poll()
    bench.engine.restored(bench.now)
    assert bench.pulls() == [pull(b"2", 10)]


def test_recovered_messages_are_sent_after_a_pause() -> None:
    bench = Bench()
    bench.poll()
    bench.status(409, "Consumer Deleted")
    [end] = bench.poll()
    assert isinstance(end, Finish)
    due = bench.engine.go_on(bench.now)
    assert bench.poll() == []
    assert due == bench.engine.wake_at()
    bench.now = due
    assert bench.poll() == [pull(b"2", 10)]


def test_pause_between_recoveries_has_a_minimum_and_grows() -> None:
    bench = Bench()
    bench.poll()
    bench.status(409, "Consumer Deleted")
    bench.poll()
    start = bench.now
    pauses = [bench.engine.go_on(start, 0.25) - start for _ in range(5)]
    assert pauses == pytest.approx([0.25, 0.25, 0.25, 0.4, 0.8])


def test_a_request_is_no_larger_than_the_consumer_allows() -> None:
    bench = Bench(bounds=PullBounds(max_batch=4))
    assert bench.poll() == [pull(b"1", 4)]
    assert bench.poll() == [pull(b"2", 4)]
    assert bench.poll() == []
    bench.arrived(8)
    bench.handed(3)
    assert bench.poll() == [pull(b"3", 4)]
    by_bytes = Bench(None, max_bytes=1000, bounds=PullBounds(max_batch=4))
    assert by_bytes.poll() == [pull(b"1", 4, 1000)]
    by_bytes.arrived(4, 100)
    assert by_bytes.poll() == [pull(b"2", 4, 900)]


def test_open_requests_are_limited_by_max_waiting() -> None:
    for most in (1, 2):
        bench = Bench(bounds=PullBounds(max_batch=2, max_waiting=most))
        assert [len(bench.poll()) for _ in range(3)] == [1] * most + [0] * (3 - most)
        bench.arrived(2)
        assert bench.pulls() == [pull(b"%d" % (most + 1), 2)]


def test_a_request_to_keep_a_pin_waits_for_the_end_of_the_one_before() -> None:
    bounds = PullBounds(pull_every=4.0, max_expires=3.0, max_waiting=1)
    bench = Bench(bounds=bounds, priority=Priority(group="g"))
    assert len(bench.pulls()) == 1
    bench.now = 5.0
    assert not bench.pulls()
    assert bench.engine.wake_at() > bench.now
    bench.status(408, "Request Timeout")
    assert len(bench.pulls()) == 1


# ---- keeping a pin


def pinned(max_messages: int | None = 10, **options: Any) -> Bench:
    bounds = PullBounds(pull_every=4.0, max_expires=3.0)
    return Bench(max_messages, bounds=bounds, priority=Priority(group="g"), **options)


def test_pull_to_keep_a_pin_with_enough_messages() -> None:
    bench = pinned()
    assert bench.poll() == [pull(b"1", 10)]
    bench.arrived(10)
    assert bench.engine.grant() == 0
    assert bench.engine.wake_at() == 4.0
    bench.now = 3.9
    assert bench.poll() == []
    bench.now = 4.0
    assert bench.engine.due(bench.now)
    assert bench.poll() == [pull(b"2", 1)]
    assert bench.poll() == []
    assert bench.engine.wake_at() == 8.0


def test_pull_to_keep_a_pin_with_enough_bytes() -> None:
    bench = pinned(None, max_bytes=1000)
    bench.poll()
    bench.arrived(3, 1000)
    bench.now = 4.0
    assert bench.poll() == [pull(b"2", 1, None)]
    bench.arrived(1, 5000)
    assert (bench.engine.requests.outstanding, bench.engine.requests.outstanding_bytes) == (0, 0)


def test_a_pause_and_the_end_of_what_is_wanted_come_before_a_pin() -> None:
    bench = pinned()
    bench.poll()
    bench.now = 3.99
    bench.status(503)
    bench.now = 4.0
    assert bench.pulls() == []
    assert bench.engine.wake_at() == pytest.approx(4.04)
    bench = pinned(stop_after=3)
    assert bench.poll() == [pull(b"1", 3)]
    bench.now = 40.0
    assert bench.poll(watch=False) == []
    # Of the heartbeats alone.
    assert bench.engine.wake_at() == 30.0


def test_pull_without_a_group_keeps_no_pin() -> None:
    bench = Bench(bounds=PullBounds(pull_every=4.0))
    bench.poll()
    bench.arrived(10)
    bench.now = 40.0
    assert bench.poll() == []
    assert bench.engine.grant() == 4


def test_actions_that_were_not_done_come_again() -> None:
    bench = Bench()
    actions = bench.poll()
    bench.engine.put_back(actions)
    bench.status(503)
    assert bench.poll()[0] == actions[0]
    bench.engine.put_back([])
    assert bench.poll() == []


def test_the_refused_limit_is_named() -> None:
    for text, limit, asked, allowed in (
        ("Exceeded MaxRequestBatch of 2", "max_batch", 10, 2),
        ("Exceeded MaxRequestExpires of 1s", "max_expires", 30.0, 1.0),
        ("Exceeded MaxRequestExpires of 1h2m3.5s", "max_expires", 30.0, 3723.5),
        ("Exceeded MaxRequestExpires of 100ms", "max_expires", 30.0, 0.1),
        ("Exceeded MaxRequestExpires of soon", "max_expires", 30.0, None),
        ("Exceeded MaxRequestMaxBytes of 100", "max_bytes", None, 100),
        ("Exceeded MaxRequestMaxBytes of " + "9" * 5000, "max_bytes", None, None),
    ):
        bench = Bench()
        bench.poll()
        bench.status(409, text)
        [end] = bench.poll()
        assert isinstance(end, Finish)
        assert isinstance(end.error, errors.PullRefused)
        assert (end.error.limit, end.error.asked, end.error.allowed) == (limit, asked, allowed)


def test_what_grew_beyond_a_limit_asks_for_no_more_than_that() -> None:
    bench = Bench(500)
    assert bench.poll() == [pull(b"1", 32)]
    bench.arrived(32)
    bench.engine.note_size(100)
    bench.handed()
    assert bench.poll() == [pull(b"2", 469)]
    bench.status(409, "Exceeded MaxRequestBatch of 40", b"2")
    warning, again = bench.poll()
    assert isinstance(warning, PullWarning)
    assert again == pull(b"3", 40)
    bench.arrived(40)
    assert bench.poll() == [pull(b"4", 40)]
    # The limit is lowered meanwhile.
    bench.status(409, "Exceeded MaxRequestBatch of 35", b"4")
    assert [type(each) for each in bench.poll()] == [PullWarning, SendPull]
    assert bench.engine.requests.outstanding == 35
    # Invalid: more than requested.
    bench.status(409, "Exceeded MaxRequestBatch of 35", b"5")
    assert bench.pulls() == []
    assert bench.engine.wake_at() == pytest.approx(0.05)


def test_by_bytes_the_number_of_messages_is_not_the_users() -> None:
    bench = Bench(None, max_bytes=1000)
    bench.poll()
    bench.status(409, "Exceeded MaxRequestBatch of 2")
    assert bench.pulls() == [pull(b"2", 2, 1000)]
    bench.status(409, "Exceeded MaxRequestMaxBytes of 100", b"2")
    [end] = bench.poll()
    assert isinstance(end, Finish)


def test_no_messages_are_no_progress() -> None:
    bench = Bench()
    bench.poll()
    bench.status(503)
    bench.poll()
    bench.arrived(0)
    assert bench.poll() == []
    assert bench.engine.wake_at() == pytest.approx(0.05)


def test_every_status_has_an_error() -> None:
    limits = Bench().limits
    for row in STATUSES:
        error = pull_error(status(row.code, row.text), limits)
        assert isinstance(error, row.error or errors.TwinstreamError)
        assert str(error)


# ---- imports that let only the first response to a request through


def quiet(engine: PullEngine, now: float) -> list[Action]:
    """Poll when the engine asks for it, and return the actions."""
    wake_at = engine.wake_at()
    assert wake_at == pytest.approx(now)
    return engine.poll(wake_at)


def test_a_single_response_to_each_probe_is_noticed() -> None:
    engine = Bench(heartbeat=5.0).engine
    engine.poll(0.0)
    engine.arrived(1, 0)
    engine.note_response(1.0)
    [first] = quiet(engine, 1.5)
    assert isinstance(first, SendProbe)
    engine.arrived(1, 0)
    engine.note_response(1.6)
    [second] = quiet(engine, 2.4)
    assert isinstance(second, SendProbe)
    engine.status(status(100, "Idle Heartbeat", second.token), 2.5)
    assert quiet(engine, 3.3) == [Probed(Verdict.SINGLE)]


def test_two_responses_to_a_probe_end_the_doubt() -> None:
    engine = Bench(heartbeat=5.0).engine
    engine.poll(0.0)
    engine.arrived(1, 0)
    engine.note_response(1.0)
    [probe] = quiet(engine, 1.5)
    assert isinstance(probe, SendProbe)
    for at in (1.6, 1.7):
        engine.status(status(100, "Idle Heartbeat", probe.token), at)
    assert engine.poll(1.7) == [Probed(Verdict.SEVERAL)]
    assert engine.poll(3.0) == []


@pytest.mark.parametrize("responds", [False, True])
def test_a_probe_without_response_or_that_is_refused_shows_nothing(responds: bool) -> None:
    engine = Bench(heartbeat=5.0).engine
    engine.poll(0.0)
    engine.arrived(1, 0)
    engine.note_response(1.0)
    [probe] = quiet(engine, 1.5)
    assert isinstance(probe, SendProbe)
    if responds:
        engine.status(status(409, "Exceeded MaxWaiting", probe.token), 1.6)
        assert engine.poll(2.4) == []
    else:
        assert quiet(engine, 3.5) == [Probed(Verdict.UNKNOWN)]
    assert engine.poll(5.0) == []


def test_several_responses_or_none_cause_no_probe() -> None:
    engine = Bench(heartbeat=5.0).engine
    engine.poll(0.0)
    assert engine.wake_at() == 10.0
    engine.arrived(2, 0)
    engine.note_response(1.0)
    assert engine.wake_at() == 11.0
    assert engine.poll(2.0) == []
