"""`payloads`: the schema of a read comes from the configuration file of its streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from js_sync import Stream
from twinstream.spark.errors import SchemaError
from twinstream.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORDER = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
REFUND = {"title": "Refund", "type": "object", "properties": {"cents": {"type": "integer"}}}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes the file of streams and the file `order.schema.json` beside it."""

    def into(*streams: dict[str, Any], name: str = "streams.yaml") -> str:
        (tmp_path / "order.schema.json").write_text(json.dumps(ORDER))
        file = tmp_path / name
        document: Any = {"streams": list(streams)}
        as_yaml = yaml.safe_dump(document, sort_keys=False)
        file.write_text(json.dumps(document) if name.endswith("json") else as_yaml)
        return str(file)

    return into


def stream(payloads: Any, *subjects: str, name: str = "SALES", **more: Any) -> dict[str, Any]:
    given = {"subjects": list(subjects)} if subjects else {}
    return {"name": name, "storage": "file", "payloads": payloads, **given, **more}


def schema(path: str, streams: str = "SALES", subject: str = "") -> Any:
    """Return the schema that the source decodes with."""
    given = {"nats.servers": "h", "stream": streams, "valueFormat": "json", "payloads": path}
    found = SourceOptions.parse(given | ({"subject": subject} if subject else {})).json_schema
    assert found is not None
    return json.loads(found)


@pytest.mark.parametrize("name", ["streams.yaml", "streams.yml", "streams.json"])
def test_schema_of_all_subjects_is_read_from_a_file_beside(
    write: Callable[..., str], name: str
) -> None:
    assert schema(write(stream({"sales.>": "order.schema.json"}, "sales.*"), name=name)) == ORDER
    assert schema(write(stream({"SALES": ORDER}), name=name)) == ORDER, "no subjects: the name"


def test_filter_selects_one_of_several_schemas(write: Callable[..., str]) -> None:
    path = write(
        stream({"sales.placed.*": "order.schema.json", "sales.refunds": REFUND}, "sales.>")
    )
    assert schema(path, subject="sales.placed.de") == ORDER
    assert schema(path, subject="sales.placed.de,sales.placed.at") == ORDER
    assert schema(path, subject="sales.refunds") == REFUND


def test_equal_schemas_of_several_subjects_and_streams_are_one(write: Callable[..., str]) -> None:
    path = write(
        stream({"sales.*.a": ORDER, "sales.b.*": "order.schema.json"}, "sales.*.a", "sales.b.*"),
        stream({">": ORDER}, "old.>", name="OLD"),
        stream({">": REFUND}, "refunds", name="REFUNDS"),
    )
    assert schema(path, "SALES,OLD") == ORDER
    with pytest.raises(
        SchemaError, match="stream SALES, stream REFUNDS have different schemas; read each of these"
    ):
        schema(path, "SALES,REFUNDS")


def test_order_of_the_columns_is_that_of_the_schema(write: Callable[..., str]) -> None:
    members = {"z": {"type": "integer"}, "a": {"type": "integer"}}
    path = write(stream({"s": {"properties": members}}, "s"), name="s.json")
    assert list(schema(path)["properties"]) == ["z", "a"]


@pytest.mark.parametrize(
    ("given", "subject", "reason"),
    [
        (
            stream({"sales.a": ORDER, "sales.b": REFUND}, "sales.*"),
            "",
            "sales.a, sales.b have different schemas; read them separately, each with its subject"
            " as the filter",
        ),
        (
            stream({"sales.>": ORDER, "sales.*.x": REFUND}, "sales.>"),
            "sales.a.*",
            r"sales.>, sales.\*.x have different schemas",
        ),
        (
            stream({"sales.a": ORDER, "sales.b": ORDER}, "sales.*"),
            "",
            r"not all messages of sales.\* have a schema; read only sales.a, sales.b, by a filter",
        ),
        (stream({">": ORDER, "a": ORDER}, "a"), "b", None),
        (stream({"a": ORDER}, "a"), "b", "payloads has no schema for b"),
        (
            stream({"a": ORDER}, sources=[{"name": "O"}], subjects=["a"]),
            "",
            "not all messages of > have a schema",
        ),
        (stream({"a": ORDER}, mirror={"name": "O"}), "", "not all messages of > have a schema"),
        (stream(None, "a"), "", "'payloads' with a JSON Schema for each subject is required"),
        (stream(["a"], "a"), "", "'payloads' with a JSON Schema for each subject is required"),
        (stream({"a": 7}, "a"), "", "payloads: a schema is a mapping, or the path of a JSON file"),
        (stream({"a": "no.json"}, "a"), "", "payloads: .*no.json: no JSON Schema"),
        (stream({"a..b": ORDER}, "a"), "", "payloads: subject 'a..b' has an empty token"),
        (stream({"a": ORDER}, "a", name="X"), "", "has no stream 'SALES': it has X"),
    ],
)
def test_what_has_not_one_schema_is_refused(
    write: Callable[..., str], given: dict[str, Any], subject: str, reason: str | None
) -> None:
    path = write(given)
    if reason is None:
        assert schema(path, subject=subject) == ORDER
        return
    with pytest.raises(SchemaError, match=reason):
        schema(path, subject=subject)


@pytest.mark.parametrize("text", [None, "a: [", "[1]", ""])
def test_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "s.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SchemaError, match=r"s.yaml' has no stream 'SALES'; .*s.yaml:1:"):
        schema(str(file))


def test_messages_are_decoded_with_the_schema_of_their_stream(
    make_stream: Callable[..., Stream],
    read: Callable[..., DataFrame],
    fill: Callable[..., None],
    write: Callable[..., str],
) -> None:
    made = make_stream()
    fill(made, [{"id": 1}, {"id": "two"}])
    subjects = made.cached_info.config.subjects or ()
    path = write(stream({">": "order.schema.json"}, *subjects, name=made.name))
    rows = read(made.name, valueFormat="json", payloads=path).orderBy("_seq").collect()
    assert [(row["id"], row["_error"] is None) for row in rows] == [(1, True), (None, False)]
