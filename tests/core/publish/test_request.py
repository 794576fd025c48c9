"""The conditions of a publish request, and its response."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from typing import Any

import pytest

from tests.core.frames import block
from twinstream.core.publish.request import publish_headers, several
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    NoStream,
    PublishFailure,
    StoreFailed,
)
from twinstream.errors.publish_failures import LISTED, UnreadFailures
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest


def pairs(**members: Any) -> list[tuple[str, str]]:
    found = publish_headers(PublishRequest(subject="s", **members))
    return list(Headers.parse(found).pairs) if found else []


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({}, []),
        ({"msg_id": "1"}, [("Nats-Msg-Id", "1")]),
        ({"expected_stream": "S"}, [("Nats-Expected-Stream", "S")]),
        ({"expected_last_seq": 0}, [("Nats-Expected-Last-Sequence", "0")]),
        ({"expected_last_msg_id": "1"}, [("Nats-Expected-Last-Msg-Id", "1")]),
        ({"expected_last_subject_seq": 0}, [("Nats-Expected-Last-Subject-Sequence", "0")]),
        (
            {"expected_last_subject_seq": 3, "expected_last_subject_seq_subject": "a.*"},
            [
                ("Nats-Expected-Last-Subject-Sequence", "3"),
                ("Nats-Expected-Last-Subject-Sequence-Subject", "a.*"),
            ],
        ),
        ({"rollup": "sub"}, [("Nats-Rollup", "sub")]),
        ({"rollup": "all"}, [("Nats-Rollup", "all")]),
        ({"ttl": 5}, [("Nats-TTL", "5")]),
        ({"ttl": timedelta(minutes=1)}, [("Nats-TTL", "60")]),
        ({"ttl": "never"}, [("Nats-TTL", "never")]),
        ({"headers": {"A": ["1", "2"]}}, [("A", "1"), ("A", "2")]),
        ({"headers": {"A": "1"}, "msg_id": "x"}, [("A", "1"), ("Nats-Msg-Id", "x")]),
        (
            {"headers": Headers([("A", "1"), ("B", "2"), ("A", "3")]), "msg_id": "x"},
            [("A", "1"), ("A", "3"), ("B", "2"), ("Nats-Msg-Id", "x")],
        ),
    ],
)
def test_promises_are_headers(members: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    assert pairs(**members) == wanted


class Table:
    """An object like the tables of some libraries: a comparison with it has no truth value."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value is ambiguous")

    __hash__ = None


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"msg_id": ""}, "msg_id must not be empty or blank"),
        ({"msg_id": " "}, "msg_id must not be empty or blank"),
        ({"msg_id": " \t "}, "msg_id must not be empty or blank"),
        ({"msg_id": " a"}, "msg_id must not begin or end with blanks, got ' a'"),
        ({"msg_id": "a\t"}, "msg_id must not begin or end with blanks"),
        ({"msg_id": 5}, "msg_id must be text"),
        ({"expected_last_msg_id": ""}, "expected_last_msg_id must not be empty or blank"),
        ({"expected_last_msg_id": "a "}, "expected_last_msg_id must not begin or end"),
        ({"msg_id": "a\r\nb"}, "Nats-Msg-Id"),
        ({"expected_last_seq": -1}, "expected_last_seq must be a sequence"),
        ({"expected_last_seq": True}, "expected_last_seq must be a sequence"),
        ({"expected_last_subject_seq": "1"}, "expected_last_subject_seq must be a sequence"),
        ({"expected_last_subject_seq_subject": "a"}, "needs the sequence"),
        (
            {"expected_last_subject_seq": 1, "expected_last_subject_seq_subject": "a b"},
            "white space",
        ),
        ({"rollup": "Sub"}, "rollup must be 'sub' or 'all'"),
        ({"rollup": ""}, "rollup must be"),
        ({"ttl": 0}, "ttl must be whole seconds"),
        ({"ttl": 1.5}, "ttl must be whole seconds"),
        ({"ttl": float("inf")}, "ttl must be"),
        ({"ttl": -1}, "ttl must be"),
        ({"ttl": "Never"}, "ttl must be seconds or 'never', got 'Never'"),
        ({"ttl": "5"}, "ttl must be seconds or 'never'"),
        ({"headers": {"Nats-Msg-Id": "1"}, "msg_id": "2"}, "given twice"),
        ({"headers": {"A": 1}}, "must be text"),
        ({"headers": {"A": 1}, "msg_id": "2"}, "must be text"),
        ({"headers": {"A": b"1"}}, "must be text, got b'1'"),
        ({"headers": {b"A": "1"}}, "name must be text, got b'A'"),
        ({"headers": [("A", "1")]}, "headers must be Headers or a mapping of names"),
        ({"headers": "A: 1", "msg_id": "2"}, "headers must be Headers or a mapping of names"),
        ({"headers": [("A", "1")], "msg_id": "2"}, "a mapping of names"),
        ({"headers": 5, "msg_id": "2"}, "a mapping of names"),
        ({"headers": Table()}, "a mapping of names"),
        ({"msg_id": ["1", "2"]}, "msg_id must be text"),
        ({"expected_stream": ["S"]}, "expected_stream must be text"),
        ({"expected_last_msg_id": ["1"]}, "expected_last_msg_id must be text"),
    ],
)
def test_promises_that_cannot_be_kept(members: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        pairs(**members)


def answer(body: bytes, headers: bytes = b"") -> Frame:
    return (b"_INBOX.x.1", b"", len(headers), headers + body + b"\r\n")


def test_an_acknowledgement() -> None:
    ack = read_pub_ack(answer(b'{"stream":"S","seq":7}'), "s")
    assert (ack.stream, ack.seq, ack.duplicate, ack.domain) == ("S", 7, None, None)
    text = b'{"stream":"S","seq":7,"duplicate":true,"domain":"hub","val":"12"}'
    ack = read_pub_ack(answer(text, block("", A="b")), "s")
    assert (ack.duplicate, ack.domain, ack.val) == (True, "hub", "12")
    assert read_pub_ack(answer(b'{"stream":"S","seq":0,"duplicate":true}'), "s").seq == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"+OK",
        b"{}",
        b'{"stream":"S"}',
        b'{"seq":1}',
        b'{"stream":1,"seq":1}',
        b'{"stream":"S","seq":"1"}',
        b'{"stream":"S","seq":true}',
        b'{"stream":"S","seq":0}',
    ],
)
def test_what_is_no_acknowledgement(body: bytes) -> None:
    with pytest.raises(InvalidResponse, match=r"orders\.new"):
        read_pub_ack(answer(body), "orders.new")


