"""What users of the `nats` command are used to: aliases, options before the command, completion."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import js_sync
from tests.cli.output import Run
from twinstream.cli.groups import twinstream
from twinstream.cli.help.examples import EXAMPLES
from twinstream.cli.help.foreign_names import advice
from twinstream.cli.help.page import CONNECTION, HelpfulCommand
from twinstream.models import ConsumerConfig, KeyValueConfig, StreamConfig
from twinstream.testing import NatsServer

NOWHERE = "nats://127.0.0.1:1"


def commands(
    group: click.Group = twinstream, parent: click.Context | None = None, *path: str
) -> Iterator[tuple[str, click.Context]]:
    context = click.Context(group, parent=parent, info_name=path[-1] if path else "twinstream")
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, context, *path, name)
        else:
            yield " ".join((*path, name)), click.Context(found, parent=context, info_name=name)


COMMANDS = {path: context for path, context in commands() if path != "demo"}


def test_every_command_has_an_example_that_it_accepts() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    for path, example in EXAMPLES.items():
        words = shlex.split(example.partition(" < ")[0])
        assert words[0] == "twinstream"
        command = COMMANDS[path].command
        rest = words[1 if path == "lock run" else len(path.split()) :]
        rest = rest[1:] if path == "lock run" else rest
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        given = rest[: rest.index("--")] if "--" in rest else rest
        assert {each for each in given if each.startswith("-") and len(each) > 1} <= options, path
        needed = [each for each in command.params if each.required and each.nargs == 1]
        assert len([each for each in rest if not each.startswith("-")]) >= len(
            [each for each in needed if isinstance(each, click.Argument)]
        ), path


@pytest.mark.parametrize("path", COMMANDS)
def test_options_for_the_connection_are_at_the_end_of_a_page(path: str) -> None:
    command = COMMANDS[path].command
    assert isinstance(command, HelpfulCommand)
    page = command.get_help(COMMANDS[path])
    own, title, connection = page.partition(f"{CONNECTION}:")
    assert f"Example:\n  {EXAMPLES[path]}" in own
    assert "--tls-first" not in own
    assert ("--tls-first" in connection) is bool(title)
    assert "Options:" not in connection


@pytest.mark.parametrize(
    ("alias", "whole"),
    [
        ("stream list", "stream ls"),
        ("con list {}", "consumer ls {}"),
        ("str info {}", "stream info {}"),
        ("obj list", "object ls"),
    ],
)
def test_aliases_are_the_commands(run: Run, stream: str, alias: str, whole: str) -> None:
    both = [run(*words.format(stream).split()) for words in (alias, whole)]
    assert both[0].exit_code == 0
    assert both[0].stdout == both[1].stdout


def test_aliases_remove_without_a_question(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    jet.create_consumer(stream, ConsumerConfig(durable_name="w"))
    assert run("con", "delete", stream, "w", "-f").exit_code == 0
    assert run("stream", "delete", stream, "--force").exit_code == 0
    bucket = jet.create_key_value(KeyValueConfig(bucket=stream))
    bucket.put("tea", b"1")
    assert run("kv", "rm", stream, "tea", "-f").exit_code == 0
    # `kv create` is a command of its own, no alias of `kv add`.
    assert run("kv", "create", stream, "tea", "2").exit_code == 0
    assert "list" not in run("stream", "--help").stdout.split()


def test_options_for_the_server_may_stand_before_the_command(
    run: Run, server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSTREAM_URL", NOWHERE)
    assert run("stream", "info", stream).exit_code == 1
    assert run("-s", server.url, "stream", "info", stream).exit_code == 0
    # The option after the command comes first.
    assert run("-s", NOWHERE, "stream", "info", stream, "--server", server.url).exit_code == 0
    assert run("-s", server.url, "stream", "info", stream, "-s", NOWHERE).exit_code == 1
    domain = run("-s", server.url, "--domain", "NO", "--timeout", "1s", "stream", "info", stream)
    assert domain.exit_code == 1


def test_options_before_the_command_are_judged(run: Run, server: NatsServer) -> None:
    wrong = run("-s", server.url, "--timeout", "soon", "stream", "ls")
    assert (wrong.exit_code, "is not a duration" in wrong.stderr) == (2, True)
    cert = run("-s", server.url, "--tls-key", __file__, "stream", "ls")
    assert (cert.exit_code, "--tls-key needs --tls-cert" in cert.stderr) == (2, True)


def test_debug_prints_the_traceback(run: Run) -> None:
    plain = run("stream", "info", "NO-SUCH")
    debugged = run("--debug", "stream", "info", "NO-SUCH")
    assert "Traceback" not in plain.stderr
    assert debugged.stderr.startswith("Traceback (most recent call last):")
    assert debugged.stderr.endswith(plain.stderr)
    assert debugged.exit_code == 3


def test_version_is_a_command(run: Run) -> None:
    assert run("version").stdout.startswith("twinstream ")
    assert CliRunner().invoke(twinstream, ["version", "--json"]).stdout.startswith('{"twinstream"')


def test_advice_names_commands_that_exist() -> None:
    from twinstream.cli.help.foreign_names import _IN_NATS

    for full, here in _IN_NATS.items():
        assert full not in COMMANDS
        words = here.partition(",")[0].split()
        assert any(" ".join(words[:count]) in COMMANDS for count in (1, 2)), here
    assert advice("", "streem", ["stream"]) == "Did you mean 'stream'?"


def completed(server: NatsServer, line: str) -> set[str]:
    """Return what bash offers after a line, whose last word is incomplete."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    done = subprocess.run(
        [sys.executable, "-c", "from twinstream.cli.main import main; main()"],
        env=os.environ
        | {
            "TWINSTREAM_URL": server.url,
            "_TWINSTREAM_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return {each.partition(",")[2] for each in done.stdout.split()}


def test_names_are_completed(server: NatsServer, jet: js_sync.JetStream) -> None:
    for name in ("HABITS-A", "HABITS-B"):
        jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    jet.create_consumer("HABITS-A", ConsumerConfig(durable_name="worker"))
    bucket = jet.create_key_value(KeyValueConfig(bucket="habits"))
    for key in ("tea.black", "tea.green", "milk"):
        bucket.put(key, b"x")
    assert completed(server, "twinstream stream in") == {"info"}
    assert completed(server, "twinstream stream info HABITS-") == {"HABITS-A", "HABITS-B"}
    assert completed(server, "twinstream consumer info HABITS-A ") == {"worker"}
    assert completed(server, "twinstream kv get ha") == {"habits"}
    assert completed(server, "twinstream kv get habits tea") == {"tea.black", "tea.green"}
    other = f"twinstream -s {NOWHERE} stream info HABITS-"
    assert completed(server, other) == set()
