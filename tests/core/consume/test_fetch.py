"""One fetch: every status in every state, silence, a lost connection, and sizes."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import block, delivery, status_frame
from tests.fake.statuses import STATUSES
from twinstream import errors
from twinstream.core.consume.batch import BatchEnd
from twinstream.core.consume.fetch import GRACE, Fetch, frame_size
from twinstream.core.consume.pull_request import Priority, fetch_limits

TABLE = [(row.code, row.text, row.empty, row.some) for row in STATUSES]
CASES = pytest.mark.parametrize(("code", "text", "empty", "some"), TABLE)


def fetching(count: int = 3, *, max_bytes: int | None = None, timeout: float = 5.0) -> Fetch:
    return Fetch(fetch_limits(count, max_bytes, timeout, "full"), b"T", 0.0, timeout)


@CASES
def test_a_status_with_nothing_in_hand(code: int, text: str, empty: Any, some: Any) -> None:
    fetch = fetching(max_bytes=100)
    assert not fetch.take(status_frame(code, text))
    assert fetch.is_over
    assert fetch.detail == f"{code} {text}".strip()
    if isinstance(empty, BatchEnd):
        assert (fetch.end, fetch.error) == (empty, None)
    else:
        assert fetch.end is None
        assert type(fetch.error) is empty


@CASES
def test_a_status_after_a_message(code: int, text: str, empty: Any, some: Any) -> None:
    """An error discards no received messages: they are returned with the text of the status."""
    fetch = fetching(max_bytes=1000)
    assert fetch.take(delivery(1))
    fetch.take(status_frame(code, text))
    assert (fetch.end, fetch.error) == (some, None)
    assert fetch.frames == [delivery(1)]
    assert fetch.detail == f"{code} {text}".strip()


@CASES
def test_a_status_of_another_request_is_not_ours(
    code: int, text: str, empty: Any, some: Any
) -> None:
    fetch = fetching()
    fetch.take(status_frame(code, text, b"OLD"))
    assert not fetch.is_over


@CASES
def test_a_status_after_the_end_changes_nothing(
    code: int, text: str, empty: Any, some: Any
) -> None:
    fetch = fetching(1)
    fetch.take(delivery(1))
    fetch.take(status_frame(code, text))
    assert (fetch.end, fetch.detail, fetch.error) == (BatchEnd.FILLED, "", None)
    assert fetch.is_clean


@pytest.mark.parametrize(("code", "text"), [(100, "Idle Heartbeat"), (100, "FlowControl Request")])
def test_a_sign_of_life_ends_nothing(code: int, text: str) -> None:
    fetch = fetching()
    fetch.take(status_frame(code, text))
    assert not fetch.is_over


def test_full_fetch_accepts_no_further_message() -> None:
    fetch = fetching(2)
    assert [fetch.take(delivery(n)) for n in (1, 2, 3)] == [True, True, False]
    assert (fetch.end, len(fetch.frames)) == (BatchEnd.FILLED, 2)


def test_bytes_fill_a_fetch() -> None:
    size = frame_size(delivery(1))
    fetch = fetching(10, max_bytes=2 * size)
    fetch.take(delivery(1))
    assert not fetch.is_over
    fetch.take(delivery(2))
    assert fetch.end is BatchEnd.BYTES_FILLED


def test_bytes_are_counted_without_the_pin() -> None:
    head = block("", Nats_Pin_Id="ABCDEFGHIJKLMNOPQRSTUV")
    frames = [delivery(seq) for seq in range(1, 6)]
    limits = fetch_limits(10, 5 * frame_size(frames[0]), 5.0, "full", Priority(group="g"))
    fetch = Fetch(limits, b"T", 0.0, 5.0)
    for subject, reply, _, body in frames:
        assert not fetch.is_over
        fetch.take((subject, reply, len(head), head + body))
    assert (fetch.end, fetch.is_clean) == (BatchEnd.BYTES_FILLED, True)


def test_more_bytes_than_requested_leave_the_inbox_unclean() -> None:
    """The server may count fewer bytes than the client, and send further messages."""
    fetch = fetching(10, max_bytes=2 * frame_size(delivery(1)) - 1)
    fetch.take(delivery(1))
    fetch.take(delivery(2))
    assert (fetch.end, fetch.is_clean) == (BatchEnd.BYTES_FILLED, False)


def test_sizes_are_the_servers() -> None:
    """Stored subject, reply, header block and payload count; inbox and framing do not."""
    head = b"NATS/1.0\r\nA: b\r\n\r\n"
    frame = (b"orders.new", b"$JS.ACK.x", len(head), head + b"payload" + b"\r\n")
    assert frame_size(frame) == len("orders.new") + len("$JS.ACK.x") + len(head) + len("payload")


def test_the_limit_of_the_consumer_is_named() -> None:
    fetch = fetching(3)
    fetch.take(status_frame(409, "Exceeded MaxRequestBatch of 2"))
    assert isinstance(fetch.error, errors.PullRefused)
    assert (fetch.error.limit, fetch.error.asked, fetch.error.allowed) == ("max_batch", 3, 2)
    fetch = fetching(3, max_bytes=1000)
    fetch.take(status_frame(409, "Exceeded MaxRequestMaxBytes of 100"))
    assert isinstance(fetch.error, errors.PullRefused)
    assert (fetch.error.limit, fetch.error.asked, fetch.error.allowed) == ("max_bytes", 1000, 100)


def test_a_lost_link_interrupts() -> None:
    fetch = fetching()
    fetch.take(delivery(1))
    fetch.lost()
    assert (fetch.end, fetch.frames) == (BatchEnd.INTERRUPTED, [delivery(1)])
    # The request may be alive on the server, so the inbox must not be used again.
    assert not fetch.is_clean
    full = fetching(1)
    full.take(delivery(1))
    full.lost()
    assert (full.end, full.is_clean) == (BatchEnd.FILLED, True)


def test_an_unknown_status_leaves_an_inbox_that_is_not_clean() -> None:
    fetch = fetching()
    fetch.take(status_frame(409, "Something New"))
    assert not fetch.is_clean


def test_the_server_ends_first() -> None:
    fetch = fetching(timeout=5.0)
    assert fetch.wake_at() == 5.0 + GRACE
    fetch.check(5.0, 0.0)
    assert not fetch.is_over
    fetch.check(5.0 + GRACE, 0.0)
    assert (fetch.end, fetch.is_clean) == (BatchEnd.EXPIRED, False)
    assert "did not end" in fetch.detail


def test_a_server_that_sends_other_frames_is_not_slow() -> None:
    fetch = fetching(timeout=5.0)
    fetch.check(5.05, 5.05)
    assert fetch.wake_at() == 5.0 + GRACE
    fetch.check(5.2, 5.2)
    assert (fetch.end, fetch.is_clean) == (BatchEnd.EXPIRED, False)


def test_two_missed_heartbeats_interrupt() -> None:
    fetch = fetching(timeout=60.0)
    assert fetch.wake_at() == 10.0
    fetch.check(9.9, 0.0)
    assert not fetch.is_over
    fetch.check(12.0, 8.0)
    assert not fetch.is_over
    assert fetch.wake_at() == 18.0
    fetch.check(18.0, 3.0)
    assert (fetch.end, fetch.is_clean) == (BatchEnd.INTERRUPTED, False)
    assert "two heartbeats" in fetch.detail


def test_a_check_after_the_end_changes_nothing() -> None:
    fetch = fetching(1)
    fetch.take(delivery(1))
    fetch.check(1000.0, 0.0)
    assert (fetch.end, fetch.is_clean) == (BatchEnd.FILLED, True)


@given(
    st.lists(st.sampled_from(["message", "heartbeat", "404", "409", "503", "old", "lost", "tick"])),
    st.integers(1, 4),
)
def test_any_history_ends_once_and_loses_nothing(steps: list[str], count: int) -> None:
    fetch = fetching(count)
    now, taken = 0.0, 0
    frames = {
        "heartbeat": status_frame(100, "Idle Heartbeat"),
        "404": status_frame(404, "No Messages"),
        "409": status_frame(409, "Leadership Change"),
        "503": status_frame(503),
        "old": status_frame(404, "No Messages", b"OLD"),
    }
    for step in steps:
        now += 1.0
        before = (fetch.is_over, fetch.end, fetch.error)
        if step == "message":
            taken += fetch.take(delivery(taken + 1))
        elif step == "lost":
            fetch.lost()
        elif step == "tick":
            fetch.check(now, 0.0)
        else:
            fetch.take(frames[step])
        assert len(fetch.frames) == taken <= count
        assert not (fetch.end and fetch.error)
        if before[0]:
            assert before == (fetch.is_over, fetch.end, fetch.error)
        if fetch.error is not None:
            assert not fetch.frames
    fetch.check(1e9, 0.0)
    assert fetch.is_over


@pytest.mark.parametrize("max_bytes", [None, 10_000])
def test_it_is_known_when_frames_arrived(max_bytes: int | None) -> None:
    fetch = fetching(max_bytes=max_bytes)
    arrived: deque[Any] = deque([delivery(1)])
    for at in (1.0, 2.0, 3.0):
        fetch.take_all(arrived, at)
        if at == 2.0:
            arrived.extend([delivery(2), status_frame(100, "Idle Heartbeat"), delivery(3)])
    assert fetch.arrivals == [(1, 1.0), (3, 3.0)]


@pytest.mark.parametrize("max_bytes", [None, 10_000])
@given(
    st.lists(
        st.sampled_from(
            [
                delivery(1),
                delivery(2),
                (b"orders.new", b"$JS.ACK.S.C.1.3.3.17.0", 20, b"NATS/1.0\r\nA: b\r\n\r\nx\r\n"),
                status_frame(100, "Idle Heartbeat", b"T"),
                status_frame(408, "Request Timeout", b"T"),
                status_frame(408, "Request Timeout", b"OLD"),
            ]
        )
    ),
    st.lists(st.integers(0, 4)),
)
def test_frames_taken_together_equal_frames_taken_one_by_one(
    max_bytes: int | None, frames: list[Any], portions: list[int]
) -> None:
    alone, together = fetching(max_bytes=max_bytes), fetching(max_bytes=max_bytes)
    for frame in frames:
        if not alone.is_over:
            alone.take(frame)
    arrived: deque[Any] = deque()
    rest = deque(frames)
    for size in [*portions, len(frames)]:
        arrived.extend(rest.popleft() for _ in range(min(size, len(rest))))
        together.take_all(arrived, 0.0)
    assert together.frames == alone.frames
    assert (together.end, together.detail) == (alone.end, alone.detail)
    # Messages after the end remain for the next fetch.
    if not alone.is_over:
        assert not arrived
