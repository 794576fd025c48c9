"""What payloads cost: `python -m tests.bench.payloads [--rounds N] [--messages N]`.

Two tables. The first one has the CPU time in which each codec decodes and encodes an order of 200
bytes. The second one has a loop over the messages of a consumer, untyped with `json.loads` and
typed. All jobs of a table run in turn within each round; the figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import process_time, thread_time
from typing import Any

import attrs
import msgspec
import pydantic

import js_sync
from twinstream.codecs import (
    CloudEvent,
    CloudEventCodec,
    Codec,
    JsonCodec,
    JsonSchemaCodec,
    MsgspecCodec,
    PydanticCodec,
)
from twinstream.core.payloads.payloads import payloads_of
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.records.headers import Headers
from twinstream.testing import NatsServer

LINES = [{"item": "green tea", "cents": 350}, {"item": "black tea", "cents": 290}]
PLAIN: dict[str, Any] = {
    "number": 1234567,
    "customer": "Ada Lovelace, 12 St James's Square, London",
    "paid": True,
    "lines": LINES,
    "note": "leave it with the porter, please",
}
SCHEMA = {
    "type": "object",
    "required": ["number", "customer", "paid", "lines", "note"],
    "properties": {
        "number": {"type": "integer"},
        "customer": {"type": "string"},
        "paid": {"type": "boolean"},
        "note": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["item", "cents"],
                "properties": {"item": {"type": "string"}, "cents": {"type": "integer"}},
            },
        },
    },
}


@attrs.frozen
class Line:
    item: str
    cents: int


@attrs.frozen
class Order:
    number: int
    customer: str
    paid: bool
    lines: list[Line]
    note: str


class ModelLine(pydantic.BaseModel):
    item: str
    cents: int


class ModelOrder(pydantic.BaseModel):
    number: int
    customer: str
    paid: bool
    lines: list[ModelLine]
    note: str


class StructLine(msgspec.Struct):
    item: str
    cents: int


class StructOrder(msgspec.Struct):
    number: int
    customer: str
    paid: bool
    lines: list[StructLine]
    note: str


DATA = json.dumps(PLAIN, separators=(",", ":")).encode()
Job = Callable[[], object]


def codec_jobs() -> dict[str, tuple[Job, Job]]:
    """Return what decodes and what encodes the order, by name."""
    struct = msgspec.json.decode(DATA, type=StructOrder)
    decoder, encoder = msgspec.json.Decoder(StructOrder), msgspec.json.Encoder()
    event = CloudEventCodec(Order, "binary")
    jobs: dict[str, tuple[Job, Job]] = {
        "`json` into a dictionary, by hand": (
            lambda: json.loads(DATA),
            lambda: json.dumps(PLAIN).encode(),
        ),
        "msgspec alone, into a struct": (
            lambda: decoder.decode(DATA),
            lambda: encoder.encode(struct),
        ),
    }
    codecs: dict[str, Codec[Any]] = {
        "`MsgspecCodec`, struct": MsgspecCodec(StructOrder),
        "`MsgspecCodec`, attrs class": MsgspecCodec(Order),
        "`PydanticCodec`": PydanticCodec(ModelOrder),
        "`JsonCodec`, attrs class": JsonCodec(Order),
        "`JsonSchemaCodec`": JsonSchemaCodec(SCHEMA),
    }
    for name, codec in codecs.items():
        jobs[name] = _jobs(codec, codec.decode(DATA))
    made: CloudEvent[Order] = CloudEvent(
        id="1", source="/shop", type="order.placed", data=JsonCodec(Order).decode(DATA)
    )
    jobs["`CloudEventCodec` of it, binary"] = _jobs(event, made)
    return jobs


def _jobs(codec: Codec[Any], value: Any) -> tuple[Job, Job]:
    payloads = payloads_of(codec)
    data, merged = payloads.encode(value, None, "a")
    headers = Headers((merged or {}).items())  # type: ignore[arg-type]
    return lambda: payloads.decode(data, headers, "a"), lambda: payloads.encode(value, None, "a")


def timed(job: Job, times: int) -> float:
    """Return the microseconds of CPU of one call."""
    begin = process_time()
    for _ in range(times):
        job()
    return (process_time() - begin) / times * 1e6


def codecs_table(rounds: int, times: int) -> list[tuple[str, float, float]]:
    """Return the times of decoding and encoding, by codec."""
    jobs = codec_jobs()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (decode, encode) in jobs.items():
            found[name].append((timed(decode, times), timed(encode, times)))
    return [
        (name, median(each[0] for each in pairs), median(each[1] for each in pairs))
        for name, pairs in found.items()
    ]


def loops_table(rounds: int, messages: int) -> list[tuple[str, float]]:
    """Return the CPU time of the calling thread for each message of a `messages` loop."""
    found: dict[str, list[float]] = {}
    with NatsServer() as server, js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name="S", subjects=["s"], storage="memory"))
        orders = jet.typed(PydanticCodec(ModelOrder))
        request = orders.request("s", ModelOrder.model_validate(PLAIN))
        with jet.publish_many(request for _ in range(messages)) as outcomes:
            for _ in outcomes:
                pass
        for _ in range(rounds):
            for name, codec in LOOPS.items():
                config = ConsumerConfig(ack_policy="none")
                consumer = stream.create_consumer(config)
                found.setdefault(name, []).append(looped(consumer, codec, messages))
                consumer.delete()
    return [(name, median(each)) for name, each in found.items()]


LOOPS: dict[str, Codec[Any] | None] = {
    "untyped, `json.loads(message.data)`": None,
    "`MsgspecCodec`, struct": MsgspecCodec(StructOrder),
    "`MsgspecCodec`, attrs class": MsgspecCodec(Order),
    "`PydanticCodec`": PydanticCodec(ModelOrder),
    "`JsonCodec`, attrs class": JsonCodec(Order),
}


def looped(consumer: js_sync.Consumer, codec: Codec[Any] | None, messages: int) -> float:
    """Return the microseconds of CPU of the calling thread for each message."""
    total = 0
    begin = thread_time()
    if codec is None:
        with consumer.messages(stop_after=messages) as untyped:
            for message in untyped:
                total += json.loads(message.data)["number"]
    else:
        with consumer.typed(codec).messages(stop_after=messages) as typed:
            for each in typed:
                total += each.payload.number
    spent = thread_time() - begin
    assert total == messages * PLAIN["number"]
    return spent / messages * 1e6


def main() -> None:
    """Print the tables as they stand in docs/speed.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--times", type=int, default=20_000)
    parser.add_argument("--messages", type=int, default=50_000)
    options = parser.parse_args()
    print(f"An order of {len(DATA)} bytes; µs of CPU, medians of {options.rounds} rounds.\n")
    print("| codec | decode | encode |\n| --- | ---: | ---: |")
    for name, decode, encode in codecs_table(options.rounds, options.times):
        print(f"| {name} | {decode:.2f} | {encode:.2f} |")
    print("\n| loop over `consumer.messages()` | µs a message | ratio |\n| --- | ---: | ---: |")
    rows = loops_table(options.rounds, options.messages)
    for name, each in rows:
        print(f"| {name} | {each:.2f} | {each / rows[0][1]:.2f} |")


if __name__ == "__main__":
    main()
