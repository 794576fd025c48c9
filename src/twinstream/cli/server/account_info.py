"""`twinstream account info`: show the usage and the limits of the account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from twinstream.cli.screen import plain_table, print_json, results, to_terminal
from twinstream.cli.table import Cell, Page, Table
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import UNLIMITED, Size
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
            _show_usage(console, f"tier {name}", tier)
    else:
        _show_usage(console, "account", found)
    _show_api(console, found)


def _show_usage(console: Console, title: str, used: AccountInfo | AccountTier) -> None:
    """Print what an account, or a tier of it, uses of its limits."""
    limits = used.limits or AccountLimits()
    table = plain_table(title, "used", "limit", "share", numbers=("used", "limit"))
    _add(table, "memory", used.memory, limits.max_memory, Size)
    _add(table, "storage", used.storage, limits.max_storage, Size)
    _add(table, "reserved memory", used.reserved_memory, limits.max_memory, Size)
    _add(table, "reserved storage", used.reserved_storage, limits.max_storage, Size)
    _add(table, "streams", used.streams, limits.max_streams, _count)
    # The limit for consumers applies to each stream, so it is not shown next to the total.
    table.add_row("consumers", _count(used.consumers or 0), "", "")
    for name, value, shown in (
        ("largest memory stream", limits.memory_max_stream_bytes, Size),
        ("largest file stream", limits.storage_max_stream_bytes, Size),
        ("consumers of a stream", limits.max_consumers, _count),
        ("max_ack_pending of a consumer", limits.max_ack_pending, _count),
    ):
        if value is not None and value > 0:
            table.add_row(name, "", shown(value), "")
    if limits.max_bytes_required:
        table.add_row("max_bytes", "", "required", "")
    console.print(table, "")


def _add(
    table: Table, name: str, used: int | None, limit: int | None, shown: Callable[[int], Cell]
) -> None:
    # The server omits a usage of zero, and reports -1 for no limit.
    count = used or 0
    if limit is None or limit < 0:
        table.add_row(name, shown(count), UNLIMITED)
        return
    share = count / limit if limit else 1.0
    style = "red" if share >= _NEARLY_FULL else "green"
    full = round(min(share, 1.0) * _BAR) if to_terminal() else 0
    meter = Text(f"{'━' * full} {share:.0%}".lstrip(), style=style)
    table.add_row(name, shown(count), shown(limit), meter)


def _count(count: int) -> Cell:
    return count


def _show_api(console: Console, found: AccountInfo) -> None:
    page = Page("requests")
    if found.domain:
        page.add_row("domain", found.domain)
    if found.api is not None:
        page.add_row("so far", found.api.total or 0)
        page.add_row("refused", found.api.errors or 0)
        if found.api.level is not None:
            page.add_row("API level", found.api.level)
    console.print(page)
