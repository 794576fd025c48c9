"""Durations and sizes with units: their notation, and YAML files with them."""

from __future__ import annotations

import jsonschema
import pytest
import yaml

from twinstream.models import json_schema, load_configs
from twinstream.models.units import parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604800), ("1w", 604800), ("1d3h5m2s", 97502), ("1h30m", 5400), ("250ms", 0.25)],
)
def test_durations_have_units_up_to_weeks(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds * 1_000_000_000


@pytest.mark.parametrize("text", ["", "7", "d", "1.5d", "7 days", "1y", "1e3s", "٣d"])
def test_other_text_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("512", 512),
        ("1k", 1024),
        ("1KB", 1024),
        ("1KiB", 1024),
        ("64 kb", 65536),
        ("1.5M", 1572864),
        ("2g", 2 << 30),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes_have_units_that_are_powers_of_1024(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "-1", "KB", "1X", "1KBB", "1 0", "1e3", "٣KB"])
def test_other_text_is_no_size(text: str) -> None:
    assert parse_size(text) is None


YAML = """\
streams:
- name: S
  subjects: [s.>]
  max_age: 7d
  duplicate_window: 90s
  max_bytes: 1GB
  max_msg_size: 64KB
  consumer_limits: {inactive_threshold: 1h}
consumers:
- stream_name: S
  config: {durable_name: C, ack_policy: explicit, ack_wait: 1m, backoff: [1s, 1m], max_deliver: 3}
key_values:
- {bucket: K, ttl: 30d, max_value_size: 1MB}
object_stores:
- {bucket: O, ttl: 2w, max_bytes: 10GB}
"""


def test_yaml_files_may_have_units() -> None:
    found = load_configs("x.yaml", text=YAML.encode())
    assert found.errors == []
    stream, consumer, bucket, store = (one.members for one in found.configs)
    assert stream["max_age"] == 604_800_000_000_000
    assert (stream["max_bytes"], stream["max_msg_size"]) == (1 << 30, 1 << 16)
    assert stream["consumer_limits"] == {"inactive_threshold": 3_600_000_000_000}
    assert consumer["backoff"] == [1_000_000_000, 60_000_000_000]
    assert (bucket["ttl"], bucket["max_value_size"]) == (2_592_000_000_000_000, 1 << 20)
    assert store["max_bytes"] == 10 << 30
    jsonschema.Draft202012Validator(json_schema()).validate(yaml.safe_load(YAML))


def test_numbers_of_other_things_have_no_units() -> None:
    text = "name: S\nsubjects: [s]\nmax_msgs: 1KB\nmax_age: 1KB\nmax_bytes: 1h\n"
    paths = [one.problem.path for one in load_configs("x.yaml", text=text.encode()).problems]
    assert paths == ["max_msgs", "max_age", "max_bytes"]
    validator = jsonschema.Draft202012Validator(json_schema())
    assert not validator.is_valid({"streams": [{"name": "S", "max_age": "1KB"}]})


def test_json_files_have_numbers_as_requests() -> None:
    text = b'{"name": "S", "subjects": ["s"], "max_age": "7d"}'
    (fault,) = load_configs("x.json", text=text).problems
    assert fault.problem.err_code == 10025
    assert fault.problem.hint == "Write 604800000000000, which is 168h."
    assert not jsonschema.Draft202012Validator(json_schema("StreamConfig")).is_valid(
        {"name": "S", "max_age": "7d"}
    )
