"""What a writing task makes of the outcomes of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from twinstream.errors import (
    MessageIdInProcess,
    OutcomeUnknown,
    PublishFailure,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import PublishRequest
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.publish_task import publish_rows
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

LEAST = {"nats.servers": "nats://127.0.0.1:1", "stream": "S"}
ROWS = [OutMessage(f"s.{at}", b"", None, None, None) for at in range(3)]
ME = TaskIdentity("w", 0, 0)
STORED = PubAck(stream="S", seq=1)
DUPLICATE = PubAck(stream="S", seq=1, duplicate=True)
HELD = MessageIdInProcess("in process", code=409, err_code=10158)

Outcomes = list[PubAck | TwinstreamError]


class Answering:
    """Answers each row with an outcome, in turn; each time it is called it uses the next list."""

    def __init__(self, *passes: Outcomes) -> None:
        self._passes = list(passes)
        self.requests: list[list[PublishRequest]] = []
        self.timeouts: list[float] = []

    def publish_many(
        self, requests: Iterable[PublishRequest], *, timeout: float, **_: Any
    ) -> Answering:
        self.requests.append(list(requests))
        self.timeouts.append(timeout)
        return self

    def __enter__(self) -> list[PubAck | PublishFailure]:
        outcomes = self._passes.pop(0)
        return [
            PublishFailure(request, each) if isinstance(each, TwinstreamError) else each
            for request, each in zip(self.requests[-1], outcomes, strict=True)
        ]

    def __exit__(self, *_: object) -> None: ...


def unknown(refusal: TwinstreamError) -> OutcomeUnknown:
    """What is said where an attempt had no answer and the next one had this."""
    error = OutcomeUnknown("an attempt had no answer and the next was refused")
    error.__cause__ = refusal
    return error


def test_a_row_that_was_sent_twice_counts_as_present() -> None:
    """A lost answer, then a refusal: one of the two is stored, whichever it was."""
    refusal = WrongLastSequence("wrong last sequence: 5", code=400, err_code=10071)
    options = SinkOptions.parse({**LEAST, "idempotence": "insert"})
    jet: Any = Answering([STORED, unknown(refusal), refusal])
    report = publish_rows(jet, options, iter(ROWS), ME)
    assert (report.stored, report.present) == (1, 2)
    jet = Answering([OutcomeUnknown("no answer")])
    with pytest.raises(OutcomeUnknown):
        publish_rows(jet, options, iter(ROWS[:1]), ME)


@pytest.mark.parametrize(("window", "patience"), [(200.0, 230.0), (None, 150.0), (86_400.0, 630.0)])
def test_rows_with_ids_in_process_are_published_until_the_window_ends(
    window: float | None, patience: float
) -> None:
    jet: Any = Answering([HELD, STORED, unknown(HELD)], [STORED, DUPLICATE])
    options = SinkOptions.parse(LEAST)
    with pytest.warns(RuntimeWarning, match=f"IDs of 2 rows .* s.0: .* for {patience:g} s"):
        report = publish_rows(jet, options, iter(ROWS), ME, window)
    assert (report.stored, report.present) == (2, 1)
    first, second = jet.requests
    assert second == [first[0], first[2]]
    assert jet.timeouts == [30.0, patience]


def test_an_id_that_is_held_for_too_long_fails_the_task() -> None:
    jet: Any = Answering([STORED, HELD, STORED], [unknown(HELD)])
    with pytest.warns(RuntimeWarning), pytest.raises(OutcomeUnknown):
        publish_rows(jet, SinkOptions.parse(LEAST), iter(ROWS), ME)


def test_no_more_rows_wait_than_may_be_in_flight() -> None:
    jet: Any = Answering([HELD, HELD, STORED])
    with pytest.raises(MessageIdInProcess):
        publish_rows(jet, SinkOptions.parse({**LEAST, "maxInFlight": "1"}), iter(ROWS), ME)


def test_a_row_whose_subject_has_a_write_in_flight_is_inserted_again() -> None:
    """The write in flight may be the row's own at a leader that was cut off, which is then lost."""
    flight = WrongLastSequence("wrong last sequence", code=400, err_code=10164)
    taken = WrongLastSequence("wrong last sequence: 5", code=400, err_code=10071)
    options = SinkOptions.parse({**LEAST, "idempotence": "insert"})
    jet: Any = Answering([flight, STORED, unknown(flight)], [flight, taken], [STORED])
    report = publish_rows(jet, options, iter(ROWS), ME)
    assert (report.stored, report.present) == (2, 1)
    first, second, third = jet.requests
    assert (second, third) == ([first[0], first[2]], [first[0]])


def test_a_write_that_stays_in_flight_fails_the_task() -> None:
    flight = WrongLastSequence("wrong last sequence", code=400, err_code=10164)
    options = SinkOptions.parse({**LEAST, "idempotence": "insert", "ackTimeoutMs": "1"})
    with pytest.raises(WrongLastSequence):
        publish_rows(Answering([flight]), options, iter(ROWS[:1]), ME)  # type: ignore[arg-type]
