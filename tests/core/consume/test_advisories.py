"""Events: their subjects, and decoding of any content."""

from __future__ import annotations

import json

import pytest

import twinstream.models
from twinstream.core.consume.advisories import event_subjects, read_event
from twinstream.core.wire.protocol import Frame
from twinstream.errors import BadArgument
from twinstream.models import ConsumerAck, MaxDeliver, StreamAction, Terminated, UnknownEvent
from twinstream.models.event_subjects import EVENT_SUBJECTS

A = "$JS.EVENT.ADVISORY"


def frame(body: bytes, subject: str = f"{A}.X") -> Frame:
    return subject.encode(), b"", 0, body + b"\r\n"


def test_every_event_of_the_spec_has_a_class_and_a_subject() -> None:
    assert len(EVENT_SUBJECTS) == 24
    for name, (cls, subject) in EVENT_SUBJECTS.items():
        assert issubclass(getattr(twinstream.models, cls), twinstream.models.Model)
        assert subject.startswith("$JS.EVENT.METRIC." if ".metric." in name else f"{A}.")
        assert event_subjects(None, None, [name])


@pytest.mark.parametrize(
    ("stream", "consumer", "kinds", "subjects"),
    [
        (None, None, None, ["$JS.EVENT.>"]),
        ("S", None, None, ["$JS.EVENT.*.STREAM.*.S", "$JS.EVENT.*.CONSUMER.*.S.*"]),
        ("S", "c", None, ["$JS.EVENT.*.CONSUMER.*.S.c"]),
        (None, "c", None, ["$JS.EVENT.*.CONSUMER.*.*.c"]),
        (None, None, [MaxDeliver], [f"{A}.CONSUMER.MAX_DELIVERIES.*.*"]),
        ("S", "c", ["terminated"], [f"{A}.CONSUMER.MSG_TERMINATED.S.c"]),
        (None, None, ["api_audit", "api_audit"], [f"{A}.API"]),
        (None, None, "api_audit", [f"{A}.API"]),
        (None, None, ["io.nats.jetstream.metric.v1.consumer_ack"],
         ["$JS.EVENT.METRIC.CONSUMER.ACK.*.*"]),
        ("S", None, [StreamAction, Terminated],
         [f"{A}.STREAM.{word}.S" for word in ("CREATED", "UPDATED", "DELETED")]
         + [f"{A}.CONSUMER.MSG_TERMINATED.S.*"]),
    ],
)  # fmt: skip
def test_subjects_are_as_narrow_as_the_filters(stream, consumer, kinds, subjects) -> None:
    assert event_subjects(stream, consumer, kinds) == subjects


@pytest.mark.parametrize(
    ("stream", "consumer", "kinds", "said"),
    [
        (None, None, ["max_delivery"], "did you mean 'max_deliver'"),
        (None, None, ["xyz"], "known are api_audit"),
        (None, None, [UnknownEvent], "UnknownEvent"),
        ("S", None, ["api_audit"], "api_audit have no stream"),
        ("S", "c", ["stream_action"], "stream_action have no consumer"),
        ("a b", None, None, "stream name"),
        (None, "a.b", None, "consumer name"),
    ],
)
def test_filters_that_cannot_be(stream, consumer, kinds, said) -> None:
    with pytest.raises(BadArgument, match=said):
        event_subjects(stream, consumer, kinds)


def test_known_event_is_typed_and_has_its_stream_and_consumer() -> None:
    body = {
        "type": "io.nats.jetstream.metric.v1.consumer_ack",
        "id": "I",
        "timestamp": "2026-01-02T03:04:05.123456789Z",
        "stream": "S",
        "consumer": "c",
        "consumer_seq": 1,
        "stream_seq": 2,
        "ack_time": 3,
        "deliveries": 4,
        "domain": "hub",
        "cluster": "C",
    }
    event = read_event(
        frame(json.dumps(body).encode(), "$JS.EVENT.METRIC.CONSUMER.ACK.S.c"),
        missed=3,
        reconnected=True,
    )
    assert isinstance(event.record, ConsumerAck)
    assert (event.kind, event.type) == ("consumer_ack", body["type"])
    assert (event.stream_name, event.consumer_name, event.domain, event.cluster) == (
        "S",
        "c",
        "hub",
        "C",
    )
    assert str(event.time) == str(event.record.timestamp)
    assert (event.missed, event.reconnected, event.problem) == (3, True, "")


