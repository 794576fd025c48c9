"""Buckets in files: validated as their streams, with problems at the settings of the bucket."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.kv.config import key_value_config, stream_config
from twinstream.core.object_store.config import store_config, store_stream_config
from twinstream.models import (
    Duration,
    FileConfigs,
    KeyValueConfig,
    ObjectStoreConfig,
    StreamConfig,
    StreamSource,
    decode,
    encode,
    json_schema,
    load_configs,
)
from twinstream.models.buckets.bucket_validation import (
    BucketKind,
    bucket_problems,
    kept_members,
    stream_members,
)
from twinstream.models.files.config_files import stream_behind
from twinstream.models.files.shapes import SHAPES


def load(text: str, **options: Any) -> FileConfigs:
    return load_configs("x.yaml", text=text.encode(), **options)


def lines(text: str, **options: Any) -> list[str]:
    return [str(one) for one in load(text, **options).problems]


def one_key_value(settings: str, **options: Any) -> list[str]:
    return lines(f"key_values:\n- bucket: B\n  {settings}\n", **options)


def test_both_kinds_are_listed_next_to_streams_and_consumers() -> None:
    text = """\
streams: [{name: S, subjects: [s], max_msgs: 5}]
key_values: [{bucket: CONF, history: 5}]
object_stores: [{bucket: FILES}]
consumers: [{stream_name: KV_CONF, config: {durable_name: C, ack_policy: explicit, max_deliver: 5}}]
"""
    found = load(text)
    assert found.problems == []
    assert [(one.kind, one.name, one.stream_name) for one in found.configs] == [
        ("stream", "S", "S"),
        ("key_value", "CONF", "KV_CONF"),
        ("object_store", "FILES", "OBJ_FILES"),
        ("consumer", "C", "KV_CONF"),
    ]
    assert found.warnings == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("histroy: 5", "3:3: histroy: there is no such setting. Did you mean 'history'?"),
        ("max_age: 5", "3:3: max_age: there is no such setting. Did you mean 'ttl'?"),
        ("Bucket: C", "3:3: Bucket: there is no such setting. Did you mean 'bucket'?"),
        (
            "ttl: 7q",
            "3:8: ttl: expected a whole number of nanoseconds, got '7q'.",
        ),
        (
            "ttl: 5",
            "3:8: ttl: a ttl of 5 ns is below 100 ms. (10052)"
            " Durations are in nanoseconds; 100 ms is 100000000.",
        ),
        ("ttl: -5", "3:8: ttl: ttl is negative. (10052) Use 0 for no limit."),
        (
            "history: 65",
            "3:12: history: history must be from 1 to 64."
            " Set 1, the default, to keep only the latest value of each key.",
        ),
        (
            "limit_marker_ttl: 7",
            "3:21: limit_marker_ttl: a limit_marker_ttl of 7 ns is below one second. (10052)"
            " Durations are in nanoseconds; one second is 1000000000.",
        ),
        (
            "max_value_size: 3000000000",
            "3:19: max_value_size: 3000000000 is not a whole number of 32 bits.",
        ),
        (
            "mirror: {}",
            "3:11: mirror.name: the name of the origin is missing. Set the name of its bucket.",
        ),
        (
            "sources: [{name: A}, null]",
            "3:24: sources[1].name: the name of the origin is missing. Set the name of its bucket.",
        ),
        (
            "placement: {tag: a}",
            "3:15: placement.tag: there is no such setting. Did you mean 'tags'?",
        ),
        (
            "num_replicas: -1",
            "3:17: num_replicas: the number of replicas is negative. (10133) Use 1, 3 or 5.",
        ),
        ("description: [a]", "3:16: description: expected text, got a list."),
    ],
)
def test_fault_is_at_the_setting_of_the_bucket(settings: str, expected: str) -> None:
    assert one_key_value(settings) == [f"x.yaml:{expected}"]


def test_a_bucket_is_a_mirror_or_has_sources() -> None:
    text = "key_values:\n- bucket: B\n  mirror: {name: A}\n  sources: [{name: C}]\n"
    [line] = lines(text)
    assert line.startswith("x.yaml:4:12: sources: a bucket is a mirror or has sources, not both.")


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("sources: [{name: A, filter_subject: a..b}]", "sources[0].filter_subject"),
        ("sources: [{name: a.b}]", "sources[0].name"),
        ("sources: [{name: A}, {name: A}]", "sources[1]"),
        ("mirror: {name: a.b}", "mirror.name"),
    ],
)
def test_what_the_conversion_adds_is_reported_where_the_file_has_it(
    settings: str, path: str
) -> None:
    found = load(f"key_values:\n- bucket: B\n  {settings}\n").errors
    assert found
    for one in found:
        assert one.problem.path.startswith(path), one
        assert one.line == 3


@pytest.mark.parametrize(("kind", "longest"), [("key_values", 252), ("object_stores", 200)])
def test_names(kind: str, longest: int) -> None:
    for name, rule in (
        ("a.b", "B-NAME"),
        ("''", "B-NAME"),
        ("a" * (longest + 1), "B-NAME-LEN"),
        ("null", "B-NAME-MISSING"),
        ("5", "R-JSON"),
    ):
        [found] = load(f"{kind}:\n- bucket: {name}\n").errors
        assert (found.problem.rule, found.problem.path) == (rule, "bucket")
        assert found.line == 2
    assert load(f"{kind}: [{{bucket: {'a' * longest}}}]").errors == []
    [found] = load(f"{kind}:\n- history: 1\n").errors[-1:]
    assert found.problem.path in ("bucket", "history")


def test_an_object_store_has_its_own_settings() -> None:
    text = "object_stores:\n- bucket: B\n  history: 5\n  ttl: 5\n  mirror: {name: ''}\n"
    assert lines(text) == [
        "x.yaml:3:3: history: there is no such setting. Remove it.",
        "x.yaml:5:18: mirror.name: the name of the origin is missing. Set the name of its bucket.",
        "x.yaml:4:8: ttl: a ttl of 5 ns is below 100 ms. (10052)"
        " Durations are in nanoseconds; 100 ms is 100000000.",
    ]


def test_unknown_settings_are_errors_for_old_servers_too() -> None:
    assert one_key_value("histroy: 5", server="2.11") == one_key_value("histroy: 5")


def test_warnings_concern_what_is_odd_for_buckets() -> None:
    text = "object_stores: [{bucket: A}]\nkey_values:\n- bucket: B\n  storage: memory\n"
    [warning] = load(text).warnings
    assert (warning.line, warning.problem.path, warning.problem.rule) == (
        4,
        "storage",
        "L-MEMORY-REPLICA",
    )


def test_a_bucket_outside_of_its_list_is_ambiguous() -> None:
    [line] = lines("bucket: B\n")
    assert "key_values: or object_stores:" in line
    [config] = load("bucket: B\n", kind="object_store").configs
    assert config.kind == "object_store"
    [line] = lines("key_values: [x]\n")
    assert line == "x.yaml:1:14: key_values[0]: expected a bucket config here."


def test_consumer_is_validated_with_the_stream_of_its_bucket() -> None:
    text = """\
