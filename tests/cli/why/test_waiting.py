"""`twinstream why` for messages that are not delivered yet, staged on a real server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

import js_sync
from tests._sync.flow import eventually
from tests.cli.output import Run
from tests.cli.terminal import on_terminal
from tests.cli.why.staging import EVENTS, Stage, kinds, sources
from tests.soak import LONGEST
from twinstream.testing import NatsServer

Staged = Callable[..., Stage]


def test_not_stored_yet(staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer()
    answer = stage.ask(2)
    assert kinds(answer) == ("not_stored_yet", "certain")
    assert "stream info: state.last_seq" in sources(answer)


def test_no_client_pulls(staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer(inactive_threshold=timedelta(hours=1))
    answer = stage.ask(1)
    assert kinds(answer) == ("no_pull", "certain")
    assert "consumer info: num_waiting" in sources(answer)
    assert "consumer info: config.inactive_threshold" in sources(answer)


def test_no_client_listens(staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer(deliver_subject=f"{stage.stream.name}-push")
    assert kinds(stage.ask(1)) == ("no_subscriber", "certain")


@pytest.mark.since("2.11")
def test_paused(staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer().pause(timedelta(hours=1))
    answer = stage.ask(1)
    assert kinds(answer) == ("paused", "certain")
    # Both keep the message back.
    assert [each["kind"] for each in answer["also"]] == ["no_pull"]


def test_at_max_ack_pending(staged: Staged) -> None:
    stage = staged()
    stage.publish("1", "2", "3")
    worker = stage.consumer(max_ack_pending=2)
    worker.fetch(2, timeout=60)
    with worker.messages() as waiting:
        assert waiting.next(timeout=0.1) is None
        eventually(lambda: worker.info().num_waiting, patience=LONGEST)
        answer = stage.ask(3)
    assert kinds(answer) == ("max_ack_pending", "certain")
    assert answer["also"] == []


@pytest.mark.since("2.11")
def test_pinned_to_another_client(staged: Staged, jet: js_sync.JetStream) -> None:
    stage = staged()
    worker = stage.consumer(
        priority_policy="pinned_client",
        priority_groups=["g"],
        priority_timeout=timedelta(hours=1),
    )
    stage.publish("1")
    priority = js_sync.Priority(group="g")
    assert worker.fetch(1, timeout=60, priority=priority)
    other = jet.bind_consumer(stage.stream.name, "c")
    with other.messages(priority=priority) as waiting:
        stage.publish("2")
        assert waiting.next(timeout=0.1) is None
        eventually(lambda: worker.info().num_waiting, patience=LONGEST)
        answer = stage.ask(2)
    assert kinds(answer) == ("pinned", "certain")
    groups = worker.info().priority_groups
    assert groups is not None
    assert str(groups[0].pinned_client_id) in answer["verdict"]["text"]


def test_what_does_not_exist(run: Run, staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer()
    name = stage.stream.name
    for arguments in (
        ("NO-SUCH", "c", "1"),
        (name, "no-such", "1"),
        (name, "c", "1", "--advisories", "NO-SUCH"),
    ):
        missing = run("why", *arguments)
        assert (missing.exit_code, missing.stdout) == (3, "")
        assert "no-such" in missing.stderr.lower()
    for wrong in (("0",), ("x",), ("1", "--subject", f"{name}.2")):
        assert run("why", name, "c", *wrong).exit_code == 2


def test_a_removed_consumer(run: Run, staged: Staged) -> None:
    stage = staged()
    stage.consumer().delete()
    stage.wait_for("DELETED")
    arguments = ("why", stage.stream.name, "c", "1")
    plain, reported = run(*arguments), run(*arguments, "--advisories", EVENTS)
    assert (plain.exit_code, reported.exit_code) == (3, 3)
    assert "was removed at" not in plain.stderr
    assert f"of {EVENTS} reports that it was removed at" in reported.stderr


def test_the_output_in_a_pipe(run: Run, staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer()
    verdict, *rows = run("why", stage.stream.name, "c", "1").stdout.splitlines()
    assert verdict.startswith(f"{stage.stream.name}/c 1: not delivered yet: no pull request waits")
    assert verdict.endswith("(certain)")
    assert all(len(row.split("\t")) == 3 for row in rows)
    assert [
        "certain",
        "no pull request waits: no client asks for messages",
        "consumer info: num_waiting",
    ] in [row.split("\t") for row in rows]


def test_the_output_on_a_terminal(server: NatsServer, staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer()
    arguments = ["why", stage.stream.name, "c", "1"]
    shown = on_terminal(arguments, 80, TWINSTREAM_URL=server.url, NO_COLOR="1")
    assert shown.code == 0
    verdict, _, title, *rows = shown.out.splitlines()
    assert verdict.endswith("(certain)")
    assert "evidence" in title
    # Each claim is whole, continued on indented lines.
    assert all(len(row) <= 80 for row in rows)
    assert "[consumer info: num_waiting]" in " ".join(" ".join(rows).split())
