"""The rows of the table of features.

A cell is the text of the page and a pattern that proves it: a public name of the client that
matches. `NO` claims that no public name matches the pattern of the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["CLIENTS", "NO", "PACKAGES", "ROWS", "Cell", "Row"]

CLIENTS: Final = ("Twinstream", "nats-py", "natsio", "natsrpy", "nats-jetstream", "nats.go")

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "nats-py": ("nats-py",),
    "natsio": (
        "natsio",
        "natsio-counters",
        "natsio-jetstream-batch",
        "natsio-kvcodec",
        "natsio-natscontext",
        "natsio-otel",
        "natsio-pcgroups",
        "natsio-schedules",
        "natsio-sysclient",
        "natsio-testing",
    ),
    "natsrpy": ("natsrpy",),
    "nats-jetstream": (
        "nats-core",
        "nats-extra",
        "nats-jetstream",
        "nats-jetstream-extra",
        "nats-counters",
        "nats-key-value",
    ),
}
"""The packages of each client, with those of its makers that extend it."""


class Cell(NamedTuple):
    """What a client has, and a pattern of a public name that proves it."""

    text: str
    proof: str


NO: Final = Cell("-", "")


class Row(NamedTuple):
    """A feature, what proves its absence, and a cell for each client in the order of `CLIENTS`."""

    title: str
    absent: str
    cells: tuple[Cell, ...]


def yes(proof: str) -> Cell:
    """Return a cell for a feature that the client has."""
    return Cell("yes", proof)


def of(text: str, proof: str) -> Cell:
    """Return a cell with a word about the feature."""
    return Cell(text, proof)


ROWS: Final = (
    Row(
        "calls",
        "",
        (
            of("asyncio, blocking", r"^connect\("),
            of("asyncio", r"^connect\("),
            of("asyncio", r"^connect\("),
            of("asyncio", r"^Nats\.startup\("),
            of("asyncio", r"^connect\("),
            of("goroutines", r"^Connect\("),
        ),
    ),
    Row(
        "WebSocket",
        r"(?i)websocket",
        (
            NO,
            yes("^WebSocketTransport$"),
            # Both connect to a URL of `ws://`; what does it is not public.
            yes(r"^ConnectOptions\.servers"),
            yes(r"^Nats\.addr\("),
            NO,
            yes("^ErrMixingWebsocketSchemes"),
        ),
    ),
    Row(
        "services with discovery",
        r"(?i)add_?service\(|add_?endpoint\(",
        (
            NO,
            yes(r"^add_service\("),
            yes(r"^Service\.add_endpoint\("),
            NO,
            NO,
            yes(r"^AddService\("),
        ),
    ),
    Row(
        "publish without waiting, an outcome for each message",
        r"(?i)publish_?(async|many)\w*\(|publisher\(",
        (
            yes(r"^JetStream\.publish_many\("),
            yes(r"^JetStreamContext\.publish_async\("),
            yes(r"^JetStreamContext\.publish_async\("),
            of("by tasks", r"^JetStream\.publish\(.*wait"),
            of("by tasks", r"^JetStream\.publish\("),
            yes(r"^PublishAsync\("),
        ),
    ),
    Row(
        "atomic batches of messages",
        r"(?i)(atomic|batch_?publish|publish_?batch)\w*\(",
        (
            yes("^AtomicBatch$"),
            NO,
            NO,
            NO,
            of("nats-jetstream-extra", r"^BatchPublisher\.commit\("),
            of("orbit.go", r"^NewBatchPublisher\("),
        ),
    ),
    Row(
        "fast ingest",
        r"(?i)fast_?(publish|ingest)",
        (
            yes("^FastIngest$"),
            NO,
            of("natsio-jetstream-batch", "^FastPublisher$"),
            NO,
            of("nats-jetstream-extra", "^FastPublisher$"),
            of("orbit.go", r"^NewFastPublisher\("),
        ),
    ),
    Row(
        "counters",
        r"(?i)^counters?(\.|\()|\bnew_?counter\w*\(",
        (
            yes(r"^Counters\.add\("),
            NO,
            of("natsio-counters", r"^Counter\.add\("),
            yes(r"^Counters\.incr\("),
            of("nats-counters", r"^Counter\.add\("),
            of("orbit.go", r"^NewCounterFromStream\("),
        ),
    ),
    Row(
        "schedules",
        r"(?i)schedules?\w*\(",
        (
            yes(r"^Schedules\.add\("),
            NO,
            of("natsio-schedules", r"^Schedules\.create\("),
            NO,
            NO,
            yes(r"^WithScheduleAt\("),
        ),
    ),
    Row(
        "ordered reading",
        r"(?i)ordered",
        (
            yes(r"^Stream\.ordered\("),
            yes(r"^JetStreamContext\.subscribe\(.*ordered_consumer"),
            yes(r"^Stream\.ordered_consumer\("),
            NO,
            yes(r"^Stream\.ordered_consumer\("),
            yes(r"^OrderedConsumer\("),
        ),
    ),
    Row(
        "push consumers",
        r"(?i)push_?(consumer|messages|subscription)\w*(\(|$)|subscribe_bind\(",
        (
            yes(r"^Stream\.push_messages\("),
            yes(r"^JetStreamContext\.subscribe_bind\("),
            NO,
            yes(r"^PushConsumer\.consume\("),
            NO,
            yes(r"^CreateOrUpdatePushConsumer\("),
        ),
    ),
    Row(
        "pulls in priority groups",
        r"(?i)(fetch|next|messages)\(.*group",
        (
            yes("^Priority$"),
            NO,
            yes(r"^Consumer\.fetch\(.*group"),
            yes(r"^PullConsumer\.fetch\(.*group"),
            yes(r"^PullConsumer\.fetch\(.*priority_group"),
            yes(r"^PullPriorityGroup"),
        ),
    ),
    Row(
        "ranges of stored messages without a consumer",
        r"(?i)get_?(batch|last_?msgs)\w*\(|^Stream\.read\(",
        (
            yes(r"^Stream\.read\("),
            NO,
            of("natsio-jetstream-batch", "^BatchGet$"),
            NO,
            of("nats-jetstream-extra", r"^get_batch\("),
            of("orbit.go", r"^GetBatch\("),
        ),
    ),
    Row(
        "key-value buckets",
        "^KeyValue$",
        (
            yes(r"^KeyValue\.put\("),
            yes(r"^KeyValue\.put\("),
            yes(r"^KeyValue\.put\("),
            yes(r"^KeyValue\.put\("),
            of("nats-key-value", r"^KeyValue\.put\("),
            yes(r"^CreateKeyValue\("),
        ),
    ),
    Row(
        "object stores",
        r"(?i)object_?store",
        (
            yes(r"^ObjectStore\.put\("),
            yes(r"^ObjectStore\.put\("),
            yes(r"^ObjectStore\.put\("),
            yes(r"^ObjectStore\.put\("),
            NO,
            yes(r"^CreateObjectStore\("),
        ),
    ),
    Row(
        "typed payloads",
        r"(?i)codec|\.typed\(",
        (
            yes(r"^JetStream\.typed\("),
            NO,
            of("values of buckets", r"^JetStreamContext\.key_value\(.*value_codec"),
            NO,
            NO,
            of("core NATS, deprecated", "^EncodedConn$"),
        ),
    ),
    Row(
        "workers with retries and dead letters",
        r"(?i)dead_?letter|^worker",
        (yes("^DeadLetters$"), NO, NO, NO, NO, NO),
    ),
    Row(
        "partitioned consumer groups",
        r"(?i)elastic|^ConsumerGroup",
        (
            yes("^ConsumerGroup"),
            NO,
            of("natsio-pcgroups", "^ElasticConsumeContext$"),
            NO,
            NO,
            of("orbit.go", r"^ElasticConsume\("),
        ),
    ),
    Row(
        "locks, leaders, rate limits",
        r"(?i)^(lock|lease|semaphore|ratelimiter)$",
        (yes("^Lease$"), NO, NO, NO, NO, NO),
    ),
    Row(
        "outbox, processing with results once",
        r"(?i)outbox|^processing$",
        (yes("^OutboxRelay$"), NO, NO, NO, NO, NO),
    ),
    Row(
        "validation of configurations without a server",
        r"(?i)validate_?(stream|consumer)\w*\(|^lint_",
        (yes(r"^validate_stream\("), NO, NO, NO, NO, NO),
    ),
    Row(
        "OpenTelemetry",
        r"(?i)instrument|opentelemetry",
        (
            yes("^TwinstreamInstrumentor$"),
            NO,
            of("natsio-otel", "^OtelInstrumentation$"),
            yes(r"^NatsrpyInstrumentor"),
            NO,
            NO,
        ),
    ),
    Row(
        "Spark, tables in Parquet and Delta",
        r"(?i)spark|parquet",
        (yes(r"^land\("), NO, NO, NO, NO, NO),
    ),
    Row(
        "contexts of the `nats` command",
        r"(?i)nats_?context|context_dir",
        (
            NO,
            NO,
            of("natsio-natscontext", r"^context_dir\("),
            NO,
            NO,
            of("orbit.go", "^Settings$"),
        ),
    ),
    Row(
        "test servers",
        r"^NatsServer|^RunServer",
        (yes("^NatsServer$"), NO, of("natsio-testing", "^NatsServerProcess$"), NO, NO, NO),
    ),
)
