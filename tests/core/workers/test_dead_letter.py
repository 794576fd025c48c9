"""Dead letters: the advisories that lead to one, its subject, and its contents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve as changed

from twinstream.core.publish.request import publish_headers
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.subjects import check_subject
from twinstream.core.workers.dead_letter import (
    DeadLetter,
    Failure,
    Names,
    Part,
    Skip,
    check_complete,
    foreign_names,
    is_copy,
    is_later_message,
    is_letter_of,
    letter_of_failure,
    read_failure,
    read_letter,
    replay_request,
    second_subject,
    stored_reason,
    too_large,
)
from twinstream.errors import BadArgument, api_error
from twinstream.models import Timestamp, evolve
from twinstream.records.headers import Headers

NAMES = Names.of("S", None, None, None, None)
AT = Timestamp.parse("2026-01-02T03:04:05.123456789Z")
SECOND = 1_000_000_000
FAILURE = Failure(
    stream="S", consumer="c", stream_seq=7, deliveries=3, cause="terminated",
    reason="bad\r\nthing", time=AT, advisory="ID",
)  # fmt: skip
ORIGINAL = StreamMessage(
    stream_name="S", subject="s.a", seq=7, time=AT, data=b"body",
    headers=Headers([("A", "1"), ("A", "2"), ("Nats-TTL", "5"), ("Grüße", "ü")]),
)  # fmt: skip


def advisory(kind: str, **members: Any) -> bytes:
    common = {
        "type": f"io.nats.jetstream.advisory.v1.{kind}",
        "id": "ID",
        "timestamp": "2026-01-02T03:04:05.123456789Z",
        "stream": "S",
        "consumer": "c",
        "stream_seq": 7,
        "deliveries": 3,
    }
    return json.dumps(common | members).encode()


TERMINATED = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.c"
DELIVERED = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.c"


def found_in(data: bytes, subject: str = TERMINATED, names: Names = NAMES) -> Failure | Skip:
    return read_failure(names, subject, data)


def later(ns: int) -> Timestamp:
    return Timestamp.from_ns(AT.ns + ns)


def test_the_two_ways_to_give_a_message_up() -> None:
    given_up = found_in(advisory("max_deliver"), DELIVERED)
    assert given_up == evolve_failure(
        cause="max_deliver", reason="delivered 3 times without an acknowledgement"
    )
    terminated = found_in(advisory("terminated", consumer_seq=9, reason="no such tea"))
    assert terminated == evolve_failure(reason="no such tea")
    assert found_in(advisory("terminated", consumer_seq=9)) == evolve_failure(reason="")


def evolve_failure(**changes: Any) -> Failure:
    return changed(FAILURE, **changes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (advisory("terminated", consumer_seq=9, reason="Unacknowledged message was deleted"),
         "the server removed message 7"),
        (advisory("terminated", consumer_seq=9, reason="Message deleted by stream limits"),
         "the server removed message 7"),
        (advisory("terminated", consumer_seq=9, reason=stored_reason("x")), "by its worker"),
        (advisory("nak", consumer_seq=9), "not a failure: Nak"),
        (b"junk", "not an advisory"),
        (b'{"type":"io.nats.jetstream.advisory.v1.max_deliver"}', "not an advisory"),
    ],
)  # fmt: skip
def test_advisories_that_make_no_letter(data: bytes, said: str) -> None:
    found = found_in(data)
    assert isinstance(found, Skip)
    assert said in found.reason
    assert found.is_odd == (said.startswith("not a"))


@pytest.mark.parametrize(
    ("subject", "members", "said"),
    [
        (TERMINATED, {"stream": "SECRET"}, "MSG_TERMINATED.SECRET.c', not on"),
        (TERMINATED, {"consumer": "d"}, "MSG_TERMINATED.S.d', not on"),
        (DELIVERED, {}, "MSG_TERMINATED.S.c', not on"),
        (f"x.{TERMINATED[4:]}", {}, "published on 'x."),
        (TERMINATED.replace(".S.", ".T."), {"stream": "T"}, "about consumer 'c' of stream 'T'"),
        (TERMINATED, {"id": "a\r\nb"}, r"the id 'a\r\nb' is not"),
        (TERMINATED, {"id": "\ud800"}, "the id "),
        (TERMINATED, {"id": "x" * 70_000}, "the id "),
        (TERMINATED, {"id": ""}, "the id ''"),
        (TERMINATED, {"stream_seq": 0}, "out of range"),
        (TERMINATED, {"stream_seq": 2**63}, "out of range"),
        (TERMINATED, {"consumer": "a\r\nb"}, "not on"),
        (TERMINATED[:-1] + "\ud800", {"consumer": "\ud800"}, "not valid Unicode"),
        (TERMINATED[:-1] + "\0", {"consumer": "\0"}, "contains NUL"),
        (TERMINATED[:-1] + "y" * 300, {"consumer": "y" * 300}, "longer than 255"),
    ],
)
def test_forged_advisories_make_no_letter(subject: str, members: dict[str, Any], said: str) -> None:
    found = found_in(advisory("terminated", consumer_seq=9, **members), subject)
    assert isinstance(found, Skip)
    assert found.is_odd
    assert said in found.reason
    assert found.reason.isprintable()
    assert len(found.reason) < 1000


def test_an_advisory_about_another_consumer_makes_no_letter() -> None:
    data = advisory("terminated", consumer_seq=9)
    one, other = (Names.of("S", name, None, None, None) for name in ("c", "d"))
    assert isinstance(found_in(data, names=one), Failure)
    assert isinstance(found_in(data, names=other), Skip)


_ODD_VALUES = [
    '""', '"a\\r\\nb"', '"\\ud800"', '"\\u0000"', '"\\u202e"', '" "', '"a.b"', '"*"', '">"',
    "null", "true", "5", "-1", "0", "1.5", "1e400", "9" * 400, "9" * 5000, "NaN", "Infinity",
    "18446744073709551616", "[]", "{}", "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000,
    '"9999-12-31T23:59:59.999999999Z"', '"9999-12-31T23:59:59-23:59"', '"0000-01-01T00:00:00Z"',
    f'"{"x" * 70_000}"',
]  # fmt: skip


@pytest.mark.parametrize("member", ["type", "id", "timestamp", "stream", "consumer",
    "consumer_seq", "stream_seq", "deliveries", "reason", "domain"])  # fmt: skip
def test_any_value_of_a_member_makes_a_letter_or_is_skipped(member: str) -> None:
    """No value ends the collector: what is no `Skip` is a letter that can be published."""
    members = json.loads(advisory("terminated", consumer_seq=9, reason="r"))
    for value in _ODD_VALUES:
        text = json.dumps(members | {member: "HERE"}).replace('"HERE"', value)
        found = found_in(text.encode("utf-8", "surrogatepass"))
        if isinstance(found, Failure):
            is_later_message(found, AT)
            for created in (None, AT):
                request = letter_of_failure(NAMES, found, created, ORIGINAL)
                check_subject(request.subject)
                publish_headers(request)


@pytest.mark.parametrize("subject", ["s.\udcff", "s.\0"])
def test_a_letter_omits_a_subject_that_no_header_can_have(subject: str) -> None:
    request = letter_of_failure(NAMES, FAILURE, AT, evolve_message(subject=subject))
    letter = read_letter(stored(request))
    assert (letter.subject, letter.data, letter.missing) == ("", b"body", "")


def test_names_of_a_stream_and_of_a_consumer() -> None:
    assert (NAMES.letters, NAMES.failures, NAMES.prefix) == ("S-dead", "S-failures", "dead.S")
    assert NAMES.advisories() == [
        "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.*",
        "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.*",
    ]
    one = Names.of("S", "c", None, None, None)
    assert (one.letters, one.failures, one.prefix) == ("S-c-dead", "S-c-failures", "dead.S-c")
    assert one.advisories()[0].endswith(".S.c")
    assert one.keeper_config().durable_name == "dead-letters-S-c"
    given = Names.of("S", "c", "L", "F", "p.q")
    assert (given.letters, given.failures, given.prefix) == ("L", "F", "p.q")
    assert given.failures_config(3).num_replicas == given.letters_config(3).num_replicas == 3
    for bad in (("a.b", None, None), ("S", "a b", None), ("S", None, "p q")):
        with pytest.raises(BadArgument):
            Names.of(bad[0], bad[1], None, None, bad[2])


def test_a_stream_of_letters_must_refuse_a_second_one() -> None:
    good = NAMES.letters_config(1)
    NAMES.check_letters(good)
    for change in (
        {"discard": "old"},
        {"max_msgs_per_subject": -1},
        {"discard_new_per_subject": None},
        {"subjects": None},
    ):
        with pytest.raises(BadArgument, match="S-dead"):
            NAMES.check_letters(evolve(good, **change))
    NAMES.check_letters(evolve(good, subjects=["dead.S.>", "x"]))


def test_one_failure_one_subject() -> None:
    assert NAMES.subject(FAILURE, AT) == f"dead.S.c.{AT.ns:x}.7"
    assert NAMES.subject(FAILURE, later(SECOND)) == f"dead.S.c.{AT.ns + SECOND:x}.7"
    earlier = "dead.S.c.earlier-ID.7"
    assert NAMES.subject(FAILURE, later(SECOND + 1)) == earlier
    assert NAMES.subject(FAILURE, None) == earlier
    assert is_later_message(FAILURE, later(SECOND + 1))
    assert not is_later_message(FAILURE, later(SECOND))


def stored(request: Any) -> StreamMessage:
    """Return a request as the stream of letters would store it."""
    headers = Headers.parse(encode_headers(request.headers))
    return StreamMessage(
        stream_name="S-dead",
        subject=request.subject,
        seq=1,
        time=AT,
        data=request.data,
        headers=headers,
    )


def test_letter_contains_its_whole_message() -> None:
    letter = read_letter(stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL)))
    assert letter == DeadLetter(
        seq=1, stream_name="S", consumer_name="c", stream_seq=7, subject="s.a", stored_at=AT,
        data=b"body",
        headers=ORIGINAL.headers, cause="terminated", reason="bad thing", num_delivered=3,
        failed_at=AT, missing="", place=f"dead.S.c.{AT.ns:x}.7",
    )  # fmt: skip
    assert letter.failed_at.ns == AT.ns
    assert letter_of_failure(NAMES, FAILURE, AT, ORIGINAL).msg_id == "ID"


def test_letter_without_its_message_explains_why() -> None:
    word = letter_of_failure(NAMES, evolve_failure(advisory=""), AT, None, "it\nis gone")
    assert word.msg_id is None
    letter = read_letter(stored(word))
    assert (letter.missing, letter.data, letter.subject, letter.stored_at) == (
        "it is gone",
        b"",
        "",
        None,
    )


@pytest.mark.parametrize(
    ("without", "data", "headers"),
    [
        ({"data"}, b"", ORIGINAL.headers),
        ({"headers"}, b"body", Headers()),
        ({"data", "headers"}, b"", Headers()),
    ],
)
def test_letter_contains_what_fits(without: set[Part], data: bytes, headers: Headers) -> None:
    request = letter_of_failure(NAMES, FAILURE, AT, ORIGINAL, "too large", frozenset(without))
    letter = read_letter(stored(request))
    assert (letter.data, letter.headers, letter.subject) == (data, headers, "s.a")
    with pytest.raises(BadArgument, match="too large"):
        check_complete(letter)


def test_what_is_left_out_of_a_letter_that_is_too_large() -> None:
    message = api_error({"err_code": 10054, "description": "message size exceeds"})
    headers = api_error({"err_code": 10097, "description": "header size exceeds"})
    other = api_error({"err_code": 10077, "description": "maximum bytes exceeded"})
    client = BadArgument("more than max_payload")
    nothing, data = frozenset[Part](), frozenset[Part]({"data"})
    assert too_large(message, nothing) == too_large(client, nothing) == "data"
    assert too_large(headers, nothing) == too_large(headers, data) == "headers"
    assert too_large(message, data) == too_large(client, data) == "headers"
    assert too_large(client, frozenset[Part]({"data", "headers"})) is None
    assert too_large(headers, frozenset[Part]({"headers"})) is None
    assert too_large(other, nothing) is None


def test_headers_take_no_more_room_than_they_need() -> None:
    original = evolve_message(headers=Headers([("A", "ü" * 1000)]))
    request = letter_of_failure(NAMES, FAILURE, AT, original)
    assert len(encode_headers(request.headers)) < 2500
    assert read_letter(stored(request)).headers == original.headers
    raw = evolve_message(headers=Headers.parse(b"NATS/1.0\r\nA: caf\xe9 \xc3\xa9\r\n\r\n"))
    assert read_letter(stored(letter_of_failure(NAMES, FAILURE, AT, raw))).headers == raw.headers


@pytest.mark.parametrize("text", ["bad \0 \udc80 \ud800", "bad\r\n \x85 ?\t?"])
def test_a_reason_may_hold_anything(text: str) -> None:
    request = letter_of_failure(NAMES, evolve_failure(reason=text), AT, ORIGINAL, gone=text)
    letter = read_letter(stored(request))
    assert (letter.reason, letter.missing) == ("bad ? ?", "bad ? ?")
    assert stored_reason(text).endswith(": bad ? ?")


def test_a_replay_leaves_conditions_behind() -> None:
    letter = read_letter(stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL)))
    request = replay_request(letter, "s.b", "S")
    assert (request.subject, request.data, request.expected_stream) == ("s.b", b"body", "S")
    assert request.headers == {"A": ["1", "2"], "Grüße": ["ü"]}
    assert request.msg_id is not None
    assert request.msg_id.startswith(f"replay of dead.S.c.{AT.ns:x}.7 1 ")
    assert replay_request(letter, "s.b", None).msg_id == request.msg_id
    other = replay_request(changed(letter, failed_at=later(1)), "s.b", "S")
    assert other.msg_id != request.msg_id
    assert replay_request(letter, "elsewhere", None).expected_stream is None
    bare = letter_of_failure(NAMES, FAILURE, AT, evolve_message(headers=Headers()))
    plain = read_letter(stored(bare))
    assert replay_request(plain, "s.a", None).headers is None


def evolve_message(**changes: Any) -> StreamMessage:
    return changed(ORIGINAL, **changes)


def test_other_messages_are_no_letters() -> None:
    for headers in ({}, {"Dead-Stream": "S", "Dead-Consumer": "c", "Dead-Sequence": "x"}):
        message = StreamMessage(
            stream_name="S-dead",
            subject="x",
            seq=9,
            time=AT,
            data=b"",
            headers=Headers(headers.items()),
        )
        with pytest.raises(BadArgument, match="message 9 of S-dead is not a dead letter"):
            read_letter(message)


@pytest.mark.parametrize("text", ["5", "{}", '["ab"]', '[["a",1]]', '[["a"]]', "[" * 100_000])
def test_a_letter_with_headers_of_another_form_is_none(text: str) -> None:
    written = stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL))
    pairs = [
        (name, text if name == "Dead-Headers" else value) for name, value in written.headers.pairs
    ]
    assert ("Dead-Headers", text) in pairs
    with pytest.raises(BadArgument, match="not a dead letter"):
        read_letter(changed(written, headers=Headers(pairs)))


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("Dead-Sequence", "0"),
        ("Dead-Sequence", "-1"),
        ("Dead-Sequence", "\u0663"),
        ("Dead-Sequence", "1_0"),
        ("Dead-Sequence", "9" * 19),
        ("Dead-Sequence", "9" * 5000),
        ("Dead-Deliveries", "-1"),
        ("Dead-Failed-At", "yesterday"),
        ("Dead-Failed-At", "\x1b[2J"),
        ("Dead-Stored-At", "9999-99-99T00:00:00Z"),
    ],
)
def test_a_letter_with_an_impossible_value_is_none(header: str, text: str) -> None:
    written = stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL))
    pairs = [(name, text if name == header else value) for name, value in written.headers.pairs]
    with pytest.raises(BadArgument, match="not a dead letter") as caught:
        read_letter(changed(written, headers=Headers(pairs)))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_stored_message_is_the_letter_of_one_failure() -> None:
    request = letter_of_failure(NAMES, FAILURE, AT, ORIGINAL)
    there = stored(request)
    assert is_letter_of(there, FAILURE, ORIGINAL)
    assert is_letter_of(there, FAILURE, None)
    assert not is_letter_of(there, FAILURE, evolve_message(data=b"other"))
    for change in ({"stream": "T"}, {"consumer": "d"}, {"stream_seq": 8}):
        assert not is_letter_of(there, evolve_failure(**change), None)
    assert not is_letter_of(changed(there, headers=Headers()), FAILURE, ORIGINAL)
    odd = evolve_message(subject="s.\0")
    assert is_letter_of(stored(letter_of_failure(NAMES, FAILURE, AT, odd)), FAILURE, odd)
    assert second_subject(request, FAILURE, None) == f"{request.subject}.ID"
    assert second_subject(request, FAILURE, AT) == f"{request.subject}.{AT.ns:x}"


def test_a_letter_is_a_copy_of_its_original_only() -> None:
    letter = read_letter(stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL)))
    assert is_copy(letter, ORIGINAL)
    # A delivery may add headers of the server.
    pinned = [*ORIGINAL.headers.pairs, ("Nats-Pin-Id", "x")]
    assert is_copy(letter, evolve_message(headers=Headers(pinned)))
    for change in (
        {"subject": "s.b"},
        {"time": later(1)},
        {"data": b"other"},
        {"headers": Headers([("A", "1")])},
    ):
        assert not is_copy(letter, evolve_message(**change))
    part = read_letter(
        stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL, "large", frozenset({"data"})))
    )
    assert is_copy(part, ORIGINAL)
    assert not is_copy(part, evolve_message(headers=Headers()))
    bare = letter_of_failure(NAMES, FAILURE, AT, ORIGINAL, "large", frozenset({"headers"}))
    assert is_copy(read_letter(stored(bare)), ORIGINAL)
    assert not is_copy(read_letter(stored(bare)), evolve_message(data=b""))


def test_names_in_a_letter_are_compared_with_those_of_the_caller() -> None:
    letter = read_letter(stored(letter_of_failure(NAMES, FAILURE, AT, ORIGINAL)))
    assert foreign_names(NAMES, letter) == ""
    assert foreign_names(Names.of("S", "c", None, None, None), letter) == ""
    assert foreign_names(Names.of("S", "d", None, None, None), letter) == "consumer 'c'"
    assert foreign_names(Names.of("T", None, None, None, None), letter) == "stream 'S'"
