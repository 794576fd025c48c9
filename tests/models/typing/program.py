"""A user's program for type checkers. Each line marked with "wrong" must be an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_type

from twinstream.models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicyWord,
    Duration,
    ErrorResponse,
    JsonObject,
    MaxDeliver,
    Model,
    Problem,
    RetentionPolicy,
    StreamConfig,
    StreamSource,
    Terminated,
    Timestamp,
    decode,
    decode_response,
    encode,
    evolve,
    validate_consumer,
    validate_stream,
)

stream = StreamConfig(
    name="ORDERS",
    subjects=["orders.>"],
    retention="limits",
    max_age=timedelta(days=7),
    sources=[StreamSource(name="OLD", opt_start_time=datetime(2026, 1, 31, tzinfo=UTC))],
)
consumer = ConsumerConfig(
    durable_name="w",
    ack_policy=AckPolicy.EXPLICIT,
    ack_wait=timedelta(seconds=30),
    backoff=[timedelta(seconds=1)],
    filter_subjects=("orders.a", "orders.b"),
)

assert_type(stream.max_age, Duration | None)
assert_type(stream.subjects, list[str] | None)
assert_type(consumer.ack_policy, AckPolicy | None)
assert_type(consumer.opt_start_time, Timestamp | None)
assert_type(encode(stream), JsonObject)
assert_type(evolve(stream, max_msgs=5), StreamConfig)
assert_type(decode(b"{}"), Model)
assert_type(decode(b"{}", ConsumerInfo), ConsumerInfo)
assert_type(decode_response(b"{}", ConsumerInfo), ConsumerInfo | ErrorResponse)
assert_type(validate_stream(stream, "2.12", pedantic=True), list[Problem])
assert_type(validate_consumer({"name": "C"}, stream), list[Problem])


def describe(event: Model) -> str:
    """Return a text about an event."""
    match event:
        case MaxDeliver(stream=name, stream_seq=seq):
            return f"{name} gave up on {seq}"
        case Terminated(reason=reason):
            return reason or "terminated"
        case _:
            return str(event)


word: DeliverPolicyWord = "last"
ConsumerConfig(deliver_policy=word, replay_policy="original", ack_policy=None)
# A word that only a newer server knows.
ConsumerConfig(ack_policy=AckPolicy("brand_new"))
StreamConfig(retention=RetentionPolicy.LIMITS, storage="memory", discard="new", compression="s2")

StreamConfig(retention="work_queue")  # wrong
StreamConfig(storage="disk")  # wrong
StreamConfig(discard=word)  # wrong
StreamConfig(retention=str(stream.name))  # wrong
ConsumerConfig(ack_policy="explict")  # wrong
ConsumerConfig(deliver_policy=AckPolicy.ALL)  # wrong
ConsumerConfig(replay_policy="slow")  # wrong
ConsumerConfig(priority_policy="pinned")  # wrong
StreamConfig(nme="ORDERS")  # wrong
StreamConfig(name=5)  # wrong
StreamConfig(max_age=30)  # wrong
StreamConfig("ORDERS")  # wrong
ConsumerConfig(ack_policy=5)  # wrong
ConsumerConfig(opt_start_time="2026-01-31T08:00:00Z")  # wrong
stream.name = "OTHER"  # wrong
encode({"name": "ORDERS"})  # wrong
