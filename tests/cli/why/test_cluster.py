"""`twinstream why` after a change of a consumer's leader, in a real cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync
from tests._sync.flow import eventually
from tests.cli.output import Run
from tests.cli.why.staging import EVENTS, Stage, kinds, sources
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsCluster

pytestmark = pytest.mark.since("2.11")


def test_redelivered_after_a_leader_change(
    run: Run, cluster: NatsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSTREAM_URL", cluster.servers[0].url)
    with js_sync.connect(cluster.servers[0].url, **UNHURRIED) as nc:
        stage = Stage.of(run, nc.jetstream(timeout=30), num_replicas=3)
        worker = stage.consumer(ack_wait=timedelta(seconds=2))
        stage.wait_for("LEADER_ELECTED")
        stage.publish("1")
        assert worker.fetch(1, timeout=30)
        first = leader_of(worker)
        worker.step_down()
        eventually(lambda: leader_of(worker) not in (None, first), patience=LONGEST)
        # A leader that changes ends a fetch.
        (again,) = eventually(lambda: worker.fetch(1, timeout=5), patience=LONGEST)
        assert again.num_delivered == 2
        eventually(lambda: elections(stage) >= 2, patience=LONGEST)
        answer = stage.ask_with_events(1)
    assert kinds(answer) == ("redelivered_after_leader_change", "likely")
    assert ": consumer_leader_elected" in sources(answer)


def leader_of(worker: js_sync.Consumer) -> str | None:
    """Return the leader of a consumer, None while it has none."""
    try:
        cluster = worker.info().cluster
    except js_sync.TwinstreamError:  # no server answers during the election
        return None
    return cluster.leader if cluster is not None else None


def elections(stage: Stage) -> int:
    """Return the number of stored elections of a leader of the consumer."""
    subject = f"$JS.EVENT.*.CONSUMER.LEADER_ELECTED.{stage.stream.name}.c"
    with stage.jet.bind_stream(EVENTS).read(subjects=subject) as reading:
        return len(list(reading))
