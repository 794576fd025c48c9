"""`python -m tests.bench.models`: reading, judging and importing models, as ratios of one run.

Ratios are medians over rounds in which both sides take turns, so that the machine's speed of the
moment cancels out. The peer of `decode` is plain cattrs with json on attrs classes of the
same members, which keeps neither unknown members nor nanoseconds and checks nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import attrs
import cattrs
import click

from tests.bench.start import interpreter
from twinstream.models import ConsumerInfo, Model, decode, validate_consumer
from twinstream.models.codec.open_enum import OpenEnum

GOLDEN = Path(__file__).parents[1] / "models" / "golden" / "2.15.1" / "single"
CONFIG = {
    "durable_name": "packers",
    "ack_policy": "explicit",
    "ack_wait": 30_000_000_000,
    "max_deliver": 5,
    "backoff": [1_000_000_000, 5_000_000_000],
    "filter_subjects": ["orders.eu.>", "orders.us.>"],
    "metadata": {"team": "warehouse"},
}
STREAM = {"name": "ORDERS", "subjects": ["orders.>"], "retention": "limits", "max_age": 10**15}

DECODE_LIMIT = 1.2
VALIDATE_LIMIT = 10_000
IMPORT_LIMIT_MS = 60


@click.command()
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=3))
def bench(rounds: int) -> None:
    """Measure, print, and exit with 1 where a figure misses its mark."""
    good = [_decode(rounds), _validate(rounds), _import(rounds)]
    _first_use(rounds)
    sys.exit(0 if all(good) else 1)


def _decode(rounds: int) -> bool:
    text = json.dumps(json.loads((GOLDEN / "consumer-info-full.json").read_text())).encode()
    plain = cattrs.Converter()
    plain.register_structure_hook(datetime, lambda value, _: datetime.fromisoformat(value))
    plain.register_structure_hook(timedelta, lambda value, _: timedelta(microseconds=value / 1000))
    twin = _twin(ConsumerInfo)
    ours = _timed(lambda: decode(text, ConsumerInfo), 300)
    theirs = _timed(lambda: plain.structure(json.loads(text), twin), 300)
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    ratio = median(a / b for a, b in pairs)
    micro = median(a for a, _ in pairs) * 1e6
    return _line(
        f"decode a consumer info: {micro:.1f} µs, {ratio:.2f} times plain cattrs and json",
        f"at most {DECODE_LIMIT}",
        ratio <= DECODE_LIMIT,
    )


def _twin(cls: type[Model]) -> type[Any]:
    """Return a plain attrs class with the members of a model, and so for its parts."""
    members: dict[str, Any] = {}
    for member in attrs.fields(attrs.resolve_types(cls)):
        if member.name != "unknown":
            kind = _plain(member.type)
            default = attrs.NOTHING if member.default is attrs.NOTHING else None
            members[member.name] = attrs.field(type=kind, default=default, kw_only=True)
    return attrs.make_class(cls.__name__, members, frozen=True)


def _plain(hint: Any) -> Any:
    arguments = getattr(hint, "__args__", ())
    if type(None) in arguments:
        return _plain(next(one for one in arguments if one is not type(None))) | None
    if getattr(hint, "__origin__", None) is list:
        return list[_plain(arguments[0])]  # type: ignore[misc]
    if not isinstance(hint, type):
        return hint
    if issubclass(hint, Model):
        return _twin(hint)
    for base in (datetime, timedelta):
        if issubclass(hint, base):
            return base
    return str if issubclass(hint, OpenEnum) else hint


def _validate(rounds: int) -> bool:
    assert validate_consumer(CONFIG, STREAM) == []
    alone = _timed(lambda: validate_consumer(CONFIG), 300)
    within = _timed(lambda: validate_consumer(CONFIG, STREAM), 300)
    pairs = [(alone(), within()) for _ in range(rounds)]
    # The best round: the others tell what else the machine was doing.
    rate, in_stream = (1 / min(times) for times in zip(*pairs, strict=True))
    return _line(
        f"validate_consumer: {rate:,.0f} a second, {in_stream:,.0f} with its stream",
        f"at least {VALIDATE_LIMIT:,}",
        rate >= VALIDATE_LIMIT,
    )


def _import(rounds: int) -> bool:
    more = _more("import twinstream.models", "pass", rounds)
    return _line(
        f"import twinstream.models: {more:.0f} ms more than an empty interpreter",
        f"under {IMPORT_LIMIT_MS}",
        more < IMPORT_LIMIT_MS,
    )


def _first_use(rounds: int) -> None:
    statement = "from twinstream.models import ConsumerConfig, StreamConfig"
    more = _more(statement, "import attrs", rounds)
    click.echo(f"StreamConfig and ConsumerConfig at first use: {more:.0f} ms more than attrs")


def _more(statement: str, base: str, rounds: int) -> float:
    """Return the milliseconds that a statement takes more than another, compiled."""
    with interpreter() as fresh:
        assert fresh.can(statement)
        pairs = [(fresh.seconds(statement), fresh.seconds(base)) for _ in range(rounds)]
    return median(a - b for a, b in pairs) * 1e3


def _timed(call: Callable[[], object], times: int) -> Callable[[], float]:
    """Return a measurement of one call, warmed up, in seconds of one core."""
    call()

    def measure() -> float:
        start = process_time()
        for _ in range(times):
            call()
        return (process_time() - start) / times

    return measure


def _line(found: str, wanted: str, good: bool) -> bool:
    click.echo(f"{found} ({wanted}: {'yes' if good else 'NO'})")
    return good


if __name__ == "__main__":
    bench()
