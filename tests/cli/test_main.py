"""The command as a whole: help, version, and the format of errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.cli.output import Run
from twinstream.cli.failures import Failure, reported
from twinstream.cli.groups import COMMANDS, twinstream
from twinstream.errors import JetStreamNotEnabled
from twinstream.testing import FakePeer, FakeServer

TWINSTREAM = Path(sys.executable).with_name("twinstream")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_subcommand(arguments: list[str]) -> None:
    result = CliRunner().invoke(twinstream, arguments)
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.stdout


def subcommands(group: click.Group = twinstream, *path: str) -> Iterator[list[str]]:
    """Return all subcommands, including those of groups."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            yield [*path, name]
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from subcommands(command, *path, name)


@pytest.mark.parametrize("command", list(subcommands()), ids=" ".join)
def test_every_subcommand_explains_itself_and_its_options(command: list[str]) -> None:
    result = CliRunner().invoke(twinstream, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage: " in result.stdout
    found: click.Command | None = twinstream
    for name in command:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name)
    assert found is not None
    options = [each for each in found.params if isinstance(each, click.Option)]
    assert [each.opts for each in options if not each.help] == []


def test_the_installed_command_states_its_version() -> None:
    done = subprocess.run([TWINSTREAM, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("twinstream, version ")


def test_wrong_usage_is_exit_code_2() -> None:
    assert CliRunner().invoke(twinstream, ["no-such-thing"]).exit_code == 2
    assert CliRunner().invoke(twinstream, ["stream", "info"]).exit_code == 2
    assert CliRunner().invoke(twinstream, ["pub", "a", "b", "--count", "0"]).exit_code == 2


def test_an_unreachable_server_is_one_explained_line() -> None:
    command = [TWINSTREAM, "stream", "ls", "--server", "nats://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "127.0.0.1:1" in done.stderr
    assert "TWINSTREAM_URL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "stream info NO-SUCH",
        "consume NO-SUCH",
        "consumer rm NO-SUCH w --yes",
        "get NO-SUCH --seq 1",
        "health NO-SUCH",
        "dlq show NO-SUCH 1",
    ],
)
def test_for_machines_a_failure_is_a_json_document(run: Run, arguments: str) -> None:
    result = run(*arguments.split(), "--json")
    assert result.exit_code == 3
    assert result.stdout == ""
    failure = json.loads(result.stderr)
    assert sorted(failure) == ["err_code", "error", "kind"]
    assert (failure["kind"], failure["err_code"]) == ("StreamNotFound", 10059)
    assert run(*arguments.split()).stderr.startswith("error: ")


def test_a_failure_of_the_command_itself_has_no_kind(run: Run, stream: str) -> None:
    result = run("lock", "release", "none", "--stream", f"NO-{stream}", "--yes", "--json")
    failure = json.loads(result.stderr)
    assert failure["error"].startswith("the lock none is not held")
    assert failure["kind"] is failure["err_code"] is None


def interrupt_the_process() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_this_thread() -> None:
    """The wait of the main thread continues, as if the signal had arrived just before it."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("interrupt", [interrupt_the_process, interrupt_this_thread])
def test_for_machines_an_interrupt_is_a_json_document(
    run: Run, interrupt: Callable[[], None]
) -> None:
    def interrupting(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("STREAM.INFO.S")
        interrupt()
        peer.until_left()

    with FakeServer(rest=interrupting) as server:
        result = run("stream", "info", "S", "--json", "--server", server.url)
        assert (result.exit_code, result.stdout) == (1, "")
        expected = {"error": "interrupted", "kind": "KeyboardInterrupt", "err_code": None}
        assert json.loads(result.stderr) == expected
        shown = run("stream", "info", "S", "--server", server.url)
    assert shown.stderr.strip() == "Aborted!"


def test_refused_publication_is_reported_as_on_standard_output(run: Run, stream: str) -> None:
    result = run("pub", f"{stream}.a", "x", "--last-seq", "7", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr) == json.loads(result.stdout)
    assert json.loads(result.stderr)["kind"] == "WrongLastSequence"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("validate -", "the file is empty"), ("subject partition 3 k <&- 2>&-", "k\t")],
)
def test_closed_streams_are_empty(arguments: str, said: str) -> None:
    command = ["sh", "-c", f'exec "$0" {arguments} <&-', TWINSTREAM]
    done = subprocess.run(command, capture_output=True, text=True)
    assert said in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "--version", "stream --help", "schema"])
def test_a_full_disk_is_one_line(arguments: str, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        command = [TWINSTREAM, *arguments.split()]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n"


def test_an_account_without_jetstream_is_not_the_servers_fault() -> None:
    with pytest.raises(Failure, match="for the account"), reported():
        raise JetStreamNotEnabled("not enabled for account", code=503, err_code=10039)
    with pytest.raises(Failure, match="--prefix set another"), reported():
        raise JetStreamNotEnabled("JetStream does not answer", code=503, err_code=0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("strem", "Did you mean 'stream'?"),
        ("streams", "Did you mean 'stream'?"),
        ("publish", "Did you mean 'pub'?"),
        ("stream inof", "Did you mean 'info'?"),
        ("stream view", "Here it is: twinstream get STREAM --count N"),
        ("con state", "Here it is: twinstream consumer info STREAM CONSUMER."),
        ("server check", "Here it is: twinstream health."),
        ("quux", "There are: account, apply, backup, "),
    ],
)
def test_error_for_an_unknown_subcommand_says_what_to_try(words: str, said: str) -> None:
    result = CliRunner().invoke(twinstream, words.split())
    assert result.exit_code == 2
    assert f". {said}" in result.stderr


def test_command_without_the_extra_explains_the_installation() -> None:
    program = (
        "import sys; sys.modules['click'] = None; from twinstream.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "in a clone: pip install '.[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["twinstream.cli.groups", "twinstream.cli.stream.info"])
@pytest.mark.parametrize("words", [["--json"], ["--", "--json"]], ids=["json", "text"])
def test_ctrl_c_during_imports_is_reported_as_usual(module: str, words: list[str]) -> None:
    program = f"""
import sys

class Impatient:
    def find_spec(self, name, *_):
        if name == "{module}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
from twinstream.cli.main import main
main()
"""
    command = [sys.executable, "-c", program, "stream", "info", "S", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    if words[0] == "--":
        assert done.stderr.strip() == "Aborted!"
    else:
        expected = {"error": "interrupted", "kind": "KeyboardInterrupt", "err_code": None}
        assert json.loads(done.stderr) == expected


def test_help_imports_no_large_package() -> None:
    program = (
        "import sys\nfrom click.testing import CliRunner\n"
        "from twinstream.cli.groups import twinstream\n"
        "assert CliRunner().invoke(twinstream, ['--help']).exit_code == 0\n"
        "assert not {'pyspark', 'pyarrow', 'jsonschema'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "command",
    [
        ["stream", "ls", "--timeout"],
        ["pub", "a", "x", "--rate"],
        ["events", "--wait"],
        ["consume", "S", "--wait"],
        ["health", "--interval"],
        ["lock", "run", "a", "true", "--wait"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_numbers_that_mean_nothing_are_wrong_usage(command: list[str], number: str) -> None:
    result = CliRunner().invoke(twinstream, [*command, number])
    assert result.exit_code == 2
    assert f"{number} is not a finite number" in result.stderr


def test_subcommands_load_with_a_click_without_generic_types() -> None:
    program = (
        "import click; click.ParamType.__class_getitem__ = None  # as before click 8.4\n"
        "from click.testing import CliRunner; from twinstream.cli.groups import twinstream\n"
        "done = CliRunner().invoke(twinstream, ['--help'])\n"
        "assert done.exit_code == 0, done.exception\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "command",
    [
        ["get", "S", "--seq"],
        ["get", "S", "--from"],
        ["consume", "S", "--from"],
        ["stream", "purge", "S", "--before"],
        ["stream", "rmm", "S"],
        ["consumer", "reset", "S", "c", "--seq"],
        ["dlq", "show", "S"],
        ["pub", "a", "x", "--last-seq"],
        ["pub", "a", "x", "--ttl"],
    ],
    ids=" ".join,
)
def test_numbers_beyond_what_servers_have_are_wrong_usage(command: list[str]) -> None:
    result = CliRunner().invoke(twinstream, [*command, str(2**64)])
    assert result.exit_code == 2
    assert str(2**64) in result.stderr