def test_a_refusal_in_an_acknowledgement() -> None:
    body = b'{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}'
    with pytest.raises(StoreFailed, match="maximum bytes"):
        read_pub_ack(answer(body), "s")


@pytest.mark.parametrize(
    ("members", "repeatable"),
    [
        ({}, False),
        ({"expected_stream": "S", "ttl": 5, "rollup": "sub", "headers": {"A": "1"}}, False),
        ({"msg_id": "1"}, True),
        ({"expected_last_seq": 0}, True),
        ({"expected_last_msg_id": "1"}, True),
        ({"expected_last_subject_seq": 0}, True),
    ],
)
def test_what_may_be_sent_twice(members: dict[str, Any], repeatable: bool) -> None:
    assert PublishRequest(subject="s", **members).is_repeatable is repeatable


def test_a_request_is_a_value():
    request = PublishRequest(subject="orders", data=b"x", headers={"A": "1"})
    assert request == PublishRequest(subject="orders", data=b"x", headers={"A": "1"})
    assert request._replace(data=b"y") == PublishRequest("orders", b"y", {"A": "1"})
    assert pickle.loads(pickle.dumps(request)) == request
    with pytest.raises(AttributeError):
        request.data = b"y"


@pytest.mark.parametrize(
    ("more", "plain"),
    [({}, True), ({"headers": {}}, True), ({"headers": {"A": "1"}}, False), ({"ttl": 1}, False)],
)
def test_a_plain_request_has_subject_and_data_only(more, plain):
    request = PublishRequest(subject="orders", data=b"x", **more)
    assert (publish_headers(request) == b"") == plain


