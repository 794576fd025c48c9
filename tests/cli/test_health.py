"""``twinstream health``."""

from __future__ import annotations

import js_sync
from js_models import ConsumerConfig
from js_testing import NatsServer
from tests.cli.output import Run, json_lines


def test_a_finding_is_shown_and_sets_the_exit_code(
    run: Run, server: NatsServer, stream: str
) -> None:
    well = run("health", stream, "--interval", "0.05")
    assert (well.exit_code, well.stdout.splitlines()[-1]) == (0, "all well")
    with js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        jet.publish(f"{stream}.a", b"x")
        jet.create_consumer(stream, ConsumerConfig(durable_name="w"))
    ill = run("health", stream, "--interval", "0.05")
    assert ill.exit_code == 1
    assert "1 messages wait and nobody asks for them" in " ".join(ill.stdout.split())
    machine = run("health", stream, "--interval", "0.05", "--json")
    assert machine.exit_code == 1
    (document,) = json_lines(machine)
    assert (document["well"], document["streams"], document["consumers"]) == (False, 1, 1)
    assert [each["kind"] for each in document["findings"]] == ["no_pulls"]


def test_a_stream_that_is_not_there_is_a_failure(run: Run) -> None:
    result = run("health", "NO-SUCH")
    assert result.exit_code == 1
    assert "stream not found" in result.stderr
