"""`twinstream health`."""

from __future__ import annotations

import json
import signal

import pytest
from click.testing import CliRunner, Result

import js_sync
from tests.cli.output import Run, in_time, json_lines
from tests.hooked import hooked
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.models import ConsumerConfig
from twinstream.testing import NatsServer


def test_a_finding_is_shown_and_sets_the_exit_code(
    run: Run, server: NatsServer, stream: str
) -> None:
    well = run("health", stream, "--interval", "0.05")
    assert (well.exit_code, well.stdout) == (0, "")
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        jet.publish(f"{stream}.a", b"x")
        jet.create_consumer(stream, ConsumerConfig(durable_name="w"))
    ill = run("health", stream, "--interval", "0.05")
    assert ill.exit_code == 1
    (row,) = ill.stdout.splitlines()
    assert row.split("\t")[1:3] == [stream, "w"]
    assert "1 message waits, and no client pulls" in row
    machine = run("health", stream, "--interval", "0.05", "--json")
    assert machine.exit_code == 1
    (document,) = json_lines(machine)
    assert (document["well"], document["streams"], document["consumers"]) == (False, 1, 1)
    assert [each["kind"] for each in document["findings"]] == ["no_pulls"]


def test_a_stream_that_is_not_there_is_a_failure(run: Run) -> None:
    result = run("health", "NO-SUCH")
    assert result.exit_code == 3
    assert "stream not found" in result.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_watch_continues_after_failed_requests(more: tuple[str, ...]) -> None:
    seen: list[str] = []
    with NatsServer(start_timeout=300) as server:

        def attempt() -> Result:
            seen.clear()
            return CliRunner().invoke(twinstream, [*arguments, "--server", server.url, *more])

        def shown(_: object) -> None:
            seen.append("well")
            if len(seen) == 1:
                server.kill()
            else:
                signal.raise_signal(signal.SIGINT)

        def failed(_: object) -> None:
            seen.append("error")
            server.start()

        arguments = ["health", "--watch", "--interval", "0.05", "--timeout", "0.5"]
        with hooked("command: health shown", shown), hooked("command: health failed", failed):
            result = in_time(attempt, lambda _: seen)
    assert result.exit_code == 0, result.output
    assert (seen[0], seen[-1]) == ("well", "well")
    assert set(seen[1:-1]) == {"error"}


def test_watch_ends_with_1_if_its_first_or_last_request_fails(run: Run) -> None:
    assert "stream not found" in run("health", "NO-SUCH", "--watch").stderr
    with NatsServer(start_timeout=300) as server:
        arguments = ["health", "--watch", "--interval", "0.05", "--timeout", "0.5", "--json"]
        with (
            hooked("command: health shown", lambda _: server.kill()),
            hooked("command: health failed", lambda _: signal.raise_signal(signal.SIGINT)),
        ):
            result = in_time(
                lambda: CliRunner().invoke(twinstream, [*arguments, "--server", server.url]),
                lambda result: result.stdout,
            )
    assert result.exit_code == 1
    assert json.loads(result.stderr.splitlines()[0])["error"]