def test_one_request_is_not_several():
    with pytest.raises(BadArgument, match=r"orders: expected several requests.*pass a list"):
        several(PublishRequest(subject="orders"))
    requests = [PublishRequest(subject="orders")]
    assert several(requests) is requests


def failure(number: int = 0) -> PublishFailure:
    return PublishFailure(PublishRequest(f"s{number}"), NoStream(f"s{number}"))


def test_reading_the_error_is_what_counts_as_looking_at_a_failure() -> None:
    unread, given = UnreadFailures(is_wanted=True), [failure(n) for n in range(4)]
    for each in given:
        unread.add(each)
    looks_of_nothing = (
        repr,
        str,
        PublishFailure.peek,
        hash,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
    )
    assert [look(given[0]) is not None for look in looks_of_nothing] == [True] * 7
    assert given[0] == copy.copy(given[0])
    assert given[1].error is given[1].error
    match given[2]:
        case PublishFailure(_, error):
            assert isinstance(error, NoStream)
    found = unread.take()
    assert found is not None
    assert (found.count, found.failures) == (2, (given[0], given[3]))
    assert unread.take() is None


def test_many_unread_failures_are_counted_and_some_are_listed() -> None:
    unread, given = UnreadFailures(is_wanted=True), [failure() for _ in range(LISTED + 7)]
    for each in given:
        unread.add(each)
    assert [given[place].error is not None for place in (0, LISTED, LISTED + 1)] == [True] * 3
    found = unread.take()
    assert found is not None
    assert (found.count, len(found.failures)) == (LISTED + 4, LISTED - 1)


def test_unread_failures_that_are_not_wanted_are_not_collected() -> None:
    unread = UnreadFailures(is_wanted=False)
    unread.add(failure())
    assert unread.take() is None


def test_a_copied_failure_is_as_its_original() -> None:
    given = failure()
    for made in (copy.copy(given), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        assert made.request == given.request
        assert type(made.error) is NoStream
        assert str(made.error) == "s0"
    assert repr(given) == f"PublishFailure(request={given.request!r}, error=NoStream('s0'))"


@pytest.mark.parametrize(
    "name",
    [
        "Nats-Msg-Id",
        "Nats-Expected-Stream",
        "Nats-Expected-Last-Sequence",
        "Nats-Expected-Last-Msg-Id",
        "Nats-Expected-Last-Subject-Sequence",
        "Nats-Expected-Last-Subject-Sequence-Subject",
        "Nats-Rollup",
        "Nats-TTL",
    ],
)
def test_headers_of_conditions_are_checked_as_the_arguments_are(name: str) -> None:
    for value in ("", " ", " 1", "1 ", "1\t"):
        for headers in ({name: value}, {name: [value]}, Headers([(name, value)])):
            with pytest.raises(BadArgument, match=f"header {name} must not be"):
                pairs(headers=headers)
            with pytest.raises(BadArgument, match=f"header {name} must not be"):
                pairs(headers={"A": "1", **headers}, expected_last_seq=1, msg_id="1")
    for values in ([], ["1", "2"]):
        with pytest.raises(BadArgument, match=f"header {name} must have a single value"):
            pairs(headers={name: values})
    assert pairs(headers={name: ["1"]}) == pairs(headers={name: "1"}) == [(name, "1")]


def test_an_empty_stream_is_no_expectation() -> None:
    with pytest.raises(BadArgument, match="expected_stream must not be empty"):
        pairs(expected_stream="")
