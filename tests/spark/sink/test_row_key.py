"""What a row is known by, and rows that wait."""

from __future__ import annotations

import random
from typing import Any

from attrs import evolve

from twinstream.spark.sink.row_key import RowIds, row_key
from twinstream.spark.sink.row_queue import Keyed, RowQueue
from twinstream.spark.sink.rows import OutMessage
from twinstream.spark.sink.task_identity import TaskIdentity

ROW = OutMessage("s.a", b"1", {"A": ["1"], "B": ["2", "3"]}, 60, None)
TASK = TaskIdentity("w", 3, 1)


def row(data: bytes = b"", subject: str = "s", **given: Any) -> OutMessage:
    return OutMessage(subject, data, given.get("headers"), given.get("ttl"), None)


def ids(rows: list[OutMessage], task: TaskIdentity = TASK) -> list[str]:
    made = RowIds(task)
    return [made.next_id(each) for each in rows]


def test_a_key_is_that_of_all_that_is_published() -> None:
    others = [
        evolve(ROW, subject="s.b"),
        evolve(ROW, data=b"2"),
        evolve(ROW, headers=None),
        evolve(ROW, headers={"A": ["1"], "B": ["3", "2"]}),
        evolve(ROW, headers={"A": ["1"], "B": ["2"]}),
        evolve(ROW, ttl=None),
        evolve(ROW, ttl=61),
    ]
    assert len({row_key(each) for each in [ROW, *others]}) == len(others) + 1
    # What stands in one place does not pass for what stands in another.
    pairs = [("a", b"b"), ("ab", b""), ("a", b" b"), ("a", b"b "), ("[null, 1] a", b"b")]
    plain = {row_key(row(data, subject)) for subject, data in pairs}
    assert len(plain | {row_key(row(b"b", "a", ttl=1))}) == len(pairs) + 1


def test_a_key_does_not_depend_on_the_order_of_headers_or_on_the_process() -> None:
    assert row_key(ROW) == row_key(evolve(ROW, headers={"B": ["2", "3"], "A": ["1"]}))
    assert row_key(row(b"x", "a")).hex() == "24a56b81cfc9a957dee71c68"


def test_ids_do_not_depend_on_the_order_of_rows() -> None:
    rows = [row(b"%d" % (at // 3)) for at in range(300)]
    mixed = random.Random(5).sample(rows, len(rows))
    assert set(ids(rows)) == set(ids(mixed))
    assert len(set(ids(rows))) == 300


def test_equal_rows_of_two_tasks_have_different_ids() -> None:
    two = evolve(TASK, partition=2)
    assert not set(ids([row(b"x")])) & set(ids([row(b"x")], two))


def test_an_id_names_the_write_the_batch_the_task_the_row_and_which_of_equal_rows() -> None:
    key = row_key(row(b"x")).hex()
    assert ids([row(b"x"), row(b"y"), row(b"x")])[::2] == [f"w-3-1-{key}-0", f"w-3-1-{key}-1"]


def keyed(*numbers: int) -> list[Keyed]:
    return [(b"%d" % at, row(b"%d" % at)) for at in numbers]


def test_rows_queued_on_disk_stay_in_order() -> None:
    queue = RowQueue(block=4)
    for each in keyed(*range(30)):
        queue.put(each)
    assert len(queue) == 30
    found = []
    while some := queue.peek(7):
        queue.drop(len(some))
        found += some
        if len(found) < 20:
            queue.put(keyed(100 + len(found))[0])
    assert found == keyed(*range(30), 107, 114)
    assert len(queue) == 0
    queue.close()


def test_rows_that_wait_can_be_sifted() -> None:
    queue = RowQueue(block=4)
    for each in keyed(*range(30)):
        queue.put(each)
    queue.drop(len(queue.peek(3)))
    queue.sift(lambda each: int(each[0]) % 2 == 0)
    assert len(queue) == 13
    assert queue.peek(100) == keyed(*range(4, 30, 2))
    queue.close()
