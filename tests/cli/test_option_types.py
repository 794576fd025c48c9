"""Durations and sizes on the command line."""

from __future__ import annotations

import json
from datetime import timedelta

import click
import pytest

import js_sync
from tests.cli.output import Run, json_lines
from twinstream.cli.option_types import Bytes, Life, Seconds, Span, WholeSeconds


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Seconds(), "1.5", 1.5),
        (Seconds(), "1m30s", 90.0),
        (Seconds(min=0), "0", 0.0),
        (Span(), "7d", timedelta(days=7)),
        (Span(zero=True), "0s", timedelta(0)),
        (Bytes(), "64KB", 65536),
        (Bytes(min=-1), -1, -1),
        (WholeSeconds(min=2), "2m", 120),
        (Life(), "1h", 3600),
        (Life(), "5", 5),
        (Life(), "never", "never"),
    ],
)
def test_values_are_read(kind: click.types.ParamType, text: object, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Seconds(), "soon", "is not a duration, such as"),
        (Seconds(min=1), "500ms", "0.5 is not in the range"),
        (Seconds(), "nan", "is not a finite number"),
        (Span(), "0s", "is not a duration"),
        (Span(), "90", "is not a duration"),
        (Bytes(), "much", "is not a size, such as"),
        (Bytes(), "0", "at least 1 bytes"),
        (Bytes(1024, 2048), "1MB", "at most 2048 bytes"),
        (Life(), "1500ms", "whole seconds"),
        (Life(), "0s", "0 is not in the range"),
    ],
)
def test_other_text_is_refused(kind: click.types.ParamType, text: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        kind.convert(text, None, None)


def test_units_reach_the_server(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    settings = ("--ttl", "7d", "--max-value-size", "64KB", "--max-bucket-size", "1GB")
    (made,) = json_lines(run("kv", "add", stream, *settings, "--json"))
    config = jet.get_stream(f"KV_{stream}").cached_info.config
    assert (config.max_age, config.max_msg_size, config.max_bytes) == (
        timedelta(days=7),
        65536,
        1 << 30,
    )
    assert made["config"]["ttl"] == 7 * 86_400 * 10**9
    unlimited = run("kv", "edit", stream, "--ttl", "0s", "--max-value-size", "-1")
    assert "max_value_size\tunlimited" in unlimited.stdout
    found = json.loads(run("size", "--payload", "1KB", "--max-bytes", "1MB", "--json").stdout)
    assert found["message"] > 1024
