"""The parts of the demo that need no server: events, handler, ledger, charts."""

from __future__ import annotations

import json
import threading
from collections import Counter
from xml.etree import ElementTree

import pytest

from twinstream.cli.demo import chart
from twinstream.cli.demo.handler import Verdict, handle
from twinstream.cli.demo.ledger import Ledger
from twinstream.cli.demo.orders import Expected, order_events
from twinstream.models import MaxDeliver, StreamAction, decode


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


def test_charts_are_well_formed_and_escape_names() -> None:
    areas = chart.stacked_areas(
        [chart.Series("a<b", [0, 5, 3]), chart.Series("c", [1, 1, 1])],
        end=3.0,
        x_label="s",
        y_label="n",
        title='"t"',
    )
    root = ElementTree.fromstring(areas)
    assert [node.text for node in root.iter("title")] == ["a<b", "c"]
    bars = ElementTree.fromstring(chart.bars([chart.Bar("x", 4), chart.Bar("y", 2)], title="t"))
    widths = [float(node.attrib["width"]) for node in bars.iter("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_empty_charts_do_not_fail() -> None:
    ElementTree.fromstring(chart.bars([], title="t"))
    nothing = chart.stacked_areas(
        [chart.Series("a", [0.0])], end=0.0, x_label="", y_label="", title="t"
    )
    ElementTree.fromstring(nothing)


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0, 1), (1, 1), (1.2, 2), (2.3, 2.5), (7, 10), (99, 100), (0.03, 0.05)]
)
def test_axes_end_at_round_numbers(value: float, ceiling: float) -> None:
    assert chart.nice_ceiling(value) == pytest.approx(ceiling)


def test_advisories_are_described_from_their_typed_members() -> None:
    from twinstream.cli.server.event_view import describe

    common = {"id": "x", "timestamp": "2026-01-01T00:00:00.123456789Z", "stream": "S"}
    event = decode(
        {
            **common,
            "type": "io.nats.jetstream.advisory.v1.max_deliver",
            "consumer": "c",
            "stream_seq": 5,
            "deliveries": 3,
        }
    )
    assert isinstance(event, MaxDeliver)
    assert describe(event) == (
        "message 5 of S was delivered 3 times to c without an acknowledgement"
    )
    made = decode(
        {**common, "type": "io.nats.jetstream.advisory.v1.stream_action", "action": "create"}
    )
    assert isinstance(made, StreamAction)
    assert describe(made) == "stream S was created"


@pytest.mark.parametrize("highest", [1, 2, 3, 4, 5, 9, 26, 250, 7300, 0.02])
def test_no_two_lines_of_a_grid_have_the_same_label(highest: float) -> None:
    ceiling = chart.nice_ceiling(highest)
    labels = [chart.axis_label(ceiling * quarter / 4) for quarter in range(5)]
    assert len(set(labels)) == 5
    assert [float(label.replace(",", "")) for label in labels] == pytest.approx(
        [ceiling * quarter / 4 for quarter in range(5)]
    )
