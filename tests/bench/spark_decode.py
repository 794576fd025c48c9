"""`python -m tests.bench.spark_decode`: what unusual messages cost, as ratios to usual ones.

`decode` is the decoder alone, page by page. `land` is all that a task does: it reads a stream,
decodes it and writes Parquet; Spark takes no part. All cases take turns; the seconds are those of
this process's CPU, which other work on the machine changes less.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final, cast

import click
import pyarrow as pa
from attrs import frozen

import js_sync
from tests.bench.spark import SCHEMA, payload
from twinstream.cli.screen import plain_table, results
from twinstream.models import StreamConfig
from twinstream.spark.decode.decode import JsonDecoder
from twinstream.spark.decode.json_schema import struct_of
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.split_tables import TableNames
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.testing import NatsServer

PAGE: Final = 20_000
RARE: Final = 1000
"""One unusual message in so many."""

PARTS: Final = ("decode", "land")

Work = Callable[[], object]
Change = Callable[[int, dict[str, Any]], object]


@frozen
class Case:
    """Messages and the schema that they are decoded with."""

    change: Change
    members: Mapping[str, Any] = {}
    limit: float | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        known = cast(Mapping[str, Any], SCHEMA["properties"])
        return {**SCHEMA, "properties": {**known, **self.members}}

    def pages(self) -> list[pa.Array]:
        """Return the payloads of two pages."""
        made = [self._payload(number) for number in range(2 * PAGE)]
        return [pa.array(made[:PAGE], pa.binary()), pa.array(made[PAGE:], pa.binary())]

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
WIDE: Final = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
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
    "a decimal": Case(lambda n, m: m.update(wide=n), {"wide": WIDE}),
    "half do not fit": Case(lambda n, m: n % 2 and m.update(amount="12")),
}


def decoding(case: Case) -> Work:
    """Return what decodes two pages."""
    decoder, pages = JsonDecoder(struct_of(case.schema(), uint64="decimal")), case.pages()

    def decode() -> None:
        for page in pages:
            decoder.decode(page)

    return decode


def landing(url: str, folder: Path, case: Case) -> Work:
    """Return what lands a stream of two pages as one task does; the stream is made here."""
    stream = f"CASE{list(CASES.values()).index(case)}"
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        jet.create_stream(StreamConfig(name=stream, subjects=[stream], allow_direct=True))
        payloads = [each for page in case.pages() for each in page.to_pylist()]
        requests = (js_sync.PublishRequest(subject=stream, data=each) for each in payloads)
        for outcome in jet.publish_many(requests):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error
    options = SourceOptions.parse(
        {
            "nats.servers": url,
            "stream": stream,
            "valueFormat": "json",
            "uint64": "decimal",
            "jsonSchema": json.dumps(case.schema()),
        }
    )
    folder.joinpath(stream).mkdir()
    job = LandJob(
        options, TableNames(table="orders", dead_letters="dead_letters"), folder / stream, 1
    )
    part = SequenceRange(stream, 1, len(payloads) + 1, "direct")

    def land() -> None:
        assert job.land(part).rows == len(payloads)

    return land


@frozen
class Seconds:
    """CPU seconds of each round of one case."""

    rounds: list[float]

    def ratio(self, clean: Seconds) -> float:
        """Return the median of the ratios of each round."""
        return median(a / b for a, b in zip(self.rounds, clean.rounds, strict=True))


def measure(works: Mapping[str, Work], rounds: int) -> dict[str, Seconds]:
    """Let all cases take turns."""
    found = {name: Seconds([]) for name in works}
    for work in works.values():  # what is imported and compiled once is not counted
        work()
    for _ in range(rounds):
        for name, work in works.items():
            start = time.process_time()
            work()
            found[name].rounds.append(time.process_time() - start)
    return found


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--only", type=click.Choice(PARTS), multiple=True)
def main(rounds: int, only: tuple[str, ...]) -> None:
    """Print the cost of a message of each case, and its ratio to usual ones."""
    for part in only or PARTS:
        if part == "decode":
            found = measure({name: decoding(case) for name, case in CASES.items()}, rounds)
        else:
            with NatsServer() as server, tempfile.TemporaryDirectory() as folder:
                to = Path(folder)
                works = {n: landing(server.url, to, case) for n, case in CASES.items()}
                found = measure(works, rounds)
        numbers = ("us a message", "to clean", "at most")
        table = plain_table(part, *numbers, numbers=numbers)
        for name, seconds in found.items():
            cost = median(seconds.rounds) / (2 * PAGE) * 1e6
            limit = CASES[name].limit
            ratio = seconds.ratio(found["clean"])
            table.add_row(
                name, f"{cost:.2f}", f"{ratio:.2f}", "" if limit is None else f"{limit:g}"
            )
        results().print(table)


if __name__ == "__main__":
    main()
