"""The parts of the demo that need no server: events, handler, ledger."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest

from examples.demo.handler import Verdict, handle
from examples.demo.ledger import Ledger
from examples.demo.orders import Expected, order_events


@pytest.mark.parametrize("count", [100, 251, 5000, 6000])
def test_events_make_exactly_the_trouble_that_is_expected(count: int) -> None:
    expected = Expected(count=count)
    found: Counter[Verdict] = Counter()
    for event in order_events(count):
        found[handle(event.payload, delivery=2)] += 1
    assert found[Verdict.NEVER] == expected.broken > 0
    assert found[Verdict.AGAIN] == expected.declined
    assert found.total() == count


def test_events_are_the_same_for_a_seed_and_have_distinct_ids() -> None:
    first, second = list(order_events(500, seed=3)), list(order_events(500, seed=3))
    assert first == second
    assert first != list(order_events(500, seed=4))
    assert len({event.message_id for event in first}) == 500
    for event in first:
        assert event.subject.startswith("orders.")


def test_the_handler_fails_retries_once_and_declined_cards_for_ever() -> None:
    retry, declined, good = (
        json.dumps({"card": card}).encode() for card in ("retry", "declined", "ok")
    )
    assert [handle(retry, n) for n in (1, 2)] == [Verdict.AGAIN, Verdict.DONE]
    assert [handle(declined, n) for n in (1, 2, 3)] == [Verdict.AGAIN] * 3
    assert handle(good, 1) is Verdict.DONE
    assert handle(b'{"card": "o', 1) is Verdict.NEVER


def test_the_ledger_counts_each_message_once_over_threads() -> None:
    ledger = Ledger(3000, max_deliver=3)

    def work(name: str, first: int) -> None:
        for sequence in range(first, 3001, 2):
            ledger.record(name, sequence, 1, Verdict.DONE)

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", 1), ("b", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.complete.is_set()
    assert ledger.settled == len(ledger.timeline) == 3000
    assert ledger.deliveries == {"a": 1500, "b": 1500}
    assert ledger.settled_twice == 0


def test_the_ledger_settles_a_failure_with_its_last_delivery() -> None:
    ledger = Ledger(1, max_deliver=3)
    for delivery in (1, 2):
        ledger.record("a", 7, delivery, Verdict.AGAIN)
    assert not ledger.complete.is_set()
    ledger.record("a", 7, 3, Verdict.AGAIN)
    assert ledger.complete.is_set()
    assert (ledger.failures, ledger.exhausted) == (3, {7})


def test_the_ledger_notices_a_message_settled_twice() -> None:
    ledger = Ledger(2, max_deliver=3)
    ledger.record("a", 1, 1, Verdict.DONE)
    ledger.record("b", 1, 2, Verdict.NEVER)
    assert ledger.settled_twice == 1
    assert ledger.settled == 1
