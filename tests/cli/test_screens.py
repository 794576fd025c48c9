"""Whole sessions on terminals of 80 and 200 columns and in pipes, compared with checked-in texts.

To write the texts again: TWINSTREAM_WRITE_SCREENS=1 pytest tests/cli/test_screens.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

import js_sync
from tests.cli.terminal import Shown, session_in_pipe, session_on_terminal, steady
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, KeyValueConfig, ObjectStoreConfig, StreamConfig
from twinstream.testing import NatsServer

SCREENS = Path(__file__).with_name("screens")
LONG = "a-name-of-a-consumer-that-is-so-long-that-it-takes-most-of-a-terminal-of-80-columns"
COMMANDS = [
    "stream ls",
    "stream info ORDERS",
    "stream subjects ORDERS",
    "consumer ls ORDERS",
    "consumer info ORDERS packer",
    "kv ls",
    "kv ls prices --display-value",
    "kv history prices tea",
    "kv diff prices --from 1",
    "kv info prices",
    "object ls",
    "object ls files",
    "object info files report.txt",
    "schedule next @hourly --after 2026-01-31T08:00:00Z --count 2",
    "subject partition 5 tea coffee",
    "size --subject orders.eu --payload 512 --messages 1000000 --replicas 3",
    "lock ls",
    "stream info NO-SUCH",
    "stream ls --subject nothing.here",
]
WAYS: dict[str, Callable[[list[str]], list[Shown]]] = {
    "80": lambda commands: session_on_terminal(commands, 80),
    "200": lambda commands: session_on_terminal(commands, 200),
    "pipe": session_in_pipe,
}


@pytest.fixture(scope="module")
def filled(server: NatsServer) -> str:
    """The address of a server whose lists have long and short rows."""
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        subjects = ["orders.*.placed", "orders.*.paid", "orders.*.packed", "orders.*.returned"]
        stream = jet.create_stream(
            StreamConfig(
                name="ORDERS", subjects=subjects, description="word " * 30, max_bytes=1 << 30
            )
        )
        jet.create_stream(StreamConfig(name="EMPTY", subjects=["empty.>"]))
        for number in range(30):
            jet.publish(f"orders.{number}.placed", b"x" * 100)
        packer = stream.create_consumer(ConsumerConfig(durable_name="packer", max_deliver=5))
        stream.create_consumer(
            ConsumerConfig(
                durable_name=LONG, filter_subjects=[each.replace("*", "1") for each in subjects]
            )
        )
        for message in packer.fetch(2, timeout=10):
            message.double_ack()
        prices = jet.create_key_value(KeyValueConfig(bucket="prices", history=3))
        prices.put("tea", b"3.50")
        prices.put("tea", ("a value\twith a tab, " * 20).encode())
        prices.put("coffee.of.the.house", "größer als 3 €".encode())
        files = jet.create_object_store(
            ObjectStoreConfig(bucket="files", description="日本語" * 30)  # wide characters
        )
        files.put("report.txt", b"x" * 5000)
    return server.url


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals exist on POSIX only")
@pytest.mark.since("2.15")  # older servers report other settings
@pytest.mark.parametrize("way", WAYS)
def test_screens_are_as_checked_in(filled: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSTREAM_URL", filled)
    parts: list[str] = []
    for command, shown in zip(COMMANDS, WAYS[way](COMMANDS), strict=True):
        _check_lines(shown, way)
        screen = f"$ twinstream {command}\n{shown.out}"
        screen += f"[exit code {shown.code}]\n" if shown.code else ""
        screen += f"[standard error]\n{shown.err}" if shown.err else ""
        # The stored description of an object contains a time, whose length varies.
        parts.append(re.sub(r"\b56\d\d\b", "56NN", steady(screen)))
    text = "\n".join(parts)
    file = SCREENS / f"{way}.txt"
    if os.environ.get("TWINSTREAM_WRITE_SCREENS"):
        file.write_text(text)
    assert text == file.read_text()


def _check_lines(shown: Shown, way: str) -> None:
    for line in shown.out.splitlines():
        assert line == line.rstrip(" ")
        if way.isdecimal() and LONG not in line:
            assert cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= int(way), line
