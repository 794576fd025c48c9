"""For any input, the validation returns problems with locations, and never raises."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.models import (
    DecodeError,
    Problem,
    StreamConfig,
    decode,
    effective_stream,
    lint_consumer,
    lint_stream,
    load_configs,
    plan_consumer,
    plan_stream,
    validate_consumer,
    validate_pull,
    validate_stream,
)
from twinstream.models.files.shapes import SHAPES

HUGE = "1" * 5000
DEEP = 50_000

TEXTS: list[tuple[str | bytes, str]] = [
    ("{", "line 1, column 2: expected a key"),
    ("{\n 'name': 1}", "line 2, column 2: expected a key in double quotes"),
    ('{"name": "S"', "line 1, column 13: expected , or }"),
    ('{"name": "S" # x\n}', "line 1, column 14: expected , or }"),
    ("[1]", "line 1, column 1: expected an object, got a list."),
    ('  "S"', "line 1, column 3: expected an object, got 'S'."),
    ("5", "line 1, column 1: expected an object, got 5."),
    ("NaN", "line 1, column 1: expected a value, got 'N'."),
    ('{"a": ' * DEEP, "line 1, column 607: nested more than 100 levels deep."),
    ('{"a": ' + "[" * DEEP, "line 1, column 107: nested more than 100 levels deep."),
    (f'{{"max_msgs": {HUGE}}}', "line 1, column 14: a number of 5000 digits is out of range."),
    (f'{{"max_msgs": -{HUGE}}}', "line 1, column 14: a number of 5001 digits is out of range."),
    (b'{"name": \xff}', "line 1, column 10: expected a value, got '\ufffd'."),
    ('{"name": "\x01"}', "line 1, column 11: the text in quotes is broken"),
    ('{"name": "\\ud8"}', "line 1, column 12: the text in quotes is broken"),
]

VALUES: list[tuple[Any, str]] = [
    ([], "expected an object, got a list."),
    (None, "expected an object, got null."),
    (5, "expected an object, got 5."),
    ({1: 2}, "there is no such setting."),
    ({None: 2}, "there is no such setting."),
    ({"name": "S", "max_age": 10**400}, "is not a whole number of nanoseconds."),
    ({"name": "S", "description": 1.5}, "expected text, got 1.5."),
    ({"name": b"S"}, "expected text, got b'S'."),
    ({"name": "S", "metadata": {"x": object}}, "expected text, got <class 'object'>."),
    ({"name": "S", "description": math.nan}, "expected text, got nan."),
]

VALIDATORS: list[Callable[[Any], list[Problem]]] = [validate_stream, validate_consumer]


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=lambda one: repr(one)[:30])
@pytest.mark.parametrize("validate", VALIDATORS)
def test_a_text_that_is_no_json_object_is_one_problem(
    validate: Callable[[Any], list[Problem]], text: str | bytes, message: str
) -> None:
    [problem] = validate(text)
    assert problem.message.startswith(message)
    assert (problem.rule, problem.err_code, problem.path) == ("R-JSON", 10025, "")


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=lambda one: repr(one)[:30])
def test_a_pull_request_that_is_broken_json_is_refused(text: str | bytes, message: str) -> None:
    found = validate_pull(text)
    if str(text).lstrip("b'").startswith("{"):
        assert [one.err_code for one in found] == [400]
        assert found[0].message.startswith(message)
    else:
        assert found == []  # for the server, what is no object is a number, or 1


@pytest.mark.parametrize(("value", "message"), VALUES, ids=lambda one: repr(one)[:30])
def test_values_that_are_no_object_are_refused(value: Any, message: str) -> None:
    found = validate_stream(value)
    assert any(message in one.message for one in found), found
    assert found[0].err_code == 10025
    assert validate_consumer(value)


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=lambda one: repr(one)[:30])
def test_all_functions_refuse_a_broken_text(text: str | bytes, message: str) -> None:
    assert lint_stream(text) == lint_consumer(text) == []
    assert plan_stream(None, text).action == plan_consumer(None, text).action == "impossible"
    with pytest.raises(DecodeError):
        decode(text, StreamConfig)
    data = text if isinstance(text, bytes) else text.encode()
    problem = load_configs("x.json", text=data).problems[0]
    assert problem.line >= 1
    assert problem.column >= 1


@pytest.mark.parametrize(
    ("days", "hint"),
    [
        ("1d", "Write 86400000000000, which is 24h."),
        ("2w", "Write 1209600000000000, which is 336h."),
        ("1d12h", "Write 129600000000000, which is 24h12h."),
        ("1.5d", ""),
        ("200000d", ""),
    ],
)
def test_days_are_expressed_in_hours(days: str, hint: str) -> None:
    (problem, *_) = validate_stream({"name": "S", "subjects": ["s"], "max_age": days})
    assert (problem.path, problem.hint) == ("max_age", hint)


def test_lone_surrogates_are_validated_like_any_text() -> None:
    lone = "\ud800"
    for member in ("name", "description", "retention"):
        assert all(isinstance(one, Problem) for one in validate_stream({"name": "S", member: lone}))
    config = {"name": "S", "subjects": [lone], "metadata": {lone: lone}}
    assert validate_stream(config) == []
    assert effective_stream(config).subjects == ["\ufffd"]
    assert isinstance(validate_consumer({"durable_name": lone, "filter_subject": lone}), list)
    assert isinstance(lint_stream({"name": lone}), list)


def test_thousands_of_digits_are_validated_like_any_number() -> None:
    consumer = {"durable_name": "C", "ack_policy": "explicit"}
    [problem] = validate_consumer({**consumer, "sample_freq": HUGE})
    assert problem.path == "sample_freq"
    assert validate_consumer({**consumer, "sample_freq": "0" * 5000 + "50"}) == []
    assert lint_consumer({**consumer, "sample_freq": HUGE})
    stream = {"name": "S", "subjects": ["a.*"]}
    # Python refuses to show it in decimal digits.
    [problem] = validate_stream({**stream, "max_msgs": 16**5000})
    assert (problem.path, "a very large number" in problem.message) == ("max_msgs", True)
    for target in (
        f"{{{{left(1,{HUGE})}}}}",
        f"{{{{wildcard({HUGE})}}}}",
        f"{{{{partition({HUGE})}}}}",
    ):
        assert validate_stream({**stream, "subject_transform": {"src": "a.*", "dest": target}})
    for target in (f"${HUGE}", f"${'0' * 5000}1"):
        fine = {"src": "a.*", "dest": target}
        assert validate_stream({**stream, "subject_transform": fine}) == []


@pytest.mark.parametrize("text", [HUGE, f"1h{HUGE}", f"{HUGE}h", f"1.{HUGE}", "--5", "+-5"])
def test_long_durations_get_no_hint_and_take_no_time(text: str) -> None:
    started = time.thread_time()
    [problem] = validate_stream({"name": "S", "max_age": text})
    assert problem.hint == ""
    assert time.thread_time() - started < 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from([*SHAPES["StreamConfig"], *SHAPES["ConsumerConfig"], "batch", "expires"])


@given(st.dictionaries(MEMBERS | st.text(), JSON, max_size=4))
def test_any_value_anywhere_is_validated_without_errors(config: dict[str, Any]) -> None:
    text = json.dumps(config)
    for validate in (*VALIDATORS, validate_pull):
        assert all(one.message for one in validate(config))
        assert all(one.message for one in validate(text))
    lint_stream(config)
    lint_consumer(config)


@given(st.binary(max_size=60))
def test_any_bytes_are_validated_without_errors(data: bytes) -> None:
    for validate in (*VALIDATORS, validate_pull):
        assert all(one.message for one in validate(data))
    for name in ("x.json", "x.yaml", "x"):
        found = load_configs(name, text=data)
        assert all(one.line >= 1 and one.column >= 1 for one in found.problems)


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ("name: ORDERS", "The text must be a JSON object; load_configs also reads YAML."),
        (b"name: ORDERS", "The text must be a JSON object; load_configs also reads YAML."),
        ('{"name": x}', ""),
        (Path("orders.yaml"), "Pass the path of a file to load_configs."),
    ],
)
def test_a_file_or_its_yaml_is_for_load_configs(config: Any, hint: str) -> None:
    for validate in (validate_stream, validate_consumer):
        [problem] = validate(config)
        assert problem.hint == hint
