"""The decision about a message as a function of facts, without a server."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, get_args

import pytest
from attrs import evolve

from tests.examples import ROOT
from twinstream.cli.why.advisories import Advisories, Skipped, Stored, Subject, judged
from twinstream.cli.why.answer import Kind
from twinstream.cli.why.decision import decide
from twinstream.cli.why.facts import Facts, LaterMessages, Window
from twinstream.core.read.stream_message import StreamMessage
from twinstream.models import (
    ClusterInfo,
    ConsumerConfig,
    ConsumerInfo,
    LostStreamData,
    SequenceInfo,
    StreamConfig,
    StreamInfo,
    StreamSource,
    StreamSourceInfo,
    StreamState,
    Timestamp,
)
from twinstream.records.headers import Headers

# The stream is created at 0 s, a message stored at its sequence in seconds, the consumer at 0.5 s.
CREATED, NOW = 1_000, 2_000


def at(seconds: float) -> Timestamp:
    return Timestamp.from_ns(int((CREATED + seconds) * 1e9))


def message(seq: int, subject: str = "s.1", **headers: str) -> StreamMessage[Any]:
    return StreamMessage(
        stream_name="S",
        subject=subject,
        seq=seq,
        time=at(seq),
        data=b"",
        headers=Headers([(name.replace("_", "-"), value) for name, value in headers.items()]),
    )


def stream(
    first: int = 1, last: int = 10, messages: int | None = None, **settings: Any
) -> StreamInfo:
    held = last - first + 1 if messages is None else messages
    return StreamInfo(
        config=StreamConfig(name="S", subjects=["s.>"], **settings),
        created=at(0),
        ts=Timestamp.from_ns(int(NOW * 1e9)),
        state=StreamState(
            messages=held,
            bytes=held * 100,
            first_seq=first,
            last_seq=last,
            consumer_count=1,
            first_ts=at(first) if held else None,
            last_ts=at(last),
        ),
    )


def consumer(
    delivered: int = 0,
    floor: int = 0,
    *,
    deliveries: int | None = None,
    pending: int = 0,
    again: int = 0,
    state: dict[str, Any] | None = None,
    **settings: Any,
) -> ConsumerInfo:
    made = delivered if deliveries is None else deliveries
    return ConsumerInfo(
        stream_name="S",
        name="c",
        created=at(0.5),
        config=ConsumerConfig(**{"ack_policy": "explicit", "deliver_policy": "all", **settings}),
        delivered=SequenceInfo(consumer_seq=made, stream_seq=delivered, last_active=at(100)),
        ack_floor=SequenceInfo(consumer_seq=floor, stream_seq=floor),
        num_ack_pending=pending,
        num_redelivered=again,
        num_pending=10 - delivered,
        **(state or {}),
    )


def verdict(seq: int, described: ConsumerInfo, **facts: Any) -> tuple[str, str]:
    """Return the kind and the confidence of the verdict about a message, stored by default."""
    facts.setdefault("stream", stream())
    facts.setdefault("message", message(seq))
    found = facts["message"]
    facts.setdefault("subject", found.subject if found else None)
    answer = decide(Facts(**{"server": (2, 15), **facts}, seq=seq, consumer=described))
    assert all(claim.source and claim.text for claim in answer.evidence)
    assert len(set(answer.evidence)) == len(answer.evidence)
    return answer.verdict.kind, answer.verdict.confidence


def gone(seq: int, described: ConsumerInfo | None = None, **facts: Any) -> tuple[str, str]:
    """Return the kind and the confidence of the verdict about a removed message."""
    return verdict(seq, described or consumer(10, 10), message=None, **facts)


def events(*bodies: dict[str, Any], subjects: tuple[str, ...] = ("$JS.EVENT.>",)) -> Advisories:
    """Return stored advisories about message 5, of which none is missing."""
    found = [judged(stored(number, **body), SUBJECT) for number, body in enumerate(bodies, 1)]
    return Advisories(
        stream_name="E",
        created=at(-10),
        is_whole=True,
        subjects=subjects,
        events=tuple(each for each in found if isinstance(each, Stored)),
        skipped=tuple(each for each in found if isinstance(each, Skipped)),
    )


SUBJECT = Subject(
    stream_name="S",
    consumer_name="c",
    seq=5,
    stored_after=at(5),
    consumer_created=at(0.5),
    last_delivery=10,
)
WORDS = {
    "nak": "MSG_NAKED",
    "terminated": "MSG_TERMINATED",
    "max_deliver": "MAX_DELIVERIES",
    "consumer_leader_elected": "LEADER_ELECTED",
}


def stored(number: int, kind: str = "nak", time: float = 50, **members: Any) -> StreamMessage[Any]:
    """Return the stored advisory of a kind about message 5, with other members."""
    body: dict[str, Any] = {
        "type": f"io.nats.jetstream.advisory.v1.{kind}",
        "id": str(number),
        "timestamp": at(time).rfc3339(),
        "stream": "S",
        "consumer": "c",
        "stream_seq": 5,
        "consumer_seq": 1,
        "deliveries": 1,
    }
    subject = members.pop("on", f"$JS.EVENT.ADVISORY.CONSUMER.{WORDS.get(kind, kind)}.S.c")
    data = members.pop("data", None) or json.dumps(body | members).encode()
    return evolve(message(number, subject), data=data)


def call(name: str, request: object, response: object, time: float = 500) -> dict[str, Any]:
    """Return the members of an advisory of a request to the API."""
    return {
        "kind": "api_audit",
        "on": "$JS.EVENT.ADVISORY.API",
        "time": time,
        "server": "n",
        "subject": f"$JS.API.{name}.S",
        "request": request if isinstance(request, str) else json.dumps(request),
        "response": json.dumps(response),
    }


def test_a_sequence_beyond_the_last_one() -> None:
    assert verdict(11, consumer(), message=None) == ("not_stored_yet", "certain")
    lagging = evolve(stream(), mirror=StreamSourceInfo(name="O", lag=7))
    answer = decide(Facts(server=(2, 15), seq=11, consumer=consumer(), stream=lagging))
    assert "7 messages behind O" in str(answer.evidence)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"filter_subject": "s.2"}, ("filtered", "certain")),
        ({"filter_subjects": ["t.>", "s.1.*"]}, ("filtered", "certain")),
        ({"filter_subject": "s.*"}, ("acknowledged", "likely")),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 6}, ("before_start", "certain")),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, ("acknowledged", "likely")),
        (
            {"deliver_policy": "by_start_time", "opt_start_time": at(5.5)},
            ("before_start", "certain"),
        ),
        ({"deliver_policy": "by_start_time", "opt_start_time": at(5)}, ("acknowledged", "likely")),
        ({"deliver_policy": "new"}, ("acknowledged", "likely")),
        ({"ack_policy": "none"}, ("delivered", "likely")),
        ({"max_deliver": 3}, ("acknowledged", "likely")),
    ],
)
def test_a_message_below_both_floors(settings: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict(5, consumer(10, 10, **settings)) == expected


def test_new_before_the_first_delivery_needs_no_clock() -> None:
    fresh = consumer(7, 7, deliveries=0, deliver_policy="new")
    assert verdict(7, fresh) == ("before_start", "certain")
    assert verdict(8, fresh)[0] == "no_pull"


@pytest.mark.parametrize(
    ("state", "settings", "kinds"),
    [
        ({"num_waiting": 1}, {}, ["waiting"]),
        ({}, {}, ["no_pull"]),
        ({}, {"deliver_subject": "push"}, ["no_subscriber"]),
        ({"push_bound": True}, {"deliver_subject": "push"}, ["waiting"]),
        ({"paused": True}, {}, ["paused", "no_pull"]),
        ({"num_waiting": 1, "cluster": ClusterInfo(name="C")}, {}, ["no_leader"]),
        ({"num_waiting": 1}, {"max_ack_pending": 2}, ["max_ack_pending"]),
        ({"num_waiting": 1}, {"max_ack_pending": 3}, ["waiting"]),
        ({"num_waiting": 1}, {"max_ack_pending": -1}, ["waiting"]),
    ],
)
def test_what_keeps_a_message_back(
    state: dict[str, Any], settings: dict[str, Any], kinds: list[str]
) -> None:
    described = consumer(4, 2, pending=2, state=state, **settings)
    facts = Facts(
        server=(2, 15),
        seq=5,
        consumer=described,
        stream=stream(),
        message=message(5),
        subject="s.1",
    )
    answer = decide(facts)
    assert [answer.verdict.kind, *(each.kind for each in answer.also)] == kinds


@pytest.mark.parametrize(
    ("described", "window", "expected"),
    [
        (consumer(8, 4, pending=4), Window(first_seq=5, count=4), ("pending", "certain")),
        (consumer(8, 4, pending=2), Window(first_seq=5, count=3), ("pending", "likely")),
        (consumer(8, 3, pending=2), Window(first_seq=4, count=3), ("unknown", "unknown")),
        (consumer(8, 4, pending=2), None, ("unknown", "unknown")),
        (consumer(8, 4), None, ("unknown", "unknown")),
        # After `max_deliver`, the floor stays, and the first message above it need not be pending.
        (consumer(8, 4, max_deliver=2), None, ("given_up", "likely")),
        (
            consumer(8, 4, pending=2, max_deliver=2),
            Window(first_seq=5, count=3),
            ("unknown", "unknown"),
        ),
        (
            consumer(8, 4, pending=4, again=4),
            Window(first_seq=5, count=4),
            ("redelivered", "unknown"),
        ),
        # A message that was given up still counts as delivered again.
        (
            consumer(8, 4, pending=4, again=4, max_deliver=2),
            Window(first_seq=5, count=4),
            ("pending", "certain"),
        ),
        # Some of the pending messages were delivered again, and it is not known which.
        (consumer(8, 4, pending=4, again=2), Window(first_seq=5, count=4), ("pending", "certain")),
    ],
)
def test_between_the_floors(
    described: ConsumerInfo, window: Window | None, expected: tuple[str, str]
) -> None:
    assert verdict(5, described, window=window) == expected


def test_the_ack_floor_of_an_older_server_proves_nothing_after_max_deliver() -> None:
    described = consumer(8, 4, max_deliver=2)
    assert verdict(5, described, server=(2, 12, 8)) == ("unknown", "unknown")


ALL_PENDING = {"window": Window(first_seq=5, count=4)}
LEADER = {"kind": "consumer_leader_elected", "leader": "n1"}


@pytest.mark.parametrize(
    ("bodies", "again", "expected"),
    [
        ([], 4, ("redelivered_by_ack_wait", "likely")),
        ([{}], 4, ("redelivered_by_nak", "reported")),
        ([{}, {"deliveries": 2}], 2, ("redelivered_by_nak", "reported")),
        # The second delivery had another cause than this refusal of it.
        ([{"deliveries": 2}], 2, ("redelivered_by_ack_wait", "likely")),
        # The only election is that after the creation of the consumer.
        ([{**LEADER, "time": 20}], 4, ("redelivered_by_ack_wait", "likely")),
        (
            [{**LEADER, "time": 20}, {**LEADER, "time": 30}],
            4,
            ("redelivered_after_leader_change", "likely"),
        ),
        ([], 0, ("pending", "certain")),
        ([{}], 0, ("nak_pending", "reported")),
        # No delivery at all since the refusal.
        ([{"time": 101}], 2, ("nak_pending", "reported")),
        ([{"kind": "terminated", "reason": "bad"}], 0, ("terminated", "reported")),
        ([{"kind": "max_deliver", "deliveries": 3}], 0, ("given_up", "reported")),
    ],
)
def test_what_advisories_report(
    bodies: list[dict[str, Any]], again: int, expected: tuple[str, str]
) -> None:
    described = consumer(8, 4, pending=4, again=again)
    found = events(*bodies)
    assert not found.skipped
    assert verdict(5, described, advisories=found, **ALL_PENDING) == expected


@pytest.mark.parametrize(
    "changed", [{"created": at(50)}, {"is_whole": False}, {"subjects": ("$JS.EVENT.METRIC.>",)}]
)
def test_missing_advisories_prove_nothing(changed: dict[str, Any]) -> None:
    described = consumer(8, 4, pending=4, again=4)
    found = evolve(events(), **changed)
    assert verdict(5, described, advisories=found, **ALL_PENDING) == ("redelivered", "unknown")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"stream": "T"}, "its content"),
        ({"consumer": "d"}, "its content"),
        ({"on": "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.c"}, "its content"),
        ({"data": b"{"}, "JSON"),
        ({"data": b"\xff"}, ""),
        ({"data": b"[]"}, ""),
        ({"deliveries": "many"}, "deliveries"),
        ({"stream_seq": None}, "stream_seq"),
        ({"time": 2}, "older than the message"),
        ({"consumer_seq": 11}, "later delivery"),
        ({**call("STREAM.PURGE", "{", {"purged": 5})}, "no JSON object"),
        ({**call("STREAM.PURGE", "[]", {"purged": 5})}, "no JSON object"),
    ],
)
def test_an_advisory_that_no_server_published_is_skipped(body: dict[str, Any], reason: str) -> None:
    found = events(body)
    assert not found.events
    assert [reason in each.reason for each in found.skipped] == [True]
    answer = decide(
        Facts(
            server=(2, 15),
            seq=5,
            consumer=consumer(8, 4, pending=4),
            stream=stream(),
            message=message(5),
            subject="s.1",
            advisories=found,
            **ALL_PENDING,
        )
    )
    assert answer.verdict.kind == "pending"
    assert any(claim.text.startswith("skipped: ") for claim in answer.evidence)


@pytest.mark.parametrize(
    "body",
    [
        {"stream_seq": 6},
        {"consumer": "d", "on": "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.S.d"},
        {**call("STREAM.INFO", {}, {})},
        {**call("STREAM.PURGE", {}, {"error": {"code": 500}})},
        {**call("STREAM.PURGE", {}, {"purged": 5}, time=1)},
    ],
)
def test_an_advisory_about_something_else_is_ignored(body: dict[str, Any]) -> None:
    found = events(body)
    assert (found.events, found.skipped) == ((), ())


OLD = timedelta(seconds=500)
YOUNG = timedelta(hours=1)


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (stream(8), ("removed_by_client", "likely")),
        (stream(11, messages=0), ("purged", "likely")),
        (stream(8, deny_delete=True), ("purged", "likely")),
        (stream(8, deny_purge=True), ("deleted", "likely")),
        (stream(8, deny_purge=True, deny_delete=True), ("removed", "unknown")),
        (stream(8, sealed=True), ("removed", "unknown")),
        (stream(11, messages=0, max_age=OLD), ("expired", "likely")),
        (stream(11, messages=0, max_age=YOUNG), ("purged", "likely")),
        (stream(4, messages=6, max_age=OLD), ("removed_by_client", "likely")),
        (stream(8, max_msgs=3), ("max_msgs", "likely")),
        (stream(8, max_msgs=5), ("removed_by_client", "likely")),
        (stream(8, max_msgs=6), ("removed_by_client", "likely")),
        (stream(8, max_msgs=3, discard="new"), ("removed_by_client", "likely")),
        (stream(4, messages=6, max_msgs=3), ("removed_by_client", "likely")),
        (stream(8, max_bytes=350), ("max_bytes", "likely")),
        (stream(8, max_bytes=900), ("removed_by_client", "likely")),
        (stream(8, max_bytes=350, max_msgs=3), ("removed", "unknown")),
        (stream(8, allow_msg_ttl=True), ("ttl_expired", "possible")),
        (stream(8, max_msgs_per_subject=1), ("overwritten", "possible")),
        (stream(8, max_msgs_per_subject=6), ("removed_by_client", "likely")),
        (stream(8, allow_msg_ttl=True, max_msgs_per_subject=1), ("removed", "unknown")),
        (stream(8, allow_msg_schedules=True), ("schedule_done", "possible")),
        (stream(8, mirror=StreamSource(name="O")), ("not_in_origin", "possible")),
        (stream(8, first_seq=6), ("never_stored", "certain")),
    ],
)
def test_a_removed_message(described: StreamInfo, expected: tuple[str, str]) -> None:
    assert gone(5, stream=described, next=message(8)) == expected


def test_lost_data() -> None:
    described = stream()
    described = evolve(described, state=evolve(described.state, lost=LostStreamData(msgs=[5])))
    assert gone(5, stream=described) == ("lost", "certain")


FINISHED = ("acknowledged_and_removed", "likely")


@pytest.mark.parametrize(
    ("retention", "described", "expected"),
    [
        ("workqueue", consumer(10, 10), FINISHED),
        ("interest", consumer(10, 10), FINISHED),
        ("workqueue", consumer(10, 4, pending=2), FINISHED),
        ("interest", consumer(10, 4, pending=2), FINISHED),
        # Not reached yet, and by no other consumer.
        ("workqueue", consumer(4, 4), ("removed_by_client", "likely")),
        # A purge moved the floors over messages that were not delivered.
        ("workqueue", consumer(10, 10, deliveries=3), ("removed_by_client", "likely")),
        # The consumer is younger than the stream, and perhaps than the message.
        ("interest", consumer(4, 4), ("no_interest", "possible")),
        ("interest", consumer(10, 10, deliveries=3), ("no_interest", "possible")),
    ],
)
def test_retention(retention: str, described: ConsumerInfo, expected: tuple[str, str]) -> None:
    assert gone(5, described, stream=stream(8, retention=retention)) == expected


@pytest.mark.parametrize(
    ("later", "subject", "expected"),
    [
        ([message(8, Nats_Rollup="all")], None, ("rolled_up", "likely")),
        ([message(8, Nats_Rollup="sub")], "s.1", ("rolled_up", "likely")),
        ([message(8, Nats_Rollup="sub")], None, ("rolled_up", "possible")),
        ([message(8)], None, ("removed_by_client", "likely")),
        (
            [message(8, Nats_Marker_Reason="MaxAge", Nats_Rollup="sub")],
            "s.1",
            ("ttl_expired", "likely"),
        ),
        ([message(8, Nats_Marker_Reason="Purge")], "s.1", ("purged", "likely")),
        ([message(8, Nats_Marker_Reason="Remove")], None, ("deleted", "possible")),
        ([message(8, Nats_Marker_Reason="of a stranger")], "s.1", ("removed_by_client", "likely")),
    ],
)
def test_what_replaced_a_message(
    later: list[StreamMessage[Any]], subject: str | None, expected: tuple[str, str]
) -> None:
    found = gone(
        5,
        stream=stream(8, allow_rollup_hdrs=True),
        subject=subject,
        later=LaterMessages(messages=tuple(later)),
    )
    assert found == expected


def test_the_guide_describes_each_kind() -> None:
    guide = (ROOT / "docs" / "consuming.md").read_text(encoding="utf-8")
    table = guide.partition("| `kind` |")[2]
    assert [kind for kind in get_args(Kind) if f"`{kind}`" not in table] == []


PURGE, DELETE = "STREAM.PURGE", "STREAM.MSG.DELETE"


@pytest.mark.parametrize(
    ("calls", "facts", "expected"),
    [
        ([call(PURGE, {}, {"purged": 5})], {}, ("purged", "reported")),
        ([call(PURGE, "", {"purged": 5})], {}, ("purged", "reported")),
        ([call(PURGE, {"seq": 6}, {"purged": 5})], {}, ("purged", "reported")),
        ([call(PURGE, {"seq": 5}, {"purged": 4})], {}, ("removed", "unknown")),
        ([call(PURGE, {"seq": "x" * 9999}, {"purged": [{}]})], {}, ("purged", "reported")),
        ([call(PURGE, {}, {"purged": 0})], {}, ("removed", "unknown")),
        ([call(PURGE, {"filter": "s.*"}, {"purged": 4})], {}, ("purged", "possible")),
        (
            [call(PURGE, {"filter": "s.*"}, {"purged": 4})],
            {"subject": "s.1"},
            ("purged", "reported"),
        ),
        (
            [call(PURGE, {"filter": "s.2"}, {"purged": 4})],
            {"subject": "s.1"},
            ("removed", "unknown"),
        ),
        # A later message that is older than the purge would be gone, too.
        ([call(PURGE, {}, {"purged": 5}, 9)], {"stream": stream(8)}, ("removed", "unknown")),
        # An older message would be gone, too.
        (
            [call(PURGE, {}, {"purged": 5})],
            {"stream": stream(4, messages=6)},
            ("removed", "unknown"),
        ),
        ([call(PURGE, {"keep": 2}, {"purged": 5})], {}, ("purged", "reported")),
        ([call(DELETE, {"seq": 5}, {"success": True})], {}, ("deleted", "reported")),
        ([call(DELETE, {"seq": 6}, {"success": True})], {}, ("removed", "unknown")),
        # The message had expired before the purge.
        (
            [call(PURGE, {}, {"purged": 5}, 900)],
            {"stream": stream(11, messages=0, max_age=OLD)},
            ("expired", "likely"),
        ),
        # With all requests reported, no client has removed it.
        ([], {"stream": stream(8, allow_msg_ttl=True)}, ("ttl_expired", "possible")),
        ([], {}, ("removed", "unknown")),
    ],
)
def test_requests_of_clients(
    calls: list[dict[str, Any]], facts: dict[str, Any], expected: tuple[str, str]
) -> None:
    facts = {"stream": stream(11, messages=0), **facts}
    if facts["stream"].state.messages:
        facts["next"] = message(8)
    assert gone(5, advisories=events(*calls), **facts) == expected