def test_unknown_and_broken_events_are_kept() -> None:
    raw = b'{"type":"io.nats.jetstream.advisory.v9.thing","stream":"S","n":1}'
    event = read_event(frame(raw))
    assert isinstance(event.record, UnknownEvent)
    assert (event.kind, event.stream_name, event.consumer_name, event.problem) == (
        "thing",
        "S",
        "",
        "",
    )
    assert (event.raw, event.time) == (raw, None)

    wrong = b'{"type":"io.nats.jetstream.advisory.v1.max_deliver","id":"I","stream":5}'
    event = read_event(frame(wrong))
    assert isinstance(event.record, UnknownEvent)
    assert event.kind == "max_deliver"
    assert "stream" in event.problem
    assert event.stream_name == ""

    for junk in (b"", b"\xff", b"[]", b"{"):
        event = read_event(frame(junk))
        assert isinstance(event.record, UnknownEvent)
        assert (event.raw, event.kind) == (junk, "")
        assert event.problem


V1 = "io.nats.jetstream.advisory.v1"


@pytest.mark.parametrize(
    ("subject", "members"),
    [
        (f"{A}.CONSUMER.MSG_TERMINATED.S.c", {"stream": "SECRET"}),
        (f"{A}.CONSUMER.MSG_TERMINATED.S.c", {"consumer": "d"}),
        (f"{A}.CONSUMER.MAX_DELIVERIES.S.c", {}),
        (f"{A}.X", {}),
        (f"{A}.STREAM.CREATED.S", {"type": f"{V1}.stream_action", "action": "delete"}),
        (f"{A}.STREAM.CREATED.S", {"type": f"{V1}.stream_action", "action": "other"}),
        (f"{A}.STREAM.NEW.S", {"type": "io.nats.v9.new", "stream": "SECRET"}),
        (f"{A}.CONSUMER.NEW.S.c", {"type": "io.nats.v9.new", "consumer": "\n"}),
    ],
)
def test_forged_event_has_a_problem(subject: str, members: dict[str, str]) -> None:
    event = read_event(frame(json.dumps(TERMINATED | members).encode(), subject))
    assert isinstance(event.record, UnknownEvent)
    assert event.problem.startswith("its content ")
    assert event.problem.isprintable()


@pytest.mark.parametrize(
    ("subject", "members"),
    [
        (f"{A}.CONSUMER.MSG_TERMINATED.S.c", {}),
        # An account may import the events of another one below a token of its own.
        (f"{A}.ACC.other.CONSUMER.MSG_TERMINATED.S.c", {}),
        (f"{A}.STREAM.CREATED.S", {"type": f"{V1}.stream_action", "action": "create"}),
        (f"{A}.API", {"type": f"{V1}.api_audit", "server": "s", "client": {}, "subject": "x",
                      "response": "", "request": ""}),
        (f"{A}.CONSUMER.NEW.S.c", {"type": "io.nats.v9.new"}),
        (f"{A}.NEW", {"type": "io.nats.v9.new"}),
    ],
)  # fmt: skip
def test_event_that_agrees_with_its_subject_has_none(
    subject: str, members: dict[str, object]
) -> None:
    event = read_event(frame(json.dumps(TERMINATED | members).encode(), subject))
    assert event.problem == ""


TERMINATED = {
    "type": f"{V1}.terminated",
    "id": "I",
    "timestamp": "2026-01-02T03:04:05Z",
    "stream": "S",
    "consumer": "c",
    "consumer_seq": 1,
    "stream_seq": 2,
    "deliveries": 3,
}
