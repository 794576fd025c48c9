"""The ledger's writer on a server, without Spark: lost answers, lost batches, other writers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from js_sync import Connection, Stream
from tests.unhurried import connected
from twinstream.errors import NoResponders, RequestTimeout, WrongLastSequence
from twinstream.spark.errors import LedgerError, SchemaError
from twinstream.spark.sink.ledger import CHUNK, LedgerWriter
from twinstream.spark.sink.ledger_tasks import refuse_other_tasks
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.report import JetStreamCommit
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity
from twinstream.testing import NatsServer

ROWS = 2 * CHUNK + 2
BATCHES = 3
"""Atomic batches for so many rows."""


class Troubled:
    """A connection whose requests meet trouble: `troubles` are tried in turn, one a request."""

    def __init__(self, nc: Connection, *troubles: Callable[..., Any] | None) -> None:
        self._nc = nc
        self.server_info = nc.server_info
        self._troubles = list(troubles)
        self.requests = 0

    def request(self, subject: str, data: bytes, **options: Any) -> Any:
        self.requests += 1
        trouble = self._troubles.pop(0) if self._troubles else None
        if trouble is None:
            return self._nc.request(subject, data, **options)
        return trouble(self._nc, subject, data, **options)

    def publish(self, subject: str, data: bytes, **options: Any) -> None:
        self._nc.publish(subject, data, **options)


def lost_answer(nc: Connection, subject: str, data: bytes, **options: Any) -> Any:
    nc.request(subject, data, **options)
    raise RequestTimeout("the answer was lost")


def lost_question(nc: Connection, subject: str, data: bytes, **options: Any) -> Any:
    raise RequestTimeout("the question was lost")


class DiedError(Exception):
    """The end of an attempt."""


def death(nc: Connection, subject: str, data: bytes, **options: Any) -> Any:
    raise DiedError


def death_after(nc: Connection, subject: str, data: bytes, **options: Any) -> Any:
    nc.request(subject, data, **options)
    raise DiedError


def nobody(nc: Connection, subject: str, data: bytes, **options: Any) -> Any:
    raise NoResponders("no leader")


@pytest.fixture
def nc(server: NatsServer) -> Iterator[Connection]:
    with connected(server.url) as connection:
        yield connection


def write(
    nc: Any,
    stream: Stream,
    rows: int,
    batch: int = 0,
    partition: int = 0,
    order: Callable[[list[int]], Iterable[int]] = list,
    **options: Any,
) -> JetStreamCommit:
    """Write numbered rows, in an order that is theirs unless given."""
    prefix = stream.name.lower()
    given = {"nats.servers": "nats://127.0.0.1:1", "stream": stream.name, "idempotence": "ledger"}
    parsed = SinkOptions.parse({**given, "ledgerSubject": f"{prefix}.ledger", **options})
    messages = (
        OutMessage(f"{prefix}.n", b"%d" % at, None, None, None) for at in order([*range(rows)])
    )
    return LedgerWriter(nc, stream, parsed, TaskIdentity("w", batch, partition)).write(messages)


def stored(stream: Stream) -> list[int]:
    return [int(each.data) for each in stream.read(subjects=f"{stream.name.lower()}.n")]


@pytest.mark.parametrize("at", range(2 * BATCHES))
@pytest.mark.parametrize("trouble", [lost_answer, lost_question, nobody])
def test_each_failure_at_each_request_is_recovered(
    at: int, trouble: Callable[..., Any], nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)
    troubled = Troubled(nc, *[None] * at, trouble)
    report = write(troubled, stream, ROWS)
    assert (report.stored, report.present) == (ROWS, 0)
    assert stored(stream) == list(range(ROWS))
    assert len(list(stream.read(subjects=f"{stream.name.lower()}.ledger.w.0"))) == BATCHES
    again = write(nc, stream, ROWS)
    assert (again.stored, again.present) == (0, ROWS)
    assert stored(stream) == list(range(ROWS))


@pytest.mark.parametrize("at", range(2 * BATCHES))
@pytest.mark.parametrize("batches", range(1, BATCHES + 1))
def test_an_attempt_that_is_not_dead_yet_stores_nothing_twice(
    at: int, batches: int, nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    """The attempt before, of the same rows, is some batches ahead when the next has begun."""
    stream = make_stream(allow_atomic=True)

    def zombie(own: Connection, subject: str, data: bytes, **options: Any) -> Any:
        write(nc, stream, min(ROWS, (at // 2 + batches) * CHUNK))
        return own.request(subject, data, **options)

    report = write(Troubled(nc, *[None] * at, zombie), stream, ROWS)
    assert report.stored + report.present == ROWS
    assert stored(stream) == list(range(ROWS))


ORDERS: dict[str, Callable[[list[int]], Iterable[int]]] = {
    "backwards": lambda rows: reversed(rows),
    "second half first": lambda rows: [*rows[len(rows) // 2 :], *rows[: len(rows) // 2]],
    "at random": lambda rows: random.Random(7).sample(rows, len(rows)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batches", range(1, BATCHES + 1))
def test_a_repeat_may_have_its_rows_in_another_order(
    batches: int, order: str, nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)
    write(nc, stream, 5, batch=0)
    with pytest.raises(DiedError):
        write(Troubled(nc, *[None] * (2 * batches - 1), death_after), stream, ROWS, 1)
    already = len(stored(stream)) - 5
    report = write(nc, stream, ROWS, 1, order=ORDERS[order])
    assert (report.stored, report.present) == (ROWS - already, already)
    assert already == min(batches * CHUNK, ROWS)
    assert sorted(stored(stream)[5:]) == list(range(ROWS))
    assert stored(stream)[5 : 5 + already] == list(range(already)), "the first order stays"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at", range(2 * BATCHES))
@pytest.mark.parametrize("batches", range(1, BATCHES + 1))
def test_an_attempt_in_another_order_that_is_not_dead_yet_stores_nothing_twice(
    at: int, batches: int, order: str, nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)

    def zombie(own: Connection, subject: str, data: bytes, **options: Any) -> Any:
        # It ends when it has sent some batches, or all.
        with suppress(DiedError):
            write(Troubled(nc, *[None] * (2 * batches), death), stream, ROWS, order=ORDERS[order])
        return own.request(subject, data, **options)

    write(Troubled(nc, *[None] * at, zombie), stream, ROWS)
    assert sorted(stored(stream)) == list(range(ROWS))


def test_equal_rows_are_counted(nc: Connection, make_stream: Callable[..., Stream]) -> None:
    stream = make_stream(allow_atomic=True)
    thrice: Callable[[list[int]], Iterable[int]] = lambda rows: [*rows, *rows, 0]  # noqa: E731
    with pytest.raises(DiedError):
        write(Troubled(nc, None, None, death), stream, CHUNK, order=thrice)
    report = write(nc, stream, CHUNK, order=lambda rows: reversed([*thrice(rows)]))
    assert (report.stored, report.present) == (CHUNK + 1, CHUNK)
    expected = Counter(dict.fromkeys(range(CHUNK), 2))
    expected[0] = 3
    assert Counter(stored(stream)) == expected


def test_small_messages_make_small_batches(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    """An entry has the keys of its rows, and must not be larger than the stream takes."""
    stream = make_stream(allow_atomic=True, max_msg_size=1000)
    assert write(nc, stream, 100).stored == 100
    assert stored(stream) == list(range(100))
    assert write(nc, stream, 100, order=lambda rows: reversed(rows)).present == 100


def test_a_ledger_without_its_older_entries_is_refused(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)
    write(nc, stream, ROWS)
    first, *_ = stream.read(subjects=f"{stream.name.lower()}.ledger.w.0")
    stream.delete_message(first.seq)
    with pytest.raises(LedgerError, match="entries of batch 0, which record"):
        write(nc, stream, ROWS)
    assert stored(stream) == list(range(ROWS))


def test_a_quicker_attempt_with_other_rows_ends_this_one(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    """Nothing is stored behind rows that this attempt does not have."""
    stream = make_stream(allow_atomic=True)

    def other_attempt(own: Connection, subject: str, data: bytes, **options: Any) -> Any:
        write(nc, stream, ROWS + 1)
        return own.request(subject, data, **options)

    with pytest.raises(LedgerError, match=f"stored {ROWS + 1} rows, 1 of which are not among"):
        write(Troubled(nc, other_attempt), stream, ROWS)
    assert stored(stream) == list(range(ROWS + 1))


def test_batch_is_sent_again_after_losing_its_leader(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)

    # The commit meets "incomplete", then the batch goes out anew.
    class Forgetful(Troubled):
        def publish(self, subject: str, data: bytes, **options: Any) -> None:
            if self.requests > 1:
                super().publish(subject, data, **options)

    forgetful = Forgetful(nc)
    report = write(forgetful, stream, 10)
    assert (report.stored, report.present) == (10, 0)
    assert forgetful.requests == 4
    assert stored(stream) == list(range(10))


class Outdated:
    """A stream whose look-ups of the newest message return those in `found` first.

    Such responses come from a replica that has just lost the leadership and lacks messages.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.found: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def get_last_message(self, subject: str) -> Any:
        return self.found.pop() if self.found else self._stream.get_last_message(subject)


