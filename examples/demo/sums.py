"""Step 6: compare the numbers of all steps."""

from __future__ import annotations

from attrs import frozen
from rich.text import Text

from examples.demo.orders import Expected
from examples.demo.scene import Scene
from js_sync import JetStream
from twinstream.cli.screen import plain_table


@frozen
class Check:
    """A comparison of an expected number with the actual number."""

    name: str
    expected: int
    found: int

    @property
    def passed(self) -> bool:
        """Whether both numbers are equal."""
        return self.expected == self.found


def checks(scene: Scene) -> list[Check]:
    """Return the comparisons of the expected numbers with the results of all steps."""
    ledger = scene.ledger
    assert ledger is not None, "the workers have not run"
    count = scene.settings.events
    trouble = Expected(count=count)
    sums = [
        Check("published", count, scene.published),
        Check("sent again and refused as duplicate", scene.sent_again, scene.refused_as_duplicate),
        Check("stored in the stream", count, scene.stored),
        Check("consumed (settled once)", count, ledger.settled),
        Check("settled twice", 0, ledger.settled_twice),
        Check("terminated, for they are no JSON", trouble.broken, len(ledger.terminated)),
        Check("failed until max_deliver", trouble.declined, len(ledger.exhausted)),
        Check("left on the server", 0, scene.left_on_server),
        Check("advisories of max_deliver", trouble.declined, _count(scene, "max_deliver")),
        Check("advisories of terminated", trouble.broken, _count(scene, "terminated")),
    ]
    if scene.settings.spark:
        sums += [
            Check("in Parquet, rows and dead letters", count, scene.in_parquet),
            Check("duplicates in Parquet", 0, scene.in_parquet - scene.distinct_in_parquet),
            Check("dead letters in Parquet", trouble.broken, scene.dead_letters),
            Check("summed over subjects", count - trouble.broken, _summed(scene)),
            Check("advisories in Parquet", scene.advisories_stored, scene.advisories_in_parquet),
        ]
    return sums


def add_up(scene: Scene, _: JetStream) -> None:
    """Print the comparisons as a table."""
    table = plain_table("sum", "expected", "found", "", numbers=("expected", "found"))
    for check in checks(scene):
        mark = Text("agrees", "green") if check.passed else Text("wrong", "bold red")
        table.add_row(check.name, f"{check.expected:,}", f"{check.found:,}", mark)
    scene.console.print(table)


def _count(scene: Scene, name: str) -> int:
    return sum(kind.count for kind in scene.advisories if kind.name == name)


def _summed(scene: Scene) -> int:
    return sum(row.orders for row in scene.subjects)
