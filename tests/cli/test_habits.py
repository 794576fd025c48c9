"""What users of the `nats` command are used to: aliases, options before the command, completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import js_sync
from tests.cli.output import Run, json_lines
from tests.soak import LONGEST
from twinstream.cli.groups import twinstream
from twinstream.cli.help.examples import EXAMPLES
from twinstream.cli.help.foreign_names import advice
from twinstream.cli.help.foreign_options import IN_NATS
from twinstream.cli.help.page import CONNECTION, HelpfulCommand
from twinstream.models import ConsumerConfig, KeyValueConfig, ObjectStoreConfig, StreamConfig
from twinstream.testing import NatsServer

NOWHERE = "nats://127.0.0.1:1"


def commands(
    group: click.Group = twinstream, parent: click.Context | None = None, *path: str
) -> Iterator[tuple[str, click.Context]]:
    name = path[-1] if path else "twinstream"
    # With the settings of the group: click keeps the help option of the first context.
    context = click.Context(group, parent=parent, info_name=name, **group.context_settings)
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


def names_in(text: str) -> set[str]:
    """Return the options that a text names."""
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


def options_of(path: str) -> set[str]:
    params = COMMANDS[path].command.params
    return {name for each in params for name in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("path", IN_NATS)
def test_advice_for_options_names_options_that_exist(path: str) -> None:
    for name, here in IN_NATS[path].items():
        assert name not in options_of(path)
        own, _, other = here.partition("`twinstream ")
        assert names_in(own) <= options_of(path), here
        if other:
            words = re.findall(r"[a-z-]+", other.partition("`")[0])
            meant = next(" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in COMMANDS)
            assert names_in(other) <= options_of(meant), here


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stream purge S --seq 3", "Here it is: --before SEQ."),
        ("stream purge S --sequence=3", "Here it is: --before SEQ."),
        ("get S --last-for a", "Here it is: --last SUBJECT."),
        ("get S -S a", "Here it is: --last SUBJECT."),
        ("get S --start-seq 5", "Here it is: --from SEQ."),
        ("pub a --templates", "Here it is: the default in arguments, where {n} is"),
        ("pub a --force-stdin", "Here it is: the default without DATA"),
        ("sub a --durable x", "Here it is: `twinstream consume STREAM CONSUMER --create`."),
        ("consumer add S c --max-outstanding 5", "Here it is: --max-pending."),
        ("kv get b k --js-domain x", "Here it is: --domain."),
        ("--context x stream ls", "Here it is: --server and --creds"),
        ("stream --context x ls", "Here it is: --server and --creds"),
        ("sub --inbox", "Nothing does the same here."),
        ("stream find --server-name x", "Nothing does the same here."),
        ("stream ls -j", "Here it is: --json."),
        ("stream purge S --subjcet a", "Did you mean --subject?"),
        ("stream ls --subj a", "Did you mean --subject?"),
        ("get S 10", "A sequence is given by --seq, a number of messages by --count"),
        ("stream names", "Here it is: twinstream stream ls --names."),
        ("get S --seq 7 --count 2", "give --from SEQ for the first of them"),
        ("get S --last a --subject a", "give --from SEQ for the first of them"),
        ("object put b --name x", "For standard input, give - with a --name."),
    ],
)
def test_error_for_an_option_of_nats_says_what_to_try(words: str, said: str) -> None:
    result = CliRunner().invoke(twinstream, words.split())
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("words", ["stream rmm S 1 --names", "get S --seven", "get S -Q"])
def test_options_that_are_spelled_differently_are_not_offered(words: str) -> None:
    result = CliRunner().invoke(twinstream, words.split())
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: No such option '{words.split()[-1]}'.\n")


def test_lists_of_names_only(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    for name in ("b", "a"):
        jet.create_consumer(stream, ConsumerConfig(durable_name=name))
    jet.create_key_value(KeyValueConfig(bucket=stream))
    store = jet.create_object_store(ObjectStoreConfig(bucket=stream))
    store.put("file", b"x")
    for words in (
        "stream ls -n",
        f"stream ls -n --subject {stream}.a",
        "stream ls -a --names",
    ):
        lines = run(*words.split()).stdout.splitlines()
        assert stream in lines
        assert lines == sorted(lines)
        assert (f"KV_{stream}" in lines) is ("--subject" not in words)
    assert {"stream_name": stream} in json_lines(run("stream", "ls", "-n", "--json"))
    assert stream in run("stream", "find", "--empty", "--names").stdout.splitlines()
    assert run("consumer", "ls", stream, "-n").stdout == "a\nb\n"
    as_json = json_lines(run("consumer", "ls", stream, "--names", "--json"))
    assert as_json == [{"stream_name": stream, "name": name} for name in ("a", "b")]
    assert stream in run("kv", "ls", "-n").stdout.splitlines()
    assert stream in run("object", "ls", "-n").stdout.splitlines()
    assert run("object", "ls", stream, "-n").stdout == "file\n"


def test_commands_that_do_not_ask_accept_the_answer(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    jet.create_consumer(stream, ConsumerConfig(durable_name="c"))
    for words in (("pause", stream, "c", "1h"), ("resume", stream, "c")):
        assert run("consumer", *words, "-f").exit_code == 0
        assert run("consumer", *words, "--force", "--json").exit_code == 0
        assert "--force" not in run("consumer", words[0], "--help").stdout


COMPLETING = """
from twinstream.cli.help import completion
completion._PATIENCE = 60
from twinstream.cli.main import main
main()
"""
"""The command, whose completion waits for the server for a minute."""


def completed(server: NatsServer, line: str) -> set[str]:
    """Return what bash offers after a line, whose last word is incomplete."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    done = subprocess.run(
        [sys.executable, "-c", COMPLETING],
        env=os.environ
        | {
            "TWINSTREAM_URL": server.url,
            "_TWINSTREAM_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        timeout=LONGEST,
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
