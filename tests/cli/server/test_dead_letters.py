"""`twinstream dlq`."""

from __future__ import annotations

import signal

import pytest
from click.testing import Result

import js_sync
from tests.cli.output import Run, in_time, json_lines
from tests.hooked import hooked
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig, evolve
from twinstream.testing import NatsServer


def fail(server: NatsServer, stream: str, *data: bytes) -> None:
    """Publish messages and terminate each of them."""
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        worker = jet.create_or_update_consumer(stream, ConsumerConfig(durable_name="w"))
        for number, each in enumerate(data):
            jet.publish(f"{stream}.{number}", each, headers={"Trace": str(number)})
        for message in worker.fetch(len(data), timeout=60):
            message.term("no such tea")


def collected(run: Run, stream: str, count: int) -> None:
    """Collect until there are `count` dead letters."""
    for _ in range(60):
        assert run("dlq", "run", stream, "--once").exit_code == 0
        if len(json_lines(run("dlq", "ls", stream, "--json"))) >= count:
            return
    raise AssertionError("the dead letters did not come")


def test_without_letters_the_command_that_keeps_them_is_named(run: Run, stream: str) -> None:
    for command in (("ls", stream), ("show", stream, "1"), ("replay", stream, "--all")):
        result = run("dlq", *command)
        assert (result.exit_code, result.stdout) == (3, "")
        assert f"there is no stream {stream}-dead" in result.stderr
        assert f"`twinstream dlq run {stream}` creates it" in result.stderr


def test_failures_are_kept_listed_and_replayed(run: Run, server: NatsServer, stream: str) -> None:
    first = run("dlq", "run", stream, "--once")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith(f"0 dead letters stored in {stream}-dead")
    assert run("dlq", "ls", stream).stdout == ""
    fail(server, stream, b"one", b"\xff\x00", b"three")
    collected(run, stream, 3)

    one, two, three = json_lines(run("dlq", "ls", stream, "--json"))
    assert (one["seq"], one["data"], one["reason"]) == (1, "one", "no such tea")
    assert (two["data_base64"], three["headers"]) == ("/wA=", [["Trace", "2"]])
    table = run("dlq", "ls", stream).stdout
    assert table.count("no such tea") == 3
    shown = run("dlq", "show", stream, str(one["letter"])).stdout
    assert "terminated" in shown
    assert "Trace: 0" in shown
    assert shown.rstrip().endswith("one")
    as_json = run("dlq", "show", stream, str(one["letter"]), "--json")
    assert json_lines(as_json) == [one]
    raw = run("dlq", "show", stream, str(two["letter"]), "--raw")
    assert (raw.exit_code, raw.stdout_bytes) == (0, b"\xff\x00")
    assert run("dlq", "show", stream, "1", "--raw", "--json").exit_code == 2

    asked = run("dlq", "replay", stream, str(one["letter"]), input="n\n")
    assert (asked.exit_code, asked.stdout) == (1, "")
    assert "Aborted!" in asked.stderr
    assert run("dlq", "replay", stream, str(one["letter"]), "--yes").exit_code == 0
    assert run("dlq", "discard", stream, str(two["letter"]), input="y\n").exit_code == 0
    moved = run("dlq", "replay", stream, "--all", "--yes", "--subject", f"{stream}.again")
    assert moved.stdout == "1 message published again\n"
    assert json_lines(run("dlq", "ls", stream, "--json")) == []
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        found = nc.jetstream().get_stream(stream)
        replayed = [found.get_message(seq) for seq in (4, 5)]
    assert [(message.subject, message.data) for message in replayed] == [
        (f"{stream}.0", b"one"),
        (f"{stream}.again", b"three"),
    ]


def test_a_letter_without_its_message_is_not_replayed(
    run: Run, server: NatsServer, stream: str
) -> None:
    run("dlq", "run", stream, "--once")
    fail(server, stream, b"one")
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().get_stream(stream).purge()
    collected(run, stream, 1)
    (letter,) = json_lines(run("dlq", "ls", stream, "--json"))
    assert "missing" in letter
    raw = run("dlq", "show", stream, str(letter["letter"]), "--raw")
    assert (raw.exit_code, raw.stdout_bytes) == (1, b"")
    assert "has no payload" in raw.stderr
    refused = run("dlq", "replay", stream, str(letter["letter"]), "--yes")
    assert refused.exit_code == 1
    assert "cannot be replayed" in refused.stderr
    assert "1 without a message stay" in run("dlq", "replay", stream, "--all", "--yes").stdout
    assert run("dlq", "discard", stream, "--all", "--yes").stdout == "1 dead letter removed\n"


def test_each_command_speaks_json(run: Run, server: NatsServer, stream: str) -> None:
    run("dlq", "run", stream, "--once")
    fail(server, stream, b"one", b"two")
    collected(run, stream, 2)
    (ran,) = json_lines(run("dlq", "run", stream, "--once", "--json"))
    assert ran == {"letters": f"{stream}-dead", "stored": 0, "known": 0, "skipped": 0}
    first, second = (str(one["letter"]) for one in json_lines(run("dlq", "ls", stream, "--json")))
    refused = run("dlq", "replay", stream, first, "--json", input="y\n")
    assert (refused.exit_code, refused.stdout) == (2, "")
    again = run("dlq", "replay", stream, first, first, "--json", "--yes")
    assert json_lines(again) == [{"stream_name": stream, "replayed": 1, "missing": 0, "refused": 0}]
    gone = run("dlq", "discard", stream, second, second, "--json", "--yes")
    assert json_lines(gone) == [{"stream_name": stream, "discarded": 1}]


