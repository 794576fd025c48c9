"""`twinstream why` for messages that a consumer has passed, staged on a real server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from attrs import evolve

import js_sync
from tests._sync.flow import eventually
from tests.cli.why.staging import Stage, kinds, sources
from tests.soak import LONGEST

pytestmark = pytest.mark.since("2.11")  # the start of a read by time

SHORT = timedelta(milliseconds=200)
Staged = Callable[..., Stage]


def test_acknowledged(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2")
    worker.fetch(2, timeout=60)[0].double_ack()
    answer = stage.ask(1)
    assert kinds(answer) == ("acknowledged", "likely")
    assert "consumer info: ack_floor.stream_seq" in sources(answer)


def test_acknowledged_by_a_metric(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer(sample_freq="100%")
    stage.publish("1", "2")
    # Above the floor, where the info alone leaves it open.
    worker.fetch(2, timeout=60)[1].double_ack()
    stage.wait_for("ACK")
    assert kinds(stage.ask(2)) == ("unknown", "unknown")
    answer = stage.ask_with_events(2)
    assert kinds(answer) == ("acknowledged", "reported")
    assert ": consumer_ack" in sources(answer)


def test_pending_if_all_are(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2", "3")
    worker.fetch(2, timeout=60)
    for seq in (1, 2):
        assert kinds(stage.ask(seq)) == ("pending", "certain")


def test_unknown_between_the_floors(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2", "3", "4")
    worker.fetch(4, timeout=60)[1].double_ack()
    first, *others = (stage.ask(seq) for seq in (1, 2, 3, 4))
    # The floor is right below the first pending message.
    assert kinds(first) == ("pending", "likely")
    for answer in others:
        assert kinds(answer) == ("unknown", "unknown")
        assert "between the ack floor 0 and the last delivery 4" in answer["verdict"]["text"]


def test_redelivered_by_ack_wait(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer(ack_wait=SHORT)
    stage.publish("1")
    worker.fetch(1, timeout=60)
    again = worker.fetch(1, timeout=30)[0]
    assert again.metadata.num_delivered == 2
    plain = stage.ask(1)
    assert kinds(plain) == ("redelivered", "unknown")
    assert "its advisories" in plain["verdict"]["text"]
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("redelivered_by_ack_wait", "likely")
    assert "ack_wait (0.2s)" in answer["verdict"]["text"]
    assert [each["kind"] for each in answer["also"]] == ["pending"]


def test_redelivered_by_nak(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1")
    worker.fetch(1, timeout=60)[0].nak()
    assert worker.fetch(1, timeout=30)[0].metadata.num_delivered == 2
    stage.wait_for("MSG_NAKED")
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("redelivered_by_nak", "reported")
    assert ": nak" in sources(answer)


def test_redelivered_before_it_was_acknowledged(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer(sample_freq="100%")
    stage.publish("1")
    worker.fetch(1, timeout=60)[0].nak()
    worker.fetch(1, timeout=30)[0].double_ack()
    stage.wait_for("ACK")
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("acknowledged", "reported")
    assert [each["kind"] for each in answer["also"]] == ["redelivered_by_nak"]


def test_nak_with_a_delay_that_has_not_passed(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2")
    worker.fetch(2, timeout=60)[0].nak(delay=600)
    stage.wait_for("MSG_NAKED")
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("nak_pending", "reported")
    assert kinds(stage.ask_with_events(2)) == ("pending", "certain")


def give_up(stage: Stage) -> js_sync.Consumer:
    """Let the consumer give up the first of two messages, and then wait longer for the other."""
    worker = stage.consumer(max_deliver=1, ack_wait=SHORT)
    stage.publish("1", "2")
    worker.fetch(1, timeout=60)
    stage.wait_for("MAX_DELIVERIES")
    eventually(lambda: not worker.info().num_ack_pending, patience=LONGEST)
    config = worker.cached_info.config
    assert config is not None
    return stage.stream.update_consumer(evolve(config, ack_wait=timedelta(minutes=1)))


def test_given_up_after_max_deliver(staged: Staged) -> None:
    stage = staged()
    worker = give_up(stage)
    assert kinds(stage.ask_with_events(1)) == ("given_up", "reported")
    worker.fetch(1, timeout=60)[0].double_ack()
    assert kinds(stage.ask_with_events(1)) == ("given_up", "reported")


@pytest.mark.since("2.14")  # the floor of older servers stays behind, also after acknowledgements
def test_given_up_by_the_number_of_pending_messages(staged: Staged) -> None:
    stage = staged()
    worker = give_up(stage)
    assert kinds(stage.ask(1)) == ("given_up", "likely")
    # A later acknowledgement raises the floor over it, and only the advisory is left.
    worker.fetch(1, timeout=60)[0].double_ack()
    answer = stage.ask(1)
    assert kinds(answer) == ("acknowledged", "likely")
    assert "given up after 1 deliveries" in answer["verdict"]["text"]


def test_a_message_that_was_given_up_counts_as_redelivered(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer(max_deliver=2)
    stage.publish("1")
    for _ in range(2):
        worker.fetch(1, timeout=30)[0].nak()
    assert not worker.fetch(1, timeout=0.1)  # the server gives up when it looks for a message
    stage.wait_for("MAX_DELIVERIES")
    stage.publish("2", "3")
    worker.fetch(1, timeout=30)[0].double_ack()
    assert worker.fetch(1, timeout=30)[0].num_delivered == 1
    state = worker.info()
    assert (state.num_ack_pending, state.num_redelivered) == (1, 1)  # of the first message
    answer = stage.ask(3)
    assert kinds(answer) == ("pending", "certain")
    assert "whether it was delivered again is unknown" in answer["verdict"]["text"]


def test_terminated(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2")
    worker.fetch(2, timeout=60)[0].term("no such \x1b[31mtea")
    stage.wait_for("MSG_TERMINATED")
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("terminated", "reported")
    assert "no such" in answer["verdict"]["text"]
    shown = stage.run("why", stage.stream.name, "c", "1", "--advisories", "EVENTS").stdout
    assert "\x1b" not in shown


def test_filtered(staged: Staged) -> None:
    stage = staged()
    stage.publish("eu", "us")
    stage.consumer(filter_subjects=[stage.subject("eu"), stage.subject("asia.>")])
    answer = stage.ask(2)
    assert kinds(answer) == ("filtered", "certain")
    assert "consumer info: config.filter_subjects" in sources(answer)
    assert kinds(stage.ask(1)) == ("no_pull", "certain")


def test_before_the_start_sequence(staged: Staged) -> None:
    stage = staged()
    stage.publish("1", "2", "3")
    stage.consumer(deliver_policy="by_start_sequence", opt_start_seq=3).fetch(1, timeout=60)
    assert kinds(stage.ask(2)) == ("before_start", "certain")
    assert kinds(stage.ask(3)) == ("pending", "certain")


def test_before_the_start_time(staged: Staged) -> None:
    stage = staged()
    stage.publish("1", "2")
    time = stage.stream.get_message(2).time
    stage.consumer(deliver_policy="by_start_time", opt_start_time=time)
    answer = stage.ask(1)
    assert kinds(answer) == ("before_start", "certain")
    assert "consumer info: config.opt_start_time" in sources(answer)


@pytest.mark.parametrize("is_used", [False, True])
def test_deliver_new_of_a_later_consumer(staged: Staged, is_used: bool) -> None:
    stage = staged()
    stage.publish("1")
    worker = stage.consumer(deliver_policy="new")
    stage.publish("2")
    if is_used:
        worker.fetch(1, timeout=60)[0].double_ack()
    # A consumer that delivered nothing is at its start; afterwards the times decide.
    assert kinds(stage.ask(1)) == ("before_start", "likely" if is_used else "certain")
    assert kinds(stage.ask(2)) == (
        ("acknowledged", "likely") if is_used else ("no_pull", "certain")
    )


@pytest.mark.parametrize("policy", ["last", "last_per_subject"])
def test_only_the_last_message_is_delivered(staged: Staged, policy: str) -> None:
    stage = staged()
    stage.publish("1", "1")
    worker = stage.consumer(deliver_policy=policy, filter_subject=stage.subject("*"))
    worker.fetch(1, timeout=60)[0].double_ack()
    assert kinds(stage.ask(1)) == ("before_start", "likely")
    assert kinds(stage.ask(2)) == ("acknowledged", "likely")


def test_no_acknowledgement_is_expected(staged: Staged) -> None:
    stage = staged()
    stage.publish("1")
    stage.consumer(ack_policy="none").fetch(1, timeout=60)
    assert kinds(stage.ask(1)) == ("delivered", "likely")


@pytest.mark.since("2.14")
def test_an_advisory_from_before_a_reset_is_skipped(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2")
    worker.fetch(2, timeout=60)[1].term("no")
    stage.wait_for("MSG_TERMINATED")
    worker.reset(seq=2)
    answer = stage.ask_with_events(2)
    assert kinds(answer) == ("no_pull", "certain")
    assert "skipped: it names a later delivery" in str(answer["evidence"])
