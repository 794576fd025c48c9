"""`twinstream consumer`."""

from __future__ import annotations

import json

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.streams import fill
from twinstream.models import ConsumerConfig, PriorityPolicy


@pytest.fixture
def worker(jet: js_sync.JetStream, stream: str) -> js_sync.Consumer:
    fill(jet, stream, 5)
    return jet.create_consumer(stream, ConsumerConfig(durable_name="worker"))


def test_consumers_are_listed_and_shown(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    # Confirmed: the command asks over a connection of its own.
    worker.fetch(2, timeout=60)[0].double_ack()
    listed = run("consumer", "ls", stream)
    assert ["worker", "-", "3", "1", "0", "0"] in [
        line.split() for line in listed.stdout.splitlines()
    ]
    (line,) = json_lines(run("consumer", "ls", stream, "--json"))
    assert line["name"] == "worker"
    shown = run("consumer", "info", stream, "worker")
    rows = [line.split() for line in shown.stdout.splitlines() if line.strip()]
    assert ["ack_policy", "explicit"] in rows
    assert ["ack", "pending", "1"] in rows
    # The first delivery is acknowledged, the second is not.
    assert ["delivered", "up", "to,", "of", "the", "consumer", "2"] in rows
    assert ["acknowledged", "up", "to,", "in", "the", "stream", "1"] in rows
    assert (
        json.loads(run("consumer", "info", stream, "worker", "--json").stdout)["num_pending"] == 3
    )
    missing = run("consumer", "info", stream, "other")
    assert missing.exit_code == 3
    assert "consumer ls" in missing.stderr


@pytest.mark.since("2.11")
def test_pause_and_resume_a_consumer(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    paused = run("consumer", "pause", stream, "worker", "1h30m")
    assert paused.stdout.startswith(f"{stream}/worker is paused until 2")
    assert "(paused)" in run("consumer", "ls", stream).stdout
    assert "paused" in run("consumer", "info", stream, "worker").stdout
    assert worker.info().paused
    assert run("consumer", "resume", stream, "worker").exit_code == 0
    assert not worker.info().paused
    for wrong in ("soon", "0s", "-5m"):
        failed = run("consumer", "pause", stream, "worker", "--", wrong)
        assert failed.exit_code == 2
        assert "1h30m" in failed.stderr


@pytest.mark.since("2.14")
def test_reset_asks_first(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    worker.fetch(3, timeout=60)
    asked = run("consumer", "reset", stream, "worker", input="n\n")
    assert f"{stream}/worker (3 messages pending acknowledgement)" in asked.stderr
    (line,) = json_lines(
        run("consumer", "reset", stream, "worker", "--seq", "2", "--yes", "--json")
    )
    assert line == {"stream_name": stream, "consumer_name": "worker", "num_pending": 4}


def test_rm_of_a_consumer_asks_first(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    assert run("consumer", "rm", stream, "worker", input="n\n").exit_code == 1
    assert run("consumer", "rm", stream, "worker", "-y").exit_code == 0
    with pytest.raises(js_sync.ConsumerNotFound):
        worker.info()
    assert run("consumer", "ls", stream).stdout == ""


@pytest.mark.since("2.11")
def test_unpin_allows_another_pin(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 2)
    config = ConsumerConfig(
        durable_name="w", priority_groups=["g"], priority_policy=PriorityPolicy.PINNED_CLIENT
    )
    consumer = jet.create_consumer(stream, config)
    consumer.fetch(1, timeout=60, priority=js_sync.Priority(group="g"))
    assert "pinned of g" in run("consumer", "info", stream, "w").stdout
    assert run("consumer", "unpin", stream, "w", "g").exit_code == 0
    assert run("consumer", "unpin", stream, "w", "other").exit_code == 1
    assert run("consumer", "step-down", stream, "w").exit_code == 1


def test_report_begins_with_the_consumer_that_is_farthest_behind(
    run: Run, stream: str, worker: js_sync.Consumer, jet: js_sync.JetStream
) -> None:
    jet.create_consumer(stream, ConsumerConfig(durable_name="new", deliver_policy="new"))
    worker.fetch(2, timeout=60)[0].double_ack()
    rows = [line.split("\t") for line in run("consumer", "report", stream).stdout.splitlines()]
    assert rows[0] == ["worker", "pull", "explicit", "1", "0", "3", "60%", "1"]
    assert [row[0] for row in rows] == ["worker", "new"]
    names = [line["name"] for line in json_lines(run("consumer", "report", stream, "--json"))]
    assert names == ["worker", "new"]
    assert run("consumer", "report", "NO-SUCH").exit_code == 3


def test_sub_is_consume(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    (line,) = json_lines(run("consumer", "sub", stream, "worker", "--count", "1", "--json"))
    assert line["seq"] == 1