def test_responses_of_a_former_leader_do_not_end_the_attempt(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = Outdated(make_stream(allow_atomic=True))
    write(nc, stream, 10)
    first = stream.get_last_message(f"{stream.name.lower()}.ledger.w.0")

    def refused(own: Connection, subject: str, data: bytes, **options: Any) -> Any:
        # The newest entry is that of the third batch. The former leader knows the first one only.
        stream.found = [first]
        text = f"wrong last sequence: {first.seq}"
        raise WrongLastSequence(text, code=400, err_code=10071)

    troubled = Troubled(nc, *[None] * 4, refused)
    report = write(troubled, stream, ROWS, batch=1)
    assert (report.stored, report.present) == (ROWS, 0)
    assert not stream.found
    assert stored(stream) == [*range(10), *range(ROWS)]


def test_trouble_that_lasts_ends_the_attempt(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)
    with pytest.raises(NoResponders, match="no leader"):
        write(Troubled(nc, *[nobody] * 100), stream, 10, ackTimeoutMs="300")
    assert stored(stream) == []


def test_a_row_for_another_stream_is_named(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream, other = make_stream(allow_atomic=True), make_stream()
    prefix = stream.name.lower()
    rows = [f"{prefix}.n", f"{other.name.lower()}.n", f"{prefix}.n"]
    options = {"nats.servers": "nats://127.0.0.1:1", "stream": stream.name, "idempotence": "ledger"}
    parsed = SinkOptions.parse({**options, "ledgerSubject": f"{prefix}.ledger"})
    messages = iter([OutMessage(each, b"", None, None, None) for each in rows])
    with pytest.raises(SchemaError, match=f"{other.name.lower()}.n.* does not have"):
        LedgerWriter(nc, stream, parsed, TaskIdentity("w", 0, 0)).write(messages)
    assert stream.info().state.messages == 0


def test_a_last_row_for_another_stream_is_named(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    """The other stream answers the commit, and says what it lacks itself."""
    stream, other = make_stream(allow_atomic=True), make_stream()
    prefix = stream.name.lower()
    options = {"nats.servers": "nats://127.0.0.1:1", "stream": stream.name, "idempotence": "ledger"}
    parsed = SinkOptions.parse({**options, "ledgerSubject": f"{prefix}.ledger"})
    rows = [f"{prefix}.n", f"{other.name.lower()}.n"]
    messages = iter([OutMessage(each, b"", None, None, None) for each in rows])
    with pytest.raises(SchemaError, match=f"{other.name.lower()}.n.* does not have"):
        LedgerWriter(nc, stream, parsed, TaskIdentity("w", 0, 0)).write(messages)
    assert stream.info().state.messages == 0


def test_foreign_entries_in_the_ledger_are_reported(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(allow_atomic=True)

    def other_attempt(own: Connection, subject: str, data: bytes, **options: Any) -> Any:
        write(nc, stream, 5)
        return own.request(subject, data, **options)

    # The other one stored other rows behind the same fence.
    with pytest.raises(LedgerError, match=r"stored 5 rows, 1 of which are not among the 4 rows"):
        write(Troubled(nc, other_attempt), stream, 4)
    assert stored(stream) == list(range(5))
    with pytest.raises(LedgerError, match="other attempts of batch 0 stored 5 rows, 2 of which"):
        write(nc, stream, 3)
    write(nc, stream, 3, batch=4)
    with pytest.raises(LedgerError, match="the ledger is at batch 4, this is batch 3"):
        write(nc, stream, 3, batch=3)
    with pytest.raises(LedgerError, match="stored 3 rows, 1 of which"):
        write(nc, stream, 2, batch=4)
    nc.request(f"{stream.name.lower()}.ledger.w.0", json.dumps({"other": 1}).encode())
    with pytest.raises(LedgerError, match="no ledger entry"):
        write(nc, stream, 3, batch=5)


def test_tasks_missing_in_a_repeat_are_reported(
    nc: Connection, make_stream: Callable[..., Stream]
) -> None:
    """Fewer tasks, with the rows of all, compare nothing with the ledgers of the others."""
    stream = make_stream(allow_atomic=True)
    earlier = [write(nc, stream, 5, batch=3, partition=at) for at in range(3)]
    refuse_other_tasks(stream, earlier, 10.0)
    with pytest.raises(
        LedgerError, match=r"ledger\.w\.2: an earlier attempt of batch 3 stored rows"
    ):
        refuse_other_tasks(stream, earlier[:2], 10.0)
    # Entries of the batches before do not count, and neither do tasks without rows.
    later = [write(nc, stream, rows, batch=4, partition=at) for at, rows in enumerate([5, 0])]
    refuse_other_tasks(stream, later, 10.0)
    refuse_other_tasks(stream, [], 10.0)
