"""The tree of errors, and the class for each error code of the server."""

from __future__ import annotations

import copy
import json
import pickle
import re
import traceback

import pytest

from twinstream import errors
from twinstream.core.consume.pull_error import of_consumer
from twinstream.core.wire.response import read_answer
from twinstream.errors import (
    JetStreamError,
    KeyNotFound,
    PullRefused,
    api_error,
    bucket,
    groups,
    kv,
    object_store,
)
from twinstream.models import ConfigError, DecodeError, Problem
from twinstream.models.error_codes import CLASSES


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (10059, "StreamNotFound"),
        (10014, "ConsumerNotFound"),
        (10149, "ConsumerNotFound"),
        (10037, "MessageNotFound"),
        (10058, "StreamExists"),
        (10148, "ConsumerExists"),
        (10065, "SubjectOverlap"),
        (10052, "InvalidConfig"),
        (10071, "WrongLastSequence"),
        (10164, "WrongLastSequence"),
        (10070, "WrongLastMessageId"),
        (10060, "WrongStream"),
        (10077, "StoreFailed"),
        (10039, "JetStreamNotEnabled"),
        (10076, "JetStreamNotEnabled"),
        (10999, "JetStreamError"),
    ],
)
def test_an_error_in_an_answer_is_raised_as_the_class_of_its_code(code: int, name: str) -> None:
    body = {"error": {"code": 400, "err_code": code, "description": "words of the server"}}
    with pytest.raises(JetStreamError) as caught:
        read_answer(json.dumps(body).encode(), "$JS.API.X")
    error = caught.value
    assert type(error) is getattr(errors, name)
    assert (error.code, error.err_code) == (400, code)
    # Advice may follow, such as the call that opens what exists.
    text = str(error).partition("; ")[0]
    assert text == f"words of the server (err_code {code}) [$JS.API.X]"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.err_code) == (type(error), str(error), code)


@pytest.mark.parametrize("name", sorted(set(CLASSES.values())))
def test_the_codes_of_a_class_are_in_its_docstring(name: str) -> None:
    codes = {code for code, each in CLASSES.items() if each == name}
    text = getattr(errors, name).__doc__ or ""
    assert {int(code) for code in re.findall(r"\b10\d{3}\b", text)} == codes


# What errors carry.
RECORDS = ("Difference", "GuaranteeGap", "PublishFailure")
EXCEPTIONS = [
    name
    for name in errors.__all__
    if name not in RECORDS and isinstance(getattr(errors, name), type)
]


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_tracebacks_show_the_public_name(name: str) -> None:
    assert getattr(errors, name).__module__ == "twinstream.errors"


def test_what_a_stream_must_allow_first_is_in_the_text_of_the_error() -> None:
    error = api_error({"err_code": 10166, "description": "per-message TTL is disabled"})
    assert error.description == "per-message TTL is disabled"
    assert str(error) == (
        "per-message TTL is disabled (err_code 10166); set allow_msg_ttl of the stream, which"
        " cannot be undone"
    )
    assert str(api_error({"err_code": 10059})).endswith("(err_code 10059)")
    assert str(copy.copy(error)) == str(pickle.loads(pickle.dumps(error))) == str(error)


def test_full_subject_is_distinguished_from_a_full_stream() -> None:
    full = {"err_code": 10077, "description": "maximum messages per subject exceeded"}
    assert type(api_error(full)) is errors.MessageExists
    assert isinstance(api_error(full), errors.StoreFailed)


def test_an_error_without_members_gives_no_reason() -> None:
    error = api_error({"code": "x"})
    assert (error.code, error.err_code, str(error)) == (
        0,
        0,
        "JetStream gave no reason",
    )


def test_a_refused_pull_of_a_consumer_pickles_with_its_name() -> None:
    error = of_consumer(PullRefused("max_batch", 500, 100, "Exceeded"), "S", "c")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert str(again).startswith("S/c: the pull asked for 500, ")


