"""Output: text of other clients is printed unchanged and without effect; numbers with nouns."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

import js_sync
from tests.cli.output import Run
from tests.cli.terminal import COMMAND
from tests.odd_messages import OddMessage, publish_raw
from tests.unhurried import UNHURRIED
from tests.warm import TWINSTREAM, run_warm
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
    with js_sync.connect(server.url, **UNHURRIED) as nc:
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


def _commands(tmp_path: Path, stream: str, bucket: str) -> list[list[str]]:
    """Commands that show their progress."""
    file, folder = str(tmp_path / "content"), str(tmp_path / "backup")
    Path(file).write_bytes(b"x" * 1000)
    return [
        ["pub", f"{stream}.a", "x", "--count", "3"],
        ["pub", f"{stream}.a", "--lines", "--file", file],
        ["object", "put", bucket, file, "--yes"],
        ["object", "get", bucket, "content", "-O", f"{file}.copy"],
        ["backup", stream, folder],
        ["stream", "rm", stream, "--yes"],
        ["restore", folder],
    ]


@pytest.fixture
def bucket(jet: js_sync.JetStream, stream: str) -> str:
    jet.create_object_store(js_sync.ObjectStoreConfig(bucket=stream))
    return stream


@pytest.mark.parametrize("more", [{}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_there_is_no_progress_where_standard_error_is_no_terminal(
    server: NatsServer, tmp_path: Path, stream: str, bucket: str, more: dict[str, str]
) -> None:
    environment = os.environ | {"TWINSTREAM_URL": server.url} | more
    for arguments in _commands(tmp_path, stream, bucket):
        done = run_warm(TWINSTREAM, ["twinstream", *arguments], tmp_path, environment, 120)
        assert done.stdout
        assert (done.returncode, done.stderr) == (0, ""), arguments


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals exist on POSIX only")
def test_there_is_progress_on_a_terminal(server: NatsServer, stream: str) -> None:
    environment = os.environ | {"TWINSTREAM_URL": server.url, "TERM": "xterm"}
    command = [*COMMAND, "pub", f"{stream}.a", "x", "-n", "3"]
    ours, theirs = pty.openpty()
    subprocess.run(command, stderr=theirs, stdout=subprocess.PIPE, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000)
    os.close(ours)
    assert b"publish" in shown
    assert b"3/3" in shown
