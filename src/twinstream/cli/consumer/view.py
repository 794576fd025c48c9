"""Format a list of consumers as a table."""

from __future__ import annotations

from twinstream.cli.screen import plain_table
from twinstream.cli.table import Table
from twinstream.models import ConsumerInfo


def consumer_table(consumers: list[ConsumerInfo]) -> Table:
    """Return a table with a row for each consumer."""
    # The headings are short, so that the table fits into 80 columns with usual names and filters.
    numbers = ("pending", "ack pending", "redelivered", "pulls")
    table = plain_table("consumer", "filter", *numbers, numbers=numbers)
    for one in consumers:
        table.add_row(
            f"{one.name} (paused)" if one.paused else one.name,
            filters(one),
            one.num_pending,
            one.num_ack_pending,
            one.num_redelivered,
            one.num_waiting,
        )
    return table


def filters(consumer: ConsumerInfo) -> str:
    """Return the filter subjects of a consumer as text; `-` if no filter is known."""
    config = consumer.config
    if config is None:
        return "-"
    return ", ".join(config.filter_subjects or [config.filter_subject or "-"])