def test_failure_in_the_middle_reports_the_progress(run: Run, stream: str) -> None:
    with NatsServer(start_timeout=300) as own:
        with js_sync.connect(own.url, **UNHURRIED) as nc:
            nc.jetstream().create_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))

        def at_own(*arguments: str) -> Result:
            return run(*arguments, "--server", own.url)

        at_own("dlq", "run", stream, "--once")
        fail(own, stream, b"one", b"two", b"three")
        collected(at_own, stream, 3)
        steps: list[object] = []

        def lost_at_the_second(letter: object) -> None:
            steps.append(letter)
            if len(steps) == 2:
                own.kill()

        def attempt() -> Result:
            steps.clear()
            return at_own("dlq", "replay", stream, "--all", "--yes", "--timeout", "0.5")

        with hooked("command: before step", lost_at_the_second):
            failed = in_time(attempt, lambda _: len(steps) >= 2)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "letter 2: " in failed.stderr
    assert failed.stderr.endswith("\n1 of 3 dead letters published again\n")


def test_a_letter_that_the_server_refuses_does_not_stop_the_rest(
    run: Run, server: NatsServer, jet: js_sync.JetStream, stream: str
) -> None:
    run("dlq", "run", stream, "--once")
    fail(server, stream, b"one", b"x" * 500, b"three")
    collected(run, stream, 3)
    jet.update_stream(evolve(jet.get_stream(stream).cached_info.config, max_msg_size=300))
    failed = run("dlq", "replay", stream, "--all", "--yes")
    assert (failed.exit_code, failed.stdout) == (1, "2 messages published again\n")
    assert "message size exceeds maximum allowed" in failed.stderr
    assert [one["seq"] for one in json_lines(run("dlq", "ls", stream, "--json"))] == [2]


def test_refused_letters_do_not_stop_the_rest(
    run: Run, server: NatsServer, jet: js_sync.JetStream, stream: str
) -> None:
    """A client that may publish dead letters wrote the subject of an API call into one."""
    jet.create_stream(StreamConfig(name=f"{stream}-VICTIM"))
    run("dlq", "run", stream, "--once")
    forged = {
        "Dead-Stream": stream,
        "Dead-Consumer": "w",
        "Dead-Sequence": "1",
        "Dead-Subject": f"$JS.API.STREAM.DELETE.{stream}-VICTIM",
        "Dead-Cause": "terminated",
        "Dead-Reason": "r",
        "Dead-Deliveries": "1",
        "Dead-Failed-At": "2026-01-02T03:04:05Z",
    }
    jet.publish(f"dead.{stream}.w.x.1", b"", headers=forged)
    jet.publish(f"dead.{stream}.w.x.2", b"no letter")
    fail(server, stream, b"one")
    collected(run, stream, 2)
    replayed = run("dlq", "replay", stream, "--all", "--yes")
    assert (replayed.exit_code, replayed.stdout) == (1, "1 message published again\n")
    said = " ".join(replayed.stderr.split())
    assert "dead letter 1 is not replayed: neither stream" in said
    assert "give the subject as subject= (--subject of the command)" in said
    assert "1 dead letter refused, and kept" in said
    assert jet.get_stream(f"{stream}-VICTIM").name == f"{stream}-VICTIM"
    assert [one["letter"] for one in json_lines(run("dlq", "ls", stream, "--json"))] == [1]

    numbered = run("dlq", "replay", stream, "1", "2", "--yes", "--json")
    assert numbered.exit_code == 1
    (line,) = json_lines(numbered)
    assert line == {"stream_name": stream, "replayed": 0, "missing": 0, "refused": 2}
    wrong = run("dlq", "replay", stream, "1", "--yes", "--subject", "a b")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    named = run("dlq", "replay", stream, "1", "--yes", "--subject", f"{stream}.x")
    assert named.stdout == "1 message published again\n"
    assert "not a dead letter" in run("dlq", "show", stream, "2").stderr
    assert run("dlq", "discard", stream, "2", "--yes").stdout == "1 dead letter removed\n"
    assert jet.get_stream(f"{stream}-dead").info().state.messages == 0


def test_ctrl_c_in_the_middle_reports_the_progress(
    run: Run, server: NatsServer, stream: str
) -> None:
    run("dlq", "run", stream, "--once")
    fail(server, stream, b"one", b"two")
    collected(run, stream, 2)
    with hooked("command: before step", lambda _: signal.raise_signal(signal.SIGINT)):
        failed = run("dlq", "discard", stream, "--all", "--yes")
    assert failed.exit_code == 1
    assert failed.stderr == "error: interrupted\n1 of 2 dead letters removed\n"
    assert len(json_lines(run("dlq", "ls", stream, "--json"))) == 1


@pytest.mark.since("2.14")
def test_a_consumer_can_start_again_at_its_first_letter(
    run: Run, server: NatsServer, stream: str
) -> None:
    run("dlq", "run", stream, "--once")
    fail(server, stream, b"one", b"two")
    collected(run, stream, 2)
    result = run("dlq", "replay", stream, "--by-reset", "w", "--yes")
    assert result.stdout == f"w restarts at sequence 1 of {stream}\n"
    assert json_lines(run("dlq", "ls", stream, "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("replay", "S"), 2, "by number"),
        (("replay", "S", "1", "--all"), 2, "by number"),
        (("replay", "S", "1", "--by-reset", "w"), 2, "by number"),
        (("discard", "S"), 2, "by number"),
        (("discard", "S", "1", "--all"), 2, "by number"),
        (("run", "NO-SUCH"), 3, "stream not found"),
        (("ls", "NO-SUCH"), 3, "no stream NO-SUCH-dead"),
        (("show", "NO-SUCH", "1"), 3, "no stream NO-SUCH-dead"),
    ],
)
def test_wrong_usage_names_the_mistake(
    run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = run("dlq", *arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
