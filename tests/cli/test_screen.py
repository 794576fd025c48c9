"""Output: text of other clients is printed unchanged and without effect; numbers with nouns."""

from __future__ import annotations

from pathlib import Path

import pytest

import js_sync
from tests.cli.output import Run
from tests.odd_messages import OddMessage, publish_raw
from twinstream.cli.screen import counted
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

MARKUP = "[/y] [red]x :smile:"
ESCAPE = "\x1b[31m"


@pytest.fixture
def odd(server: NatsServer, stream: str) -> str:
    """A stream whose texts contain markup and escapes that a console would interpret."""
    name = f"{stream}[red]"
    config = StreamConfig(
        name=name, subjects=[f"{name}.*"], description=MARKUP + ESCAPE, metadata={"[/a]": "[/b]"}
    )
    with js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        jet.create_stream(config)
        jet.publish(f"{name}.[/y]", b"[/z]", headers={"Colour": f"[/w]{ESCAPE}{'long ' * 50}"})
    return name


def test_names_and_descriptions_are_no_markup(run: Run, odd: str, tmp_path: Path) -> None:
    assert odd in run("stream", "ls").stdout
    info = run("stream", "info", odd)
    assert info.exit_code == 0, info.output
    assert MARKUP in info.stdout
    assert ESCAPE not in info.stdout
    assert f"{odd}.[/y]" in run("stream", "subjects", odd).stdout
    folder = str(tmp_path / "[/in]")
    made = run("backup", odd, folder)
    assert made.exit_code == 0, made.output
    assert f"in {folder} (" in made.stdout
    assert f"deleted {odd}" in run("stream", "rm", odd, "--yes").stdout
    assert folder in run("restore", folder).stdout
    assert "[/k]" in run("subject", "partition", "3", "[/k]").stdout


def test_headers_are_whole_and_harmless(run: Run, odd: str) -> None:
    for shown in (run("get", odd), run("consume", odd, "--count", "1")):
        assert shown.exit_code == 0, shown.output
        _, header, payload = shown.stdout.splitlines()
        assert header.rstrip() == f"  Colour: [/w]\\u001b[31m{'long ' * 50}".rstrip()
        assert payload == "[/z]"


def test_names_of_headers_are_harmless(run: Run, server: NatsServer, stream: str) -> None:
    """Other clients may send header names with any characters."""
    block = f"NATS/1.0\r\nA{ESCAPE}: b\r\n\r\n".encode()
    publish_raw(server.port, f"{stream}.a", OddMessage(block, b""))
    for shown in (run("get", stream), run("consume", stream, "--count", "1")):
        assert shown.exit_code == 0, shown.output
        assert shown.stdout.splitlines()[1] == "  A\\u001b[31m: b"


def test_things_are_counted_in_words() -> None:
    counts = [(1, "message"), (2000, "message"), (0, "dead letter"), (1, "batch"), (2, "batch")]
    told = [counted(number, noun) for number, noun in counts]
    assert told == ["1 message", "2,000 messages", "0 dead letters", "1 batch", "2 batches"]
