"""Output of a running pipeline: as a table on a terminal, as lines in a log, or as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol, Self

from attrs import asdict, define
from rich.console import Console
from rich.live import Live
from rich.text import Text

from twinstream.cli.screen import plain_table, print_json
from twinstream.cli.table import Table
from twinstream.cli.value_text import in_bytes

if TYPE_CHECKING:
    from twinstream.lake.entry import BatchEntry
    from twinstream.spark.pipeline import PipelineConfig
    from twinstream.spark.pipeline.pipeline_events import Happening


class Watcher(Protocol):
    """A display for the events of a run."""

    def hear(self, happening: Happening) -> None:
        """Display an event."""
        ...

    def __enter__(self) -> Self:
        """Start the display."""
        ...

    def __exit__(self, *_: object) -> None:
        """End the display."""
        ...


class JsonLines:
    """A display that prints each event as a JSON object on one line of standard output.

    The object has the time of the event in `at` and its name in `event`.
    """

    def hear(self, happening: Happening) -> None:
        """Print an event."""
        from twinstream.spark.pipeline import pipeline_events

        value = asdict(happening)
        if isinstance(happening, pipeline_events.Landed):
            value |= value.pop("entry")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        print_json({"at": now, "event": type(happening).__name__.lower(), **value})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines:
    """A display that prints each event on one line with its time."""

    def __init__(self, console: Console) -> None:
        self._console: Final = console

    def hear(self, happening: Happening) -> None:
        """Print an event."""
        now = datetime.now(UTC).strftime("%H:%M:%S")
        self._console.print(f"{now} {happening.source}: {sentence(happening)}", soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@define
class _Row:
    state: Text | str = "waits"
    batch: int | None = None
    messages: int = 0
    dead: int = 0
    bytes: int = 0
    rate: float = 0.0
    backlog: int | None = None

    def add(self, entry: BatchEntry) -> None:
        self.state = Text("landing" if entry.backlog else "up to date", "green")
        self.batch = entry.batch
        self.messages += entry.messages
        self.dead += entry.dead_letters
        self.bytes += entry.bytes
        self.rate = entry.messages / entry.seconds if entry.seconds else 0.0
        self.backlog = entry.backlog


class Board:
    """A display with a table of all sources, updated in place. Errors are printed above it."""

    def __init__(self, config: PipelineConfig, console: Console) -> None:
        self._rows: Final = {each.name: _Row() for each in config.sources}
        self._title: Final = f"{config.name} → {config.sink} in {config.path.name}"
        self._live: Final = Live(self._table(), console=console, refresh_per_second=4)

    def hear(self, happening: Happening) -> None:
        """Display an event."""
        from twinstream.spark.pipeline import pipeline_events

        row = self._rows[happening.source]
        match happening:
            case pipeline_events.Started():
                row.state, row.backlog = "running", happening.backlog
            case pipeline_events.Landed():
                row.add(happening.entry)
            case pipeline_events.Released():
                pass
            case pipeline_events.Failed():
                waits = happening.retry_in is not None
                row.state = Text("waits", "yellow") if waits else Text("failed", "red")
                text = f"{happening.source}: {sentence(happening)}"
                self._live.console.print(text, style="yellow")
            case pipeline_events.Ended():
                row.state = Text("done", "green")
        self._live.update(self._table())

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _table(self) -> Table:
        """Return a table with a line for each source."""
        numbers = ("batch", "messages", "dead letters", "written", "a second", "lag")
        table = plain_table("source", "state", *numbers, numbers=numbers, title=self._title)
        for name, row in self._rows.items():
            table.add_row(
                name,
                row.state,
                "-" if row.batch is None else f"{row.batch:,}",
                f"{row.messages:,}",
                Text(f"{row.dead:,}", "red") if row.dead else "0",
                in_bytes(row.bytes),
                f"{row.rate:,.0f}",
                "-" if row.backlog is None else f"{row.backlog:,}",
            )
        return table


def sentence(happening: Happening) -> str:
    """Return a sentence that describes an event."""
    from twinstream.spark.pipeline import pipeline_events

    match happening:
        case pipeline_events.Started():
            return f"continues at sequence {happening.position}, {happening.backlog:,} pending"
        case pipeline_events.Landed():
            entry = happening.entry
            return (
                f"batch {entry.batch}: {entry.messages:,} messages ({entry.dead_letters:,} dead"
                f" letters) of sequences {entry.start} to {entry.end - 1} in {entry.seconds:.1f} s,"
                f" {entry.backlog:,} pending"
            )
        case pipeline_events.Released():
            if happening.mode == "purge":
                return f"purged {happening.removed:,} messages below sequence {happening.end}"
            return f"bookmark at sequence {happening.end}"
        case pipeline_events.Failed():
            if happening.retry_in is None:
                return f"has ended: {happening.error}"
            return f"{happening.error.rstrip('.')}. Restarts in {happening.retry_in:g} s."
        case pipeline_events.Ended():
            return "has ended well"
