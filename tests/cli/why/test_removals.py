"""`twinstream why` for messages that a stream has removed, staged on a real server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests._sync.flow import eventually
from tests.cli.why.staging import Stage, kinds, sources
from tests.soak import LONGEST

pytestmark = pytest.mark.since("2.11")  # the TTL of a message, the start of a read by time

Staged = Callable[..., Stage]


def test_expired_by_max_age(staged: Staged) -> None:
    stage = staged(max_age=timedelta(seconds=1))
    stage.consumer()
    stage.publish("1")
    stage.wait_until_removed(1)
    answer = stage.ask(1)
    assert kinds(answer) == ("expired", "likely")
    assert "stream info: config.max_age = 1s, state.last_ts" in sources(answer)
    assert "this consumer had not delivered it" in answer["verdict"]["text"]


def test_max_age_did_not_remove_a_message_after_an_older_one(staged: Staged) -> None:
    stage = staged(max_age=timedelta(hours=1))
    stage.consumer()
    stage.publish("1", "2", "3")
    stage.stream.delete_message(2)
    answer = stage.ask(2)
    assert kinds(answer) == ("removed_by_client", "likely")
    assert "not by max_age: an older message is stored" in str(answer["evidence"])


def test_expired_by_its_ttl(staged: Staged) -> None:
    stage = staged(allow_msg_ttl=True)
    stage.consumer()
    stage.publish("1")
    stage.publish("2", ttl=1)
    stage.publish("3")
    stage.wait_until_removed(2)
    answer = stage.ask(2)
    # A client may have deleted it just as well, unless the advisories of the API are stored.
    assert kinds(answer) == ("ttl_expired", "possible")
    assert "or purged or deleted by a client" in answer["verdict"]["text"]
    answer = stage.ask_with_events(2)
    assert kinds(answer) == ("ttl_expired", "possible")
    assert "client" not in answer["verdict"]["text"]


def test_a_marker_shows_what_removed_the_message(staged: Staged) -> None:
    marked = timedelta(seconds=60)
    stage = staged(
        allow_msg_ttl=True, subject_delete_marker_ttl=marked, max_age=timedelta(seconds=1)
    )
    stage.consumer()
    stage.publish("1")
    eventually(lambda: stage.stream.info().state.first_seq == 2, patience=LONGEST)
    answer = stage.ask(1, "--subject", stage.subject("1"))
    assert kinds(answer) == ("expired", "likely")
    assert "message 2: header Nats-Marker-Reason = MaxAge (ADR-43)" in sources(answer)


def test_the_whole_stream_is_purged(staged: Staged) -> None:
    stage = staged()
    stage.consumer()
    stage.publish("1", "2")
    stage.stream.purge()
    assert kinds(stage.ask(1)) == ("purged", "likely")
    stage.wait_for_call("STREAM.PURGE")
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("purged", "reported")
    assert "a client purged the stream" in str(answer["evidence"])


def test_purged_by_subject(staged: Staged) -> None:
    stage = staged()
    stage.consumer()
    stage.publish("eu", "us", "eu")
    stage.stream.purge(subject=stage.subject("eu"))
    stage.wait_for_call("STREAM.PURGE")
    assert kinds(stage.ask(1)) == ("removed_by_client", "likely")
    # The subject of a removed message is not known, unless the user knows it.
    assert kinds(stage.ask_with_events(1)) == ("purged", "possible")
    known = ("--subject", stage.subject("eu"))
    assert kinds(stage.ask_with_events(1, *known)) == ("purged", "reported")


def test_purged_but_for_the_last_ones(staged: Staged) -> None:
    stage = staged()
    stage.consumer()
    stage.publish("1", "2", "3")
    stage.stream.purge(keep=1)
    stage.wait_for_call("STREAM.PURGE")
    assert kinds(stage.ask(2)) == ("removed_by_client", "likely")
    answer = stage.ask_with_events(2)
    assert kinds(answer) == ("purged", "reported")
    assert "the stream but the last 1" in str(answer["evidence"])


def test_purged_below_a_sequence(staged: Staged) -> None:
    stage = staged(deny_delete=True)
    stage.consumer()
    stage.publish("1", "2", "3")
    stage.stream.purge(before_seq=3)
    # The stream allows no other removal by clients.
    assert kinds(stage.ask(2)) == ("purged", "likely")
    stage.wait_for_call("STREAM.PURGE")
    assert kinds(stage.ask_with_events(2)) == ("purged", "reported")


def test_deleted_by_a_client(staged: Staged) -> None:
    stage = staged()
    stage.consumer()
    stage.publish("1", "2", "3")
    stage.stream.delete_message(2)
    assert kinds(stage.ask(2)) == ("removed_by_client", "likely")
    stage.wait_for_call("STREAM.MSG.DELETE")
    answer = stage.ask_with_events(2)
    assert kinds(answer) == ("deleted", "reported")
    assert ": api_audit" in sources(answer)


def test_removed_while_it_was_pending(staged: Staged) -> None:
    stage = staged()
    worker = stage.consumer()
    stage.publish("1", "2")
    worker.fetch(1, timeout=60)
    stage.stream.delete_message(1)
    stage.wait_for("MSG_TERMINATED")
    stage.wait_for_call("STREAM.MSG.DELETE")
    answer = stage.ask_with_events(1)
    # The server terminates such a message itself: no client did.
    assert kinds(answer) == ("deleted", "reported")
    assert "removed while it waited" in str(answer["evidence"])


def test_overwritten(staged: Staged) -> None:
    stage = staged(max_msgs_per_subject=1)
    stage.consumer()
    stage.publish("eu", "us", "eu")
    answer = stage.ask(1)
    assert kinds(answer) == ("overwritten", "possible")
    assert "give --subject" in str(answer["evidence"])
    known = stage.ask(1, "--subject", stage.subject("eu"))
    assert kinds(known) == ("overwritten", "likely")
    assert "1 later messages" in str(known["evidence"])


def test_removed_by_max_msgs(staged: Staged) -> None:
    stage = staged(max_msgs=2)
    stage.consumer()
    stage.publish("1", "2", "3", "4")
    answer = stage.ask(2)
    assert kinds(answer) == ("max_msgs", "likely")
    assert "stream info: config.max_msgs = 2, state.messages" in sources(answer)


def test_removed_by_max_bytes(staged: Staged) -> None:
    stage = staged(max_bytes=500)
    stage.consumer()
    stage.publish(*"123456")
    stage.wait_until_removed(1)
    answer = stage.ask(1)
    assert kinds(answer) == ("max_bytes", "likely")
    assert "stream info: config.max_bytes = 500, state.bytes" in sources(answer)


def test_a_limit_that_refuses_removes_nothing(staged: Staged) -> None:
    stage = staged(max_msgs=3, discard="new")
    stage.consumer()
    stage.publish("1", "2", "3")
    stage.stream.delete_message(1)
    answer = stage.ask(1)
    assert kinds(answer) == ("removed_by_client", "likely")
    assert "not by max_msgs: the stream refuses" in str(answer["evidence"])


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_removed_after_its_acknowledgement(staged: Staged, retention: str) -> None:
    stage = staged(retention=retention)
    worker = stage.consumer(sample_freq="100%")
    stage.publish("1", "2", "3")
    worker.fetch(2, timeout=60)[1].double_ack()
    stage.wait_until_removed(2)
    assert kinds(stage.ask(2)) == ("acknowledged_and_removed", "likely")
    stage.wait_for("ACK")
    assert kinds(stage.ask_with_events(2)) == ("acknowledged_and_removed", "reported")
    assert kinds(stage.ask(1)) == ("pending", "likely" if retention == "limits" else "certain")


def test_terminated_in_a_work_queue(staged: Staged) -> None:
    stage = staged(retention="workqueue")
    worker = stage.consumer()
    stage.publish("1")
    worker.fetch(1, timeout=60)[0].term("broken")
    stage.wait_for("MSG_TERMINATED")
    stage.wait_until_removed(1)
    answer = stage.ask_with_events(1)
    assert kinds(answer) == ("terminated", "reported")


def test_a_purged_work_queue_was_not_acknowledged(staged: Staged) -> None:
    stage = staged(retention="workqueue")
    worker = stage.consumer()
    stage.publish("1", "2", "3")
    worker.fetch(1, timeout=60)[0].double_ack()
    stage.stream.purge()
    # The purge moves the floors of the consumer, but not its number of deliveries.
    assert kinds(stage.ask(3)) == ("purged", "likely")
    assert kinds(stage.ask(1)) == ("acknowledged_and_removed", "likely")


def test_removed_and_not_for_this_consumer(staged: Staged) -> None:
    stage = staged(max_msgs_per_subject=1)
    stage.consumer(filter_subject=stage.subject("us"))
    stage.publish("eu", "eu")
    answer = stage.ask(1, "--subject", stage.subject("eu"))
    assert kinds(answer) == ("overwritten", "likely")
    assert [each["kind"] for each in answer["also"]] == ["filtered"]


def test_no_consumer_wanted_it(staged: Staged) -> None:
    stage = staged(retention="interest")
    stage.publish("1")
    stage.consumer()
    assert kinds(stage.ask(1)) == ("no_interest", "likely")


@pytest.mark.parametrize(("kind", "known"), [("all", False), ("sub", True), ("sub", False)])
def test_replaced_by_a_rollup(staged: Staged, kind: str, known: bool) -> None:
    stage = staged(allow_rollup_hdrs=True)
    stage.consumer()
    stage.publish("eu", "us")
    stage.publish("eu", headers={"Nats-Rollup": kind})
    options = ("--subject", stage.subject("eu")) if known else ()
    answer = stage.ask(1, *options)
    expected = "likely" if kind == "all" or known else "possible"
    assert kinds(answer) == ("rolled_up", expected)
    assert "message 3: header Nats-Rollup" in sources(answer)


def test_below_the_first_sequence(staged: Staged) -> None:
    stage = staged(first_seq=10)
    stage.consumer()
    stage.publish("10")
    assert kinds(stage.ask(9)) == ("never_stored", "certain")


def test_several_causes_fit(staged: Staged) -> None:
    stage = staged(max_msgs=2, allow_rollup_hdrs=True, max_bytes=10_000)
    stage.consumer()
    stage.publish("1", "2")
    stage.publish("1", headers={"Nats-Rollup": "sub"})
    stage.publish("4", "5")
    answer = stage.ask(1)
    assert kinds(answer) == ("max_msgs", "likely")
    claims: list[dict[str, Any]] = answer["evidence"]
    assert "unlikely" in {claim["confidence"] for claim in claims}
