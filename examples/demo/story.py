"""Run the steps of the demo in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.rule import Rule

import js_sync
from examples.demo import advisories, configs, consuming, landing, page, publishing, sums
from examples.demo.scene import Scene, Settings
from examples.demo.sums import Check
from js_sync import JetStream
from twinstream.testing import NatsServer

Step = tuple[str, str, Callable[[Scene, JetStream], None]]
STEPS: Final[tuple[Step, ...]] = (
    (
        "Check and create",
        "The configuration files are checked without a server, for the errors that the server"
        " would return; then the streams and the consumer are created.",
        configs.check_and_create,
    ),
    (
        "Publish",
        "Each order event has a message id, and every tenth event is sent twice; the stream"
        " must store each event once.",
        publishing.publish,
    ),
    (
        "Consume",
        "Two workers, one on js_sync and one on js_async, share one durable consumer and"
        " acknowledge each message; some handlers fail on purpose, a few until max_deliver.",
        consuming.consume,
    ),
    (
        "Listen",
        "The server published advisories meanwhile; they are decoded to their types.",
        advisories.show,
    ),
    (
        "Land",
        "Spark reads both streams in parallel by sequence range and writes Parquet tables with"
        " typed columns; the summary comes from those tables.",
        landing.land,
    ),
    (
        "Add up",
        "Published, stored, consumed and landed must be the same number, without duplicates.",
        sums.add_up,
    ),
)


def tell(settings: Settings, console: Console) -> list[Check]:
    """Run all steps on a temporary server, write the report, and return the comparisons."""
    with NatsServer() as server, js_sync.connect(server.url, name="demo") as nc:
        console.print(
            f"[bold]Twinstream demo[/]: nats-server {server.version} on {server.url},"
            " with a temporary store."
        )
        scene = Scene(
            settings=settings, console=console, url=server.url, server_version=server.version
        )
        jet = nc.jetstream()
        for number, (title, sentence, step) in enumerate(STEPS, start=1):
            console.print()
            console.print(Rule(f"[bold]{number}/{len(STEPS)} {title}", align="left"))
            if step is landing.land and not settings.spark:
                console.print("Skipped because of --no-spark.")
                continue
            console.print(sentence)
            step(scene, jet)
    checks = sums.checks(scene)
    page.write_page(settings.report, scene, checks)
    return checks