key_values: [{bucket: CONF}]
consumers:
- stream_name: KV_CONF
  config: {durable_name: C, ack_policy: none, filter_subject: other}
"""
    assert [one.problem.rule for one in load(text).warnings] == ["L-FILTER-OUTSIDE"]


def test_the_stream_is_the_one_that_programs_create() -> None:
    key_value = KeyValueConfig(
        bucket="B",
        history=3,
        ttl=Duration.from_ns(10**10),
        limit_marker_ttl=Duration.from_ns(10**9),
        compression=True,
        metadata={"a": "b"},
        sources=[StreamSource(name="A", filter_subject="$KV.A.x.>")],
    )
    members = stream_members("key_value", encode(key_value))
    assert decode(members, StreamConfig) == stream_config(key_value)
    assert key_value_config(decode(members, StreamConfig)).history == 3
    store = ObjectStoreConfig(bucket="B", max_bytes=10**6, mirror=StreamSource(name="A"))
    members = stream_members("object_store", encode(store))
    assert decode(members, StreamConfig) == store_stream_config(store)
    assert store_config(decode(members, StreamConfig)).max_bytes == 10**6


def test_a_bucket_without_a_usable_name_has_no_stream() -> None:
    [config] = load("key_values: [{bucket: a.b}]").configs
    assert stream_behind(config).members == {}
    [config] = load("streams: [{name: S, subjects: [s]}]").configs
    assert stream_behind(config) is config


def test_an_update_keeps_what_a_bucket_has_no_setting_for() -> None:
    old = StreamConfig(
        name="OBJ_B",
        subjects=["else"],
        sealed=True,
        max_age=Duration.from_ns(5),
        duplicate_window=Duration.from_ns(120 * 10**9),
        max_msgs=7,
    )
    new = stream_members("object_store", {"bucket": "B", "ttl": 60 * 10**9})
    kept = kept_members("object_store", old, new)
    assert (kept["sealed"], kept["max_msgs"]) == (True, 7)
    assert kept["subjects"] == ["$O.B.C.>", "$O.B.M.>"]
    assert kept["max_age"] == 60 * 10**9
    assert "duplicate_window" not in kept
    assert "max_age" not in kept_members(
        "object_store", old, stream_members("object_store", {"bucket": "B"})
    )


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"key_values": [{"bucket": "B", "history": 5}]}, True),
        ({"object_stores": [{"bucket": "B"}], "streams": [{"name": "S"}]}, True),
        ({"key_values": [{"bucket": "B", "histroy": 5}]}, False),
        ({"key_values": [{"history": 5}]}, False),
        ({"object_stores": [{"bucket": "B", "history": 5}]}, False),
    ],
)
def test_the_schema_document_covers_buckets(document: dict[str, Any], valid: bool) -> None:
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(document) is valid


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "A", "a.b", "$KV.B.>", "file", "none"])
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*SHAPES["StreamSource"], "src", "dest", "tags", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    kind=st.sampled_from(["key_value", "object_store"]),
    members=st.dictionaries(st.sampled_from([*SHAPES["KeyValueConfig"], "x"]), VALUES),
    has_name=st.booleans(),
)
def test_anything_can_be_validated(
    kind: BucketKind, members: dict[str, Any], has_name: bool
) -> None:
    if has_name:
        members["bucket"] = "B"
    known = SHAPES["KeyValueConfig" if kind == "key_value" else "ObjectStoreConfig"]
    problems, warnings = bucket_problems(kind, members, None)
    for one in (*problems, *warnings):
        first = one.path.split(".")[0].split("[")[0]
        assert first in known or first in members, one
    stream = stream_members(kind, members)
    assert stream.get("name", "") in ("", "KV_B", "OBJ_B") or not has_name
