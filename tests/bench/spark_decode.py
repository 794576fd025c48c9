"""``python -m tests.bench.spark_decode``: what unusual messages cost, as ratios to usual ones.

``decode`` is the decoder alone, page by page. ``land`` is all that a task does with pages that it
has read: columns beside the payload, the division among tables and the writing of Parquet. All
cases take turns; the seconds are those of this process's CPU, which other work changes less.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

import click
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from js_cli.screen import plain_table, results
from js_core.arrow_page import ArrowPage
from js_spark.decode import JsonDecoder
from js_spark.json_schema import struct_of
from js_spark.options import SourceOptions
from js_spark.split_tables import TableNames, TableSplit
from tests.bench.spark import SCHEMA, payload

PAGE: Final = 20_000
RARE: Final = 1000
"""One unusual message in so many."""

Change = Callable[[int, dict[str, Any]], object]


@frozen
class Case:
    """Messages and the schema that they are decoded with."""

    change: Change
    members: Mapping[str, Any] = {}
    limit: float | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {**SCHEMA, "properties": {**SCHEMA["properties"], **self.members}}

    def page(self, start: int) -> pa.Array:
        """Return the payloads of one page."""
        return pa.array([self._payload(number) for number in range(start, start + PAGE)])

    def _payload(self, number: int) -> bytes:
        members = json.loads(payload(number))
        self.change(number, members)
        return json.dumps(members, separators=(",", ":")).encode()


def _clean(number: int, members: dict[str, Any]) -> None:
    """Leave the message as it is."""


def _rarely(change: Change) -> Change:
    return lambda number, members: number % RARE == RARE // 2 and change(number, members)


def _with(**more: Any) -> Change:
    return lambda number, members: members.update(more)


LABELS: Final = {"region": "eu", "shop": "17"}
CASES: Final[Mapping[str, Case]] = {
    "clean": Case(_clean),
    "rarely an added member": Case(_rarely(_with(coupon="A17")), limit=2),
    "rarely another type": Case(_rarely(_with(amount="12")), limit=2),
    "rarely 3.0 for an integer": Case(_rarely(_with(id=3.0)), limit=2),
    "rarely a bad moment": Case(_rarely(_with(placed="soon")), limit=2),
    "an added member": Case(_with(coupon="A17"), limit=3),
    "an added object": Case(_with(meta={"by": "x", "n": 1}), limit=3),
    "3.0 for each integer": Case(lambda n, members: members.update(id=float(n))),
    "a map": Case(
        _with(labels=LABELS),
        {"labels": {"type": "object", "additionalProperties": {"type": "string"}}},
        2.5,
    ),
    "a free-form member": Case(_with(labels=LABELS), {"labels": {}}, 2.5),
    "a decimal": Case(lambda n, m: m.update(wide=n), {"wide": {"type": "integer"}}),
    "half do not fit": Case(lambda n, m: n % 2 and m.update(amount="12")),
}


def decoding(case: Case) -> Callable[[pa.Array], object]:
    """Return what decodes a page."""
    return JsonDecoder(struct_of(case.schema())).decode


def landing(case: Case) -> Callable[[pa.Array], object]:
    """Return what makes a page files of tables."""
    options = SourceOptions.parse(
        {
            "nats.servers": "nats://127.0.0.1",
            "stream": "ORDERS",
            "valueFormat": "json",
            "jsonSchema": json.dumps(case.schema()),
        }
    )
    split = TableSplit(options, TableNames(table="orders", dead_letters="dead_letters"), 1)

    def land(payloads: pa.Array) -> None:
        size = len(payloads)
        page = ArrowPage(
            seqs=pa.array(range(1, size + 1), pa.int64()),
            subjects=pa.array([b"orders.new"] * size),
            times=pa.array(range(size), pa.int64()),
            headers=pa.array([b""] * size),
            payloads=payloads,
        )
        for _, rows in split.split(page, "ORDERS"):
            pq.write_table(pa.Table.from_batches([rows]), io.BytesIO())

    return land


WORKS: Final = {"decode": decoding, "land": landing}


@frozen
class Seconds:
    """CPU seconds of each round of one case."""

    rounds: list[float]

    def ratio(self, clean: Seconds) -> float:
        """Return the median of the ratios of each round."""
        return median(a / b for a, b in zip(self.rounds, clean.rounds, strict=True))


def measure(work: Callable[[Case], Callable[[pa.Array], object]], rounds: int) -> dict[str, Seconds]:
    """Let all cases take turns."""
    pages = {name: [case.page(0), case.page(PAGE)] for name, case in CASES.items()}
    works = {name: work(case) for name, case in CASES.items()}
    found = {name: Seconds([]) for name in CASES}
    for name, (first, _) in pages.items():  # what is compiled and learned once
        works[name](first)
    for _ in range(rounds):
        for name, blocks in pages.items():
            start = time.process_time()
            for block in blocks:
                works[name](block)
            found[name].rounds.append(time.process_time() - start)
    return found


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--only", type=click.Choice(list(WORKS)), multiple=True)
def main(rounds: int, only: tuple[str, ...]) -> None:
    """Print the cost of a message of each case, and its ratio to usual ones."""
    for part in only or WORKS:
        found = measure(WORKS[part], rounds)
        numbers = ("us a message", "to clean", "at most")
        table = plain_table(part, *numbers, numbers=numbers)
        for name, seconds in found.items():
            cost = median(seconds.rounds) / (2 * PAGE) * 1e6
            limit = CASES[name].limit
            ratio = seconds.ratio(found["clean"])
            table.add_row(name, f"{cost:.2f}", f"{ratio:.2f}", "" if limit is None else f"{limit:g}")
        results().print(table)


if __name__ == "__main__":
    main()
