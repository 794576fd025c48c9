"""`twinstream rtt`: measure round trips to the server."""

from __future__ import annotations

import time
from statistics import median

import click

from twinstream.cli.screen import print_json, results
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options


@click.command(short_help="Measure the round trip to the server.")
@click.argument("count", type=click.IntRange(min=1), default=5)
@json_option
@server_options
def rtt(target: Target, count: int, as_json: bool) -> None:
    """Send COUNT pings over one connection, one after the other, and print their times.

    The time of the connection itself, with TLS and login, is not part of them.
    """
    times: list[float] = []
    with target.connect() as nc:
        server = nc.server_info
        for _ in range(count):
            begun = time.perf_counter()
            nc.flush(timeout=target.timeout)
            times.append(time.perf_counter() - begun)
    found = {"least": min(times), "median": median(times), "most": max(times)}
    if as_json:
        seconds = {name: round(value, 7) for name, value in found.items()}
        print_json({"server": server.server_name, "pings": count, "seconds": seconds})
        return
    page = Page()
    page.add_row("server", server.server_name)
    page.add_row("pings", count)
    for name, value in found.items():
        page.add_row(name, f"{value * 1000:.3f} ms")
    results().print(page)
