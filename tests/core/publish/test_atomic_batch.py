"""The headers of an atomic batch, what is refused before it is sent, and reading the outcome."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from twinstream.core.publish.atomic_batch import (
    BatchSheet,
    commit_seq,
    doubt_of_absence,
    read_batch_ack,
    read_staged,
)
from twinstream.core.wire.protocol import Frame
from twinstream.errors import (
    AtomicBatchFailed,
    AtomicBatchUnknown,
    BadArgument,
    InvalidResponse,
    JetStreamError,
    Unsupported,
)
from twinstream.models import StreamConfig, StreamInfo, StreamState, Timestamp
from twinstream.records.atomic_outcome import AtomicOutcome
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest


def request(subject: str = "s", **members: Any) -> PublishRequest:
    return PublishRequest(subject=subject, **members)


def pairs(block: bytes) -> list[tuple[str, str]]:
    assert block.startswith(b"NATS/1.0\r\n")
    assert block.endswith(b"\r\n\r\n")
    return list(Headers.parse(block).pairs)


def test_messages_are_numbered_and_the_last_commits() -> None:
    sheet = BatchSheet("b")
    first = sheet.add(request())
    second = sheet.add(request(headers={"A": "1"}))
    own = [("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "1")]
    assert pairs(first) == own
    assert pairs(second) == [("A", "1"), own[0], ("Nats-Batch-Sequence", "2")]
    assert pairs(sheet.commit_with(second)) == [*pairs(second), ("Nats-Batch-Commit", "1")]
    assert pairs(sheet.commit_after()) == [
        own[0],
        ("Nats-Batch-Sequence", "3"),
        ("Nats-Batch-Commit", "eob"),
    ]
    # Never the number that the server waits for, nor that of an end behind it.
    assert pairs(sheet.drop()) == [own[0], ("Nats-Batch-Sequence", "5")]
    assert sheet.count == 2


@pytest.mark.parametrize("batch_id", ["", "x" * 65, "ü" * 33])
def test_ids_that_the_server_would_refuse(batch_id: str) -> None:
    with pytest.raises(BadArgument, match="64"):
        BatchSheet(batch_id)


def test_a_batch_has_a_limit() -> None:
    with pytest.raises(BadArgument, match="max_messages"):
        BatchSheet("b", 0)
    sheet = BatchSheet("b" * 64, 1)
    sheet.add(request())
    with pytest.raises(BadArgument, match="full"):
        sheet.add(request())


@pytest.mark.parametrize(
    ("members", "first", "again", "other"),
    [
        ({"headers": {"Nats-Batch-Commit": "1"}}, "set by", "set by", "set by"),
        ({"expected_last_msg_id": "1"}, "ADR-50", "ADR-50", "ADR-50"),
        ({"expected_last_seq": 0}, "", "first message", "first message"),
        ({"expected_last_subject_seq": 0}, "", "written earlier", ""),
        (
            {
                "expected_last_subject_seq": 0,
                "headers": {"Nats-Expected-Last-Subject-Sequence-Subject": "s"},
            },
            "",
            "written earlier",
            "written earlier",
        ),
        ({"headers": {"Nats-Rollup": "sub"}}, "", "written earlier", ""),
        ({"headers": {"Nats-Rollup": "all"}}, "", "first message", "first message"),
        ({"msg_id": "1"}, "", "twice", "twice"),
        ({"msg_id": "2"}, "", "", ""),
        ({"expected_stream": "S", "ttl": 5}, "", "", ""),
    ],
)
def test_messages_that_would_fail_the_batch_are_refused(
    members: dict[str, Any], first: str, again: str, other: str
) -> None:
    for told, subject, before in ((first, "s", 0), (again, "s", 1), (other, "t", 1)):
        sheet = BatchSheet("b")
        for _ in range(before):
            sheet.add(request(msg_id="1"))
        if told:
            with pytest.raises(BadArgument, match=told):
                sheet.add(request(subject, **members))
            assert sheet.count == before
        else:
            sheet.add(request(subject, **members))
            assert sheet.count == before + 1


@pytest.mark.parametrize(
    ("members", "version", "told"),
    [
        ({}, "2.11.11", "needs server 2.12.0"),
        ({}, "2.12.0", ""),
        ({"msg_id": "1"}, "2.12.0", "needs server 2.12.1"),
        ({"msg_id": "1"}, "2.12.1", ""),
        ({"headers": {"Nats-Incr": "1"}}, "2.12.11", "2.12.12 or 2.14.3, connected to 2.12.11"),
        ({"headers": {"Nats-Incr": "1"}}, "2.12.12", ""),
        ({"headers": {"Nats-Schedule": "@hourly"}}, "2.14.2", "need server"),
        ({"headers": {"Nats-Schedule": "@hourly"}}, "2.14.3", ""),
    ],
)
def test_what_older_servers_lack(members: dict[str, Any], version: str, told: str) -> None:
    sheet = BatchSheet("b")
    sheet.add(request(**members))
    sheet.add(request("t"))
    numbers = tuple(map(int, version.split(".")))
    if told:
        with pytest.raises(Unsupported, match=told):
            sheet.check_server(numbers, version)
    else:
        sheet.check_server(numbers, version)


def answer(body: bytes) -> Frame:
    return (b"_INBOX.x.1", b"", 0, body + b"\r\n")


def test_a_message_is_kept_when_the_answer_is_empty() -> None:
    read_staged(answer(b""), "s")
    error = b'{"error":{"code":400,"err_code":10174,"description":"disabled"}}'
    with pytest.raises(JetStreamError, match="disabled"):
        read_staged(answer(error), "s")
    with pytest.raises(InvalidResponse, match="stored immediately"):
        read_staged(answer(b'{"stream":"S","seq":1}'), "s")


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (b'{"stream":"S","seq":9,"batch":"b","count":1}', True),
        (b'{"stream":"S","seq":9,"batch":"c","count":1}', False),
        (b'{"stream":"S","seq":9,"batch":"b","count":2}', False),
        (b'{"stream":"S","seq":9}', False),
        (b"hello", False),
    ],
)
def test_the_acknowledgement_must_be_of_this_batch(body: bytes, fits: bool) -> None:
    sheet = BatchSheet("b")
    sheet.add(request())
    if fits:
        assert read_batch_ack(answer(body), "s", sheet).seq == 9
    else:
        with pytest.raises(InvalidResponse):
            read_batch_ack(answer(body), "s", sheet)


def test_a_sequence_below_the_count_cannot_be() -> None:
    sheet = BatchSheet("b")
    sheet.add(request())
    sheet.add(request())
    with pytest.raises(InvalidResponse, match="sequence 1"):
        read_batch_ack(answer(b'{"stream":"S","seq":1,"batch":"b","count":2}'), "s", sheet)


@pytest.mark.parametrize(
    ("headers", "number"),
    [
        ([], 0),
        ([("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "3")], 0),
        ([("Nats-Batch-Id", "c"), ("Nats-Batch-Sequence", "3"), ("Nats-Batch-Commit", "1")], 0),
        ([("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "3"), ("Nats-Batch-Commit", "1")], 3),
        ([("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "x"), ("Nats-Batch-Commit", "1")], 0),
        ([("Nats-Batch-Id", "b"), ("Nats-Batch-Commit", "1")], 0),
    ],
)
def test_last_message_of_a_batch_is_recognised(headers: list[tuple[str, str]], number: int) -> None:
    assert commit_seq(Headers(headers), "b") == number


SINCE = Timestamp.parse("2026-01-01T00:00:10Z")
BEFORE = Timestamp.parse("2026-01-01T00:00:09Z")
AFTER = Timestamp.parse("2026-01-01T00:00:11Z")


@pytest.mark.parametrize(
    ("state", "replicas", "doubt"),
    [
        ({"last_ts": BEFORE, "first_ts": BEFORE, "messages": 3}, None, ""),
        ({"last_ts": BEFORE, "first_ts": BEFORE, "messages": 3}, 3, "replicas"),
        ({"last_ts": BEFORE, "messages": 0, "first_seq": 9}, 1, ""),
        ({"last_ts": AFTER, "first_ts": BEFORE, "messages": 3}, 1, ""),
        ({"last_ts": AFTER, "first_ts": BEFORE, "messages": 3, "first_seq": 5}, 1, ""),
        ({"last_ts": AFTER, "first_ts": AFTER, "messages": 3, "first_seq": 5}, 1, "removed"),
        ({"last_ts": AFTER, "first_ts": AFTER, "messages": 3, "first_seq": 1}, 1, ""),
        ({"last_ts": AFTER, "first_ts": BEFORE, "messages": 3, "num_deleted": 1}, 1, "removed"),
        ({"last_ts": AFTER, "messages": 0, "first_seq": 9}, 1, "removed"),
        ({"last_ts": None, "messages": 3, "first_seq": 9}, 1, "removed"),
    ],
)
def test_what_the_stream_does_not_hold_was_not_stored_or_removed(
    state: dict[str, Any], replicas: int | None, doubt: str
) -> None:
    given = {"messages": 0, "bytes": 0, "first_seq": 1, "last_seq": 9, "consumer_count": 0}
    info = StreamInfo(
        config=StreamConfig(name="S", num_replicas=replicas),
        created=BEFORE,
        state=StreamState(**(given | state)),
    )
    found = doubt_of_absence(info, SINCE)
    assert (doubt in found) if doubt else found == ""


def test_error_of_a_batch_keeps_its_attributes() -> None:
    for kind in (AtomicBatchFailed, AtomicBatchUnknown):
        error = kind("text", AtomicOutcome.UNKNOWN, "because")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert (str(again), again.outcome, again.reason) == ("text", error.outcome, "because")


def test_an_id_that_the_server_would_change_is_refused() -> None:
    sheet = BatchSheet("b")
    for msg_id in (" a", "a ", " "):
        with pytest.raises(BadArgument, match="blank"):
            sheet.add(PublishRequest("a", msg_id=msg_id))
    assert sheet.count == 0
