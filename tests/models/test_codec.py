"""Decoding and encoding: no information is lost or guessed, and every error is located."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property_examples import examples
from twinstream.models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DecodeError,
    Duration,
    ErrorResponse,
    MaxDeliver,
    StoredMessage,
    StreamAction,
    StreamActionKind,
    StreamConfig,
    StreamInfo,
    StreamNamesResponse,
    StreamSource,
    StreamState,
    Timestamp,
    UnknownEvent,
    decode,
    decode_response,
    encode,
    encode_json,
    evolve,
)
from twinstream.models.files.shapes import SHAPES, WORDS

MAX_DELIVER: dict[str, Any] = {
    "type": "io.nats.jetstream.advisory.v1.max_deliver",
    "id": "a1",
    "timestamp": "2026-01-31T08:00:00.36954534Z",
    "stream": "S",
    "consumer": "C",
    "stream_seq": 18446744073709551615,
    "deliveries": 3,
}


def values(kind: str) -> st.SearchStrategy[Any]:
    """Return the JSON values that a kind of member may have."""
    if kind.startswith("["):
        return st.lists(values(kind[1:-1]), max_size=3)
    if kind.startswith("{"):
        return st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
    if kind.startswith("word:"):
        return st.sampled_from([*WORDS[kind[5:]], "future"])
    if kind in SHAPES:
        return records(kind)
    return {
        "text": st.text(max_size=10),
        "bool": st.booleans(),
        "int32": st.integers(-(2**31), 2**31 - 1),
        "int64": st.integers(-(2**63), 2**63 - 1),
        "uint64": st.integers(0, 2**64 - 1),
        "duration": st.integers(-(2**63), 2**63 - 1),
        "time": st.integers(0, 4 * 10**18).map(lambda ns: Timestamp.from_ns(ns).rfc3339()),
    }[kind]


def records(name: str) -> st.SearchStrategy[dict[str, Any]]:
    members = {member: values(kind) for member, (kind, _) in SHAPES[name].items()}
    nullable = {member: st.none() | value for member, value in members.items()}
    strange = st.dictionaries(
        st.text("xyz_", min_size=3, max_size=6), st.none() | st.integers() | st.text(), max_size=2
    )
    known = st.fixed_dictionaries({}, optional=nullable)
    return st.builds(lambda one, two: {**two, **one}, known, strange)


@settings(max_examples=examples(150), deadline=None)
@given(records("StreamConfig"))
def test_stream_configs_round_trip(members: dict[str, Any]) -> None:
    model = decode(members, StreamConfig)
    assert encode(model) == members
    assert pickle.loads(pickle.dumps(model)) == model
    assert decode(encode_json(model), StreamConfig) == model


@settings(max_examples=examples(150), deadline=None)
@given(records("ConsumerConfig"))
def test_consumer_configs_round_trip(members: dict[str, Any]) -> None:
    model = decode(members, ConsumerConfig)
    assert encode(model) == members
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_type_member_picks_the_class() -> None:
    event = decode(json.dumps(MAX_DELIVER).encode())
    assert isinstance(event, MaxDeliver)
    assert event.stream_seq == 2**64 - 1
    assert event.timestamp.microsecond == 369545
    assert event.timestamp.nanosecond == 340
    assert encode(event) == MAX_DELIVER


def test_unknown_type_is_kept_completely() -> None:
    members = {**MAX_DELIVER, "type": "io.nats.jetstream.advisory.v9.new"}
    event = decode(members)
    assert isinstance(event, UnknownEvent)
    assert (event.type, event.id) == (members["type"], "a1")
    assert event.unknown["deliveries"] == 3
    assert encode(event) == members


def test_errors_come_before_payloads() -> None:
    members = {
        "type": "io.nats.jetstream.api.v1.stream_info_response",
        "error": {"code": 404, "err_code": 10059, "description": "stream not found"},
        "total": 0,
    }
    for answer in (decode(members), decode_response(members, StreamInfo)):
        assert isinstance(answer, ErrorResponse)
        assert answer.error.err_code == 10059
        assert encode(answer) == members


def test_snapshot_event_with_an_error_is_still_an_event() -> None:
    members = {
        "type": "io.nats.jetstream.advisory.v1.snapshot_complete",
        "id": "1",
        "timestamp": "2026-01-31T08:00:00Z",
        "stream": "S",
        "start": "2026-01-31T08:00:00Z",
        "end": "2026-01-31T08:00:00Z",
        "error": "no interest",
    }
    assert encode(decode(members)) == members
    assert type(decode(members)).__name__ == "SnapshotComplete"


def test_null_zero_minus_one_and_absent_are_four_things() -> None:
    for members in ({"max_msgs": None}, {"max_msgs": 0}, {"max_msgs": -1}, {}):
        assert encode(decode(members, StreamConfig)) == members
    assert decode({"max_msgs": None}, StreamConfig).max_msgs is None
    assert encode(decode({"streams": None}, StreamNamesResponse)) == {"streams": None}


def test_evolve_keeps_what_it_does_not_know() -> None:
    members = {"name": "S", "new_thing": {"x": 1}, "sources": None}
    changed = evolve(decode(members, StreamConfig), max_msgs=5, sources=[])
    assert encode(changed) == {"name": "S", "new_thing": {"x": 1}, "max_msgs": 5, "sources": []}
    with pytest.raises(TypeError, match="max_mgs"):
        evolve(changed, max_mgs=5)


def test_evolve_leaves_the_original_alone() -> None:
    original = decode({"name": "S", "new_thing": 1}, StreamConfig)
    copy = evolve(original, name="T")
    copy.unknown["other"] = 2
    assert original.unknown == {"new_thing": 1}


def test_configs_are_pleasant_to_write() -> None:
    config = ConsumerConfig(
        durable_name="w",
        ack_policy="explicit",
        ack_wait=timedelta(seconds=30),
        backoff=(timedelta(seconds=1), timedelta(seconds=2)),
        opt_start_time=datetime(2026, 1, 31, tzinfo=UTC),
        filter_subjects=("a", "b"),
    )
    assert config.ack_policy is AckPolicy.EXPLICIT
    assert isinstance(config.ack_wait, Duration)
    assert encode(config) == {
        "durable_name": "w",
        "ack_policy": "explicit",
        "ack_wait": 30_000_000_000,
        "backoff": [1_000_000_000, 2_000_000_000],
        "opt_start_time": "2026-01-31T00:00:00Z",
        "filter_subjects": ["a", "b"],
    }
    assert repr(ConsumerConfig(durable_name="w")) == "ConsumerConfig(durable_name='w')"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"subjects": "orders.>"},
            r"StreamConfig\.subjects: expected a list of texts, .* put it into",
        ),
        ({"max_age": 5}, r"StreamConfig\.max_age: expected a timedelta, got 5; write timedelta"),
        ({"mirror_since": 1}, "unexpected keyword"),
    ],
)
def test_wrong_fields_are_refused_when_written(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        StreamConfig(**fields)


def test_fields_with_wrong_times_are_named() -> None:
    with pytest.raises(ValueError, match=r"ConsumerConfig\.opt_start_time: .* has no zone"):
        ConsumerConfig(durable_name="C", opt_start_time=datetime(2026, 1, 1))
    with pytest.raises(TypeError, match=r"ConsumerConfig\.ack_wait: .*timedelta"):
        evolve(ConsumerConfig(durable_name="C"), ack_wait=5)  # type: ignore[arg-type]


def test_words_of_the_future_are_members_of_their_own() -> None:
    policy = decode({"ack_policy": "telepathy"}, ConsumerConfig).ack_policy
    assert policy == "telepathy"
    assert policy is not None
    assert not policy.is_known
    assert AckPolicy.EXPLICIT.is_known
    assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(ValueError, match="5"):
        AckPolicy(5)  # type: ignore[arg-type]


def test_required_words_are_members_too() -> None:
    members = {**MAX_DELIVER, "type": MAX_DELIVER["type"].replace("max_deliver", "stream_action")}
    event = decode({**members, "action": "modify"})
    assert isinstance(event, StreamAction)
    assert event.action is StreamActionKind.MODIFY


def test_base64_is_read_as_bytes() -> None:
    members = {"subject": "a", "seq": 1, "data": "AAE=", "time": "2026-01-31T08:00:00Z"}
    message = decode(members, StoredMessage)
    assert message.data == b"\x00\x01"
    assert encode(message) == members


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[1]", "expected an object, got list"),
        (b"null", "expected an object, got NoneType"),
        (b'{"a": NaN}', "NaN is not a JSON value"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"max_msgs": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"max_msgs": "5"}', "max_msgs: expected a whole number, got '5'"),
        (b'{"max_msgs": true}', "max_msgs: expected a whole number, got True"),
        (b'{"max_msgs": 1.0}', "max_msgs: expected a whole number, got 1.0"),
        (b'{"no_ack": 1}', "no_ack: expected true or false, got 1"),
        (b'{"max_age": "5s"}', "max_age: expected a whole number of nanoseconds"),
        (b'{"max_age": 1' + b"0" * 40 + b"}", "max_age: .* out of range"),
        (b'{"subjects": "a"}', "subjects: expected a list, got 'a'"),
        (b'{"metadata": "a"}', "metadata: expected an object, got 'a'"),
        (b'{"subjects": [1]}', r"subjects\[0\]: expected text, got 1"),
        (b'{"retention": 1}', "retention: expected a word, got 1"),
        (b'{"mirror": []}', "mirror: expected an object"),
        (b'{"mirror": {"opt_start_time": "now"}}', "mirror.opt_start_time: 'now' is not a time"),
        (b'{"metadata": {"a": 1}}', "metadata.*expected text, got 1"),
    ],
)
def test_faults_say_where_and_why(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        decode(data, StreamConfig)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.problems == caught.value.problems


def test_all_faults_are_listed() -> None:
    with pytest.raises(DecodeError) as caught:
        decode({"config": {"name": 3}, "created": "x"}, StreamInfo)
    assert [path for path, _ in caught.value.problems] == ["config.name", "created", "state"]


def test_without_a_type_somebody_must_say_what_it_is() -> None:
    with pytest.raises(DecodeError, match="pass the class as as_"):
        decode(b"{}")


def test_strict_reading_finds_typos() -> None:
    members = {"nme": "S", "mirror": {"nam": "O"}, "sources": [{"x": 1}], "max_msgs": None}
    with pytest.raises(DecodeError) as caught:
        decode(members, StreamConfig, strict=True)
    assert caught.value.problems == [
        ("nme", "no such field; did you mean 'name'?"),
        ("mirror.nam", "no such field; did you mean 'name'?"),
        ("sources[0].x", "no such field"),
    ]
    assert decode({"name": "S"}, StreamConfig, strict=True).name == "S"


def test_old_answers_without_newer_members_are_read() -> None:
    info = decode(
        {
            "stream_name": "S",
            "name": "C",
            "created": "2026-01-31T08:00:00Z",
            "delivered": {"consumer_seq": 0, "stream_seq": 0},
            "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        },
        ConsumerInfo,
    )
    assert info.config is None
    assert info.num_pending is None


def test_records_are_frozen_and_compare_by_value() -> None:
    one = decode(
        {"messages": 1, "bytes": 2, "first_seq": 1, "last_seq": 1, "consumer_count": 0}, StreamState
    )
    with pytest.raises(AttributeError):
        one.messages = 2  # type: ignore[misc]
    assert one == evolve(one)
    assert one != evolve(one, messages=2)


def test_moving_stream_reports_its_target() -> None:
    """The response is that of 2.15.1 while a stream moves to another server."""
    cluster = {
        "name": "test",
        "replicas": [{"name": "n1", "current": True, "active": 0, "peer": "rRRil12C"}],
        "desired": {
            "created": "2026-11-21T02:23:25.343130667Z",
            "name": "test",
            "replicas": [{"name": "n2", "peer": "NxxZFuJy"}],
            "origin": {"replicas": 1},
        },
    }
    state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
    answer = {
        "config": {"name": "S"},
        "created": "2026-11-21T02:20:00Z",
        "state": state,
        "cluster": cluster,
    }
    info = decode(answer, StreamInfo)
    assert info.cluster is not None
    assert info.cluster.desired is not None
    assert [peer.name for peer in info.cluster.desired.replicas or ()] == ["n2"]
    assert encode(info)["cluster"] == cluster


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"placement": {"cluster": "x"}},
            r"StreamConfig\.placement: expected a Placement, got \{'cluster': 'x'\}; write decode",
        ),
        ({"mirror": "S"}, r"StreamConfig\.mirror: expected a StreamSource, got 'S'"),
        (
            {"sources": [StreamSource(name="A"), {"name": "B"}]},
            r"StreamConfig\.sources\[1\]: expected a StreamSource",
        ),
        (
            {"mirror": StreamSource(name="A", subject_transforms=[("a", "b")])},
            r"StreamConfig\.mirror\.subject_transforms\[0\]: expected a SubjectTransform",
        ),
    ],
)
def test_wrong_value_for_a_record_is_reported_with_its_path(members, reason):
    with pytest.raises(TypeError, match=reason):
        encode(StreamConfig(name="S", **members))
