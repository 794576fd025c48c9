"""`twinstream events`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import js_sync
from tests._sync.flow import eventually
from tests.cli.output import Run, json_lines
from tests.cli.terminal import PATIENT
from tests.hooked import hooked
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.cli.server.event_view import describe
from twinstream.models import ConsumerConfig, MaxDeliver, StreamAction, decode
from twinstream.testing import NatsServer, Proxy

GOLDEN = Path(__file__).parents[2] / "models" / "golden"


@pytest.fixture
def meanwhile(server: NatsServer) -> Callable[..., None]:
    """Repeat an action while a command listens, until the test ends."""

    def act(stream: str, stop: threading.Event) -> None:
        with js_sync.connect(server.url, **UNHURRIED) as nc:
            found = nc.jetstream().get_stream(stream)
            nc.jetstream().publish(f"{stream}.a", b"x")
            worker = found.create_consumer(ConsumerConfig(durable_name="w"))
            while not stop.is_set():
                message = worker.next(timeout=0.2)
                if message is not None:
                    message.nak()

    return act


def test_events_are_shown_as_lines_json_or_a_table(
    run: Run, stream: str, meanwhile: Callable[..., None]
) -> None:
    stop = threading.Event()
    actor = threading.Thread(target=meanwhile, args=(stream, stop))
    actor.start()
    try:
        arguments = ("events", "--stream", stream, "--kind", "nak", "-n", "2")
        lines = run(*arguments)
        machine = run(*arguments, "--json")
        table = run(*arguments, "--table")
    finally:
        stop.set()
        actor.join()
    assert lines.exit_code == machine.exit_code == table.exit_code == 0, lines.output
    assert lines.stdout.count(f"w refused message 1 of {stream} at delivery") == 2
    assert lines.stderr == ""
    for line in json_lines(machine):
        assert (line["type"], line["stream"]) == ("io.nats.jetstream.advisory.v1.nak", stream)
        assert line["subject"] == f"$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.{stream}.w"
    assert "nak" in table.stdout
    assert "2" in table.stdout


def test_iteration_ends_without_new_messages(run: Run) -> None:
    result = run("events", "--stream", "NOBODY", "--wait", "0.1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("named", "said"),
    [("S-{}", "terminated message 7 of S-{}: ?"), ("OTHER", "(its content belongs on '$JS.EVENT")],
)
def test_forged_event_is_shown(run: Run, stream: str, named: str, said: str) -> None:
    """A client may publish any content as an event, here a lone surrogate and another stream."""
    about = f"S-{stream}"
    members = {
        "type": "io.nats.jetstream.advisory.v1.terminated",
        "id": "I",
        "timestamp": "2026-01-02T03:04:05Z",
        "stream": named.format(stream),
        "consumer": "w",
        "consumer_seq": 7,
        "stream_seq": 7,
        "deliveries": 1,
        "reason": "\ud800",
    }
    subject = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{about}.w"
    sent: list[bool] = []

    def forge(connection: js_sync.Connection) -> None:
        if not sent:
            connection.publish(subject, json.dumps(members).encode())
        sent.append(True)

    with hooked("command: before event", forge):
        result = run("events", "--stream", about, "-n", "1")
    assert result.exit_code == 0, result.output
    assert said.format(stream) in result.stdout


def test_a_server_that_died_is_no_silence() -> None:
    with NatsServer(start_timeout=300) as server:
        arguments = [*PATIENT, "events", "--wait", "0.1", "--server", server.url]
        with hooked("command: before event", lambda _: server.kill()):
            result = CliRunner().invoke(twinstream, arguments)
    assert result.exit_code == 1
    assert "error: the connection to the server is lost" in result.stderr


def test_restored_connection_is_reported() -> None:
    with NatsServer(start_timeout=300) as server, Proxy(server.url) as proxy:

        def cut(connection: js_sync.Connection) -> None:
            before = connection.stats.connects
            proxy.cut()
            eventually(lambda: connection.stats.connects > before, patience=LONGEST)

        arguments = [*PATIENT, "events", "--wait", "0.1", "--server", proxy.url]
        with hooked("command: before event", cut):
            result = CliRunner().invoke(twinstream, arguments)
    assert result.exit_code == 0, result.output
    assert "the connection was lost meanwhile: events may be missing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--kind", "max_delivery"), 2, "did you mean 'max_deliver'"),
        (("--stream", "a.b"), 2, "stream name"),
        (("--table", "--json"), 2, "not both"),
    ],
)
def test_wrong_usage_names_the_mistake(
    run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = run("events", *arguments)
    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("2.15.1/*/event-*.json")), ids=lambda path: path.stem
)
def test_every_recorded_event_has_a_sentence(path: Path) -> None:
    record = decode(path.read_bytes())
    sentence = describe(record)
    assert sentence
    assert not sentence.startswith("{")
    assert "None" not in sentence


def test_advisories_are_described_from_their_typed_members() -> None:
    common = {"id": "x", "timestamp": "2026-01-01T00:00:00.123456789Z", "stream": "S"}
    event = decode(
        {
            **common,
            "type": "io.nats.jetstream.advisory.v1.max_deliver",
            "consumer": "c",
            "stream_seq": 5,
            "deliveries": 3,
        }
    )
    assert isinstance(event, MaxDeliver)
    assert describe(event) == (
        "message 5 of S was delivered 3 times to c without an acknowledgement"
    )
    made = decode(
        {**common, "type": "io.nats.jetstream.advisory.v1.stream_action", "action": "create"}
    )
    assert isinstance(made, StreamAction)
    assert describe(made) == "stream S was created"