def test_a_refused_pull_pickles() -> None:
    error = PullRefused("max_batch", 3, 2, "409 Exceeded MaxRequestBatch of 2")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.limit, again.asked, again.allowed) == ("max_batch", 3, 2)


def test_every_error_is_in_the_tree_of_the_modules_text() -> None:
    trees = "".join(str(each.__doc__) for each in (errors, bucket, kv, object_store, groups))
    for name in EXCEPTIONS:
        assert issubclass(getattr(errors, name), errors.TwinstreamError)
        assert re.search(rf"\b{name}\b", trees)


@pytest.mark.parametrize(
    ("subject", "named"),
    [
        ("$JS.API.STREAM.INFO.ORDERS", "stream ORDERS"),
        ("$JS.API.STREAM.MSG.GET.ORDERS", "stream ORDERS"),
        ("$JS.hub.API.STREAM.PEER.REMOVE.API", "stream API"),
        ("$JS.API.DIRECT.GET.ORDERS.orders.new", "stream ORDERS"),
        ("$JS.API.CONSUMER.INFO.ORDERS.worker", "consumer worker of stream ORDERS"),
        ("$JS.API.CONSUMER.CREATE.ORDERS.worker.orders.new", "consumer worker of stream ORDERS"),
        ("$JS.API.CONSUMER.DURABLE.CREATE.ORDERS.worker", "consumer worker of stream ORDERS"),
        ("$JS.API.CONSUMER.LIST.ORDERS", "stream ORDERS"),
        ("$JS.API.STREAM.NAMES", "$JS.API.STREAM.NAMES"),
        ("$JS.API.INFO", "$JS.API.INFO"),
        ("JS.app.API.STREAM.INFO.ORDERS", "JS.app.API.STREAM.INFO.ORDERS"),
        ("orders.API.STREAM.INFO.X", "orders.API.STREAM.INFO.X"),
    ],
)
def test_an_error_names_the_stream_or_consumer(subject: str, named: str) -> None:
    error = api_error({"err_code": 10059, "description": "not found"}, subject=subject)
    assert str(error) == f"not found (err_code 10059) [{named}]"
    assert error.subject == subject


ODD = "\x1b[2J\x9b31m\x7f\u202e\r\nTraceback: forged\ttab \udcff"


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "error",
    [
        api_error({"description": ODD, "code": 500, "err_code": 10999}, subject=f"$JS.API.{ODD}"),
        api_error({"description": ODD, "code": 503, "err_code": 10158}),
        errors.ConnectionLost(ODD),
        errors.BadPayload(ODD),
        errors.PullRefused("max_batch", 2, 1, ODD),
        DecodeError("StreamInfo", [(ODD, ODD)]),
        ConfigError([Problem(ODD, None, "S", ODD)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_text_of_a_stranger_controls_no_terminal_and_forges_no_line(error: Exception) -> None:
    lines = len(shown(error).splitlines())
    error.add_note(f"note {ODD}")
    for each in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        text = shown(each)
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "\\u001b[2J" in text
        assert len(text.splitlines()) == lines + 1
    # The attributes are exact, for programs that compare them.
    if isinstance(error, JetStreamError):
        assert error.description == ODD


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert str(errors.InvalidResponse("Größe 大きさ 😀")) == "Größe 大きさ 😀"


def test_a_restored_stream_that_exists_is_not_to_be_opened() -> None:
    error = api_error({"code": 400, "err_code": 10130, "description": "in use"})
    assert type(error) is errors.StreamExists
    assert str(error).endswith(
        "; a backup is restored under its own name only: delete the stream first"
    )


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_missing_key_is_a_key_error_with_a_plain_text(protocol: int) -> None:
    error = KeyNotFound("prices", "tea\n")
    assert isinstance(error, KeyError)
    text = "bucket prices has no key 'tea\\n'"
    again = pickle.loads(pickle.dumps(error, protocol))
    for each in (error, again, copy.copy(error)):
        assert (str(each), each.bucket, each.key) == (text, "prices", "tea\n")
        shown = "".join(traceback.format_exception_only(each))
        assert shown == f"twinstream.errors.KeyNotFound: {text}\n"
