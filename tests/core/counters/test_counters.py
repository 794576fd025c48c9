"""Numbers of any size, and counters in stored messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.counters.counters import (
    Counter,
    check_counters,
    counter_of,
    from_decimal,
    to_decimal,
)
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import BadArgument, InvalidResponse
from twinstream.models import StreamConfig, Timestamp
from twinstream.records.headers import Headers

NOW = Timestamp.parse("2026-01-01T00:00:00Z")


@given(st.integers())
def test_small_numbers_are_written_with_their_sign(number: int) -> None:
    assert to_decimal(number) == f"{number:+d}"
    assert from_decimal(f"{number:+d}") == from_decimal(str(number)) == number


@given(st.integers(3900, 12_500), st.integers(-(10**30), 10**30), st.sampled_from((1, -1)))
def test_numbers_beyond_what_python_reads_at_once(size: int, end: int, sign: int) -> None:
    number = sign * (10**size + end)
    text = to_decimal(number)
    assert from_decimal(text) == number
    assert len(text) in {size + 1, size + 2}


@pytest.mark.parametrize("text", ["", "+", "-", "1.0", "0x1", "+-1", " 1", "1_0", "٣"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="decimal"):
        from_decimal(text)


@pytest.mark.parametrize("number", [1.0, "1", True, None])
def test_only_whole_numbers_are_added(number: Any) -> None:
    with pytest.raises(BadArgument, match="must be an int"):
        to_decimal(number)


def message(data: bytes, *headers: tuple[str, str]) -> StreamMessage:
    return StreamMessage(
        stream_name="S", subject="s", seq=7, time=NOW, data=data, headers=Headers(headers)
    )


def test_a_counter_is_read() -> None:
    plain = counter_of(message(b'{"val":"-12"}', ("Nats-Incr", "+3")))
    assert plain == Counter(subject="s", value=-12, delta=3, sources={}, seq=7, time=NOW)
    sources = ("Nats-Counter-Sources", '{"A":{"a":"1","b":"-2"},"B":{}}')
    sourced = counter_of(message(b'{"val":"5","new":1}', sources))
    assert (sourced.value, sourced.delta) == (5, 0)
    assert sourced.sources == {"A": {"a": 1, "b": -2}, "B": {}}


@pytest.mark.parametrize(
    ("data", "header", "text"),
    [
        (b"", "", "not a counter"),
        (b"[]", "", "not a JSON object"),
        (b"{}", "", "None"),
        (b'{"val":1}', "", "its value is 1"),
        (b'{"val":"x"}', "", "decimal"),
        (b'{"val":"1"}', "[]", "JSON object"),
        (b'{"val":"1"}', '{"A":1}', "source A"),
        (b'{"val":"1"}', '{"A":{"a":1}}', "its value is 1"),
    ],
)
def test_what_is_no_counter(data: bytes, header: str, text: str) -> None:
    headers = [("Nats-Counter-Sources", header)] if header else []
    with pytest.raises(InvalidResponse, match=f"S: message 7 on s .*{text}"):
        counter_of(message(data, *headers))


def test_a_stream_must_count() -> None:
    check_counters(StreamConfig(name="S", allow_msg_counter=True))
    for config in (StreamConfig(name="S"), StreamConfig(name="S", allow_msg_counter=False)):
        with pytest.raises(BadArgument, match="stream S has no counters"):
            check_counters(config)
