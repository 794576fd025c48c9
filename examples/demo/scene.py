"""The settings of the demo, and the results of its steps."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen
from rich.console import Console

from examples.demo.ledger import Ledger
from twinstream.models import ConsumerConfig

STREAM = "ORDERS"
EVENTS = "EVENTS"
CONSUMER = "packers"


@frozen(kw_only=True)
class Settings:
    """The options of the demo. Without `spark`, the step that writes Parquet is skipped."""

    events: int
    spark: bool
    examples: Path
    output: Path
    report: Path
    seed: int = 7


@frozen(kw_only=True)
class EventKind:
    """A kind of advisory: the number of advisories, and a description of the first one."""

    name: str
    count: int
    example: str


@frozen(kw_only=True)
class SubjectRow:
    """The sums of the orders with one subject in the Parquet tables; `amount` is in euro."""

    subject: str
    orders: int
    items: int
    amount: float


@define
class Scene:
    """The state of a run of the demo. A number is 0 until the step that sets it has run."""

    settings: Settings
    console: Console
    url: str
    server_version: str
    consumer_config: ConsumerConfig | None = None
    published: int = 0
    sent_again: int = 0
    refused_as_duplicate: int = 0
    publish_seconds: float = 0.0
    stored: int = 0
    left_on_server: int = 0
    ledger: Ledger | None = None
    consume_seconds: float = 0.0
    advisories: list[EventKind] = field(factory=list[EventKind])
    advisories_stored: int = 0
    advisories_in_parquet: int = 0
    in_parquet: int = 0
    distinct_in_parquet: int = 0
    dead_letters: int = 0
    spark_seconds: float = 0.0
    subjects: list[SubjectRow] = field(factory=list[SubjectRow])
