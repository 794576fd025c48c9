"""``twinstream account info``: show the usage and the limits of the account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table

from twinstream.cli.screen import plain_table, print_json, results
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_bytes
from twinstream.models import AccountInfo, AccountLimits, AccountTier, encode

_BAR: Final = 24
# The fraction of the limit from which on a bar is red.
_NEARLY_FULL: Final = 0.9


@click.command(short_help="Show usage and limits of the account.")
@json_option
@server_options
def info(target: Target, as_json: bool) -> None:
    """Show the account's usage and its limits.

    Accounts may have tiers, with separate limits for each number of replicas.
    """
    with target.connect() as nc:
        found = target.jetstream(nc).account_info()
    if as_json:
        print_json(encode(found))
        return
    console = results()
    if found.tiers:
        for name, tier in sorted(found.tiers.items()):
            _show_use(console, f"tier {name}", tier)
    else:
        _show_use(console, "account", found)
    _show_api(console, found)


def _show_use(console: Console, title: str, used: AccountInfo | AccountTier) -> None:
    limits = used.limits or AccountLimits()
    table = plain_table(title, "used", "limit", "", numbers=("used", "limit"))
    _add(table, "memory", used.memory, limits.max_memory, in_bytes)
    _add(table, "storage", used.storage, limits.max_storage, in_bytes)
    _add(table, "reserved memory", used.reserved_memory, limits.max_memory, in_bytes)
    _add(table, "reserved storage", used.reserved_storage, limits.max_storage, in_bytes)
    _add(table, "streams", used.streams, limits.max_streams, _count)
    # The limit for consumers applies to each stream, so it is not shown next to the total.
    table.add_row("consumers", _count(used.consumers or 0), "", "")
    for name, value, shown in (
        ("largest memory stream", limits.memory_max_stream_bytes, in_bytes),
        ("largest file stream", limits.storage_max_stream_bytes, in_bytes),
        ("consumers of a stream", limits.max_consumers, _count),
        ("max_ack_pending of a consumer", limits.max_ack_pending, _count),
    ):
        if value is not None and value > 0:
            table.add_row(name, "", shown(value), "")
    if limits.max_bytes_required:
        table.add_row("max_bytes", "", "required", "")
    console.print(table, "")


def _add(
    table: Table, name: str, used: int | None, limit: int | None, shown: Callable[[int], str]
) -> None:
    # The server omits a usage of zero, and reports -1 for no limit.
    count = used or 0
    if limit is None or limit < 0:
        table.add_row(name, shown(count), "none", "")
        return
    share = count / limit if limit else 1.0
    style = "red" if share >= _NEARLY_FULL else "green"
    bar = ProgressBar(
        total=1.0, completed=min(share, 1.0), width=_BAR, complete_style=style, finished_style=style
    )
    meter = Table.grid(padding=(0, 1))
    meter.add_row(bar, f"{share:.0%}")
    table.add_row(name, shown(count), shown(limit), meter)


def _count(count: int) -> str:
    return f"{count:,}"


def _show_api(console: Console, found: AccountInfo) -> None:
    table = plain_table("requests", "")
    if found.domain:
        table.add_row("domain", found.domain)
    if found.api is not None:
        table.add_row("so far", _count(found.api.total or 0))
        table.add_row("refused", _count(found.api.errors or 0))
        if found.api.level is not None:
            table.add_row("API level", _count(found.api.level))
    console.print(table)
