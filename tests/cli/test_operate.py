"""Looking after streams, consumers and the account from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

import js_sync
from js_cli.stream_subjects import SHOWN
from js_models import ConsumerConfig, PriorityPolicy, StreamConfig
from js_testing import NatsServer
from tests.cli.output import Run, json_lines


@pytest.fixture
def jet(server: NatsServer) -> Iterator[js_sync.JetStream]:
    with js_sync.connect(server.url) as nc:
        yield nc.jetstream()


def fill(jet: js_sync.JetStream, stream: str, count: int) -> None:
    for number in range(count):
        jet.publish(f"{stream}.{number}")


# ---- streams


def test_purge_asks_and_tells_how_many(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 5)
    refused = run("stream", "purge", stream, input="n\n")
    assert refused.exit_code == 1
    assert f"from {stream} (5 messages, 0 consumers)?" in refused.stderr
    assert jet.get_stream(stream).cached_info.state.messages == 5
    done = run("stream", "purge", stream, "--before", "3", input="y\n")
    assert done.stdout == f"removed 2 messages from {stream}\n"
    (line,) = json_lines(
        run("stream", "purge", stream, "--subject", f"{stream}.4", "--yes", "--json")
    )
    assert line == {"stream": stream, "purged": 1}
    assert run("stream", "purge", stream, "--keep", "1", "-y").exit_code == 0
    both = run("stream", "purge", stream, "--keep", "1", "--before", "2", "-y")
    assert both.exit_code == 2


def test_rm_deletes_only_when_told(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    assert run("stream", "rm", stream, input="").exit_code == 1
    assert jet.get_stream(stream).name == stream
    assert run("stream", "rm", stream, "--yes").stdout == f"deleted {stream}\n"
    with pytest.raises(js_sync.StreamNotFound):
        jet.get_stream(stream)
    gone = run("stream", "rm", stream, "--yes")
    assert gone.exit_code == 1
    assert "stream ls" in gone.stderr


def test_seal_is_for_ever(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 1)
    assert "for ever?" in run("stream", "seal", stream, input="n\n").stderr
    assert json_lines(run("stream", "seal", stream, "-y", "--json")) == [
        {"stream": stream, "sealed": True}
    ]
    failed = run("pub", f"{stream}.x", "y")
    assert failed.exit_code == 1
    assert "sealed" in failed.stderr


def test_subjects_with_most_messages_come_first(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    fill(jet, stream, SHOWN + 5)
    fill(jet, stream, 1)
    shown = run("stream", "subjects", stream)
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith(stream)]
    assert rows[0] == [f"{stream}.0", "2"]
    assert len(rows) == SHOWN
    assert "and 5 more" in shown.stderr
    whole = run("stream", "subjects", stream, "--all")
    assert len([line for line in whole.stdout.splitlines() if line.startswith(stream)]) == 25
    assert json_lines(run("stream", "subjects", stream, f"{stream}.3", "--json")) == [
        {"subject": f"{stream}.3", "messages": 1}
    ]
    assert "no subjects" in run("stream", "subjects", stream, "other").stdout


def test_a_single_server_says_that_it_has_no_cluster(run: Run, stream: str) -> None:
    for command in (
        ("stream", "step-down", stream),
        ("stream", "peer-remove", stream, "n1", "--yes"),
    ):
        failed = run(*command)
        assert failed.exit_code == 1
        assert "clustering" in failed.stderr


# ---- consumers


@pytest.fixture
def worker(jet: js_sync.JetStream, stream: str) -> js_sync.Consumer:
    fill(jet, stream, 5)
    return jet.create_consumer(stream, ConsumerConfig(durable_name="worker"))


def test_consumers_are_listed_and_shown(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    # Confirmed: the command asks over a connection of its own.
    worker.fetch(2)[0].double_ack()
    listed = run("consumer", "ls", stream)
    assert ["worker", "-", "3", "1", "0", "0"] in [
        line.split() for line in listed.stdout.splitlines()
    ]
    (line,) = json_lines(run("consumer", "ls", stream, "--json"))
    assert line["name"] == "worker"
    shown = run("consumer", "info", stream, "worker")
    rows = [line.split() for line in shown.stdout.splitlines() if line.strip()]
    assert ["ack_policy", "explicit"] in rows
    assert ["in", "hand", "1"] in rows
    assert (
        json.loads(run("consumer", "info", stream, "worker", "--json").stdout)["num_pending"] == 3
    )
    missing = run("consumer", "info", stream, "other")
    assert missing.exit_code == 1
    assert "consumer ls" in missing.stderr


@pytest.mark.since("2.11")
def test_a_pause_and_its_end(run: Run, stream: str, worker: js_sync.Consumer) -> None:
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
        assert "30m" in failed.stderr


@pytest.mark.since("2.14")
def test_reset_asks_first(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    worker.fetch(3)
    asked = run("consumer", "reset", stream, "worker", input="n\n")
    assert f"{stream}/worker (3 messages in hand)" in asked.stderr
    (line,) = json_lines(
        run("consumer", "reset", stream, "worker", "--seq", "2", "--yes", "--json")
    )
    assert line == {"stream": stream, "consumer": "worker", "num_pending": 4}


def test_rm_of_a_consumer(run: Run, stream: str, worker: js_sync.Consumer) -> None:
    assert run("consumer", "rm", stream, "worker", input="n\n").exit_code == 1
    assert run("consumer", "rm", stream, "worker", "-y").exit_code == 0
    with pytest.raises(js_sync.ConsumerNotFound):
        worker.info()
    assert "no consumers" in run("consumer", "ls", stream).stdout


@pytest.mark.since("2.11")
def test_unpin_lets_another_be_pinned(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 2)
    config = ConsumerConfig(
        durable_name="w", priority_groups=["g"], priority_policy=PriorityPolicy.PINNED_CLIENT
    )
    consumer = jet.create_consumer(stream, config)
    consumer.fetch(1, priority=js_sync.Priority(group="g"))
    assert "pinned of g" in run("consumer", "info", stream, "w").stdout
    assert run("consumer", "unpin", stream, "w", "g").exit_code == 0
    assert run("consumer", "unpin", stream, "w", "other").exit_code == 1
    assert run("consumer", "step-down", stream, "w").exit_code == 1


# ---- the account


TIERS = """
accounts { A: {
    users: [{user: a, password: pw}]
    jetstream { max_mem: 1M, max_file: 1M, max_streams: 2, max_consumers: -1 }
} }
no_auth_user: a
"""


def test_the_account_shows_use_beside_limits(
    run: Run, server_factory: Callable[..., NatsServer]
) -> None:
    with server_factory(TIERS) as server:
        with js_sync.connect(server.url) as nc:
            jet = nc.jetstream()
            for name in ("ONE", "TWO"):
                jet.create_stream(StreamConfig(name=name))
            jet.publish("ONE", bytes(512 * 1024))
        shown = run("account", "info", "--server", server.url)
        assert shown.exit_code == 0, shown.stderr
        rows = {line.split("  ")[0]: line.split() for line in shown.stdout.splitlines() if line}
        assert rows["storage"][-1] == "52%"
        assert rows["streams"][1:3] == ["2", "2"]
        assert rows["streams"][-1] == "100%"
        assert rows["consumers"][1:] == ["0", "none"]
        document = json.loads(run("account", "info", "--server", server.url, "--json").stdout)
        assert document["streams"] == 2
        assert document["limits"]["max_streams"] == 2


# ---- permissions


def test_permissions_are_printed_in_three_forms(run: Run) -> None:
    whole = ["consume", "ORDERS", "worker", "+", "publish", "invoices.>"]
    conf = run("permissions", *whole)
    assert conf.exit_code == 0, conf.stderr
    assert conf.stdout.startswith("permissions {\n  publish { allow: [\n")
    assert '    "$JS.API.CONSUMER.MSG.NEXT.ORDERS.worker"\n' in conf.stdout
    found = json.loads(run("permissions", *whole, "--format", "json").stdout)
    assert found["publish"]["allow"][-1] == "invoices.>"
    assert found["subscribe"] == {"allow": ["_INBOX.>"]}
    claims = run("permissions", "purge", "S", "--format", "jwt", "--domain", "hub")
    assert json.loads(claims.stdout) == {
        "pub": {"allow": ["$JS.hub.API.STREAM.PURGE.S"]},
        "sub": {"allow": ["_INBOX.>"]},
    }


def test_permissions_name_what_is_wrong(run: Run) -> None:
    for arguments, said in (
        (("fly",), "fly"),
        (("purge",), "purge STREAM"),
        (("+",), "at least one"),
        (("purge", "S", "--domain", "a", "--prefix", "b"), "not both"),
    ):
        failed = run("permissions", *arguments)
        assert failed.exit_code == 2
        assert said in failed.stderr
    assert "consume STREAM CONSUMER" in run("permissions", "--help").stdout
