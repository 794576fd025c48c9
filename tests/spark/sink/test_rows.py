"""Rows as messages, and the options of the sink: what is taken and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from js_sync import JetStream
from twinstream.spark.decode import fields
from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.schemas import spark_schema
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.sink.publish_task import publish_rows
from twinstream.spark.sink.rows import OutMessage, RowReader
from twinstream.spark.sink.task_identity import TaskIdentity

LEAST = {"nats.servers": "h", "stream": "S", "subject": "s"}


KINDS: dict[str, pa.DataType] = {
    "string": fields.STRING,
    "binary": fields.BINARY,
    "bigint": fields.LONG,
    "timestamp": fields.TIMESTAMP,
    "map<string,string>": fields.map_of(fields.STRING),
    "map<string,bigint>": fields.map_of(fields.LONG),
}


def columns(ddl: str) -> StructType:
    """Columns of a few types, without the session that Spark's own parser needs."""
    pairs = (each.split(" ") for each in ddl.split(", "))
    return spark_schema(pa.schema([fields.optional(name, KINDS[kind]) for name, kind in pairs]))


def reader(ddl: str, **given: str) -> RowReader:
    return RowReader(SinkOptions.parse({**LEAST, **given}), columns(ddl))


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("subject string", "no column 'data'"),
        ("data bigint", "column 'data' is bigint, not binary or string"),
        ("data string, id bigint", "column 'id' is not one of subject, data, headers"),
        ("data string, headers map<string,bigint>", "not map<string,array<string>> or map<string"),
        ("data string, ttl string", "column 'ttl' is string, not bigint or int"),
    ],
)
def test_columns_that_cannot_be_published(ddl: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        reader(ddl)


def test_columns_of_a_raw_read_are_passed_over() -> None:
    reader("subject string, data binary, stream string, seq bigint, timestamp timestamp")


def test_a_subject_must_come_from_somewhere() -> None:
    options = SinkOptions.parse({"nats.servers": "h", "stream": "S"})
    with pytest.raises(OptionError, match="is required if the rows have no column 'subject'"):
        RowReader(options, columns("data string"))
    rows = RowReader(options, columns("data string, subject string"))
    batch = pa.RecordBatch.from_pylist([{"data": "x", "subject": None}])
    with pytest.raises(SchemaError, match="a row has no subject"):
        list(rows.read(iter([batch])))


def test_rows_become_messages() -> None:
    ddl = "subject string, data string, headers map<string,string>, ttl bigint, id bigint"
    rows = reader(ddl, idColumn="id")
    kind = pa.map_(pa.string(), pa.string())
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["a", None]),
            pa.array(["ü", None]),
            pa.array([[("K", "v")], None], kind),
            pa.array([60, None], pa.int64()),
            pa.array([7, 8], pa.int64()),
        ],
        names=["subject", "data", "headers", "ttl", "id"],
    )
    assert list(rows.read(iter([batch]))) == [
        OutMessage("a", "ü".encode(), {"K": ["v"]}, 60, "7"),
        OutMessage("s", b"", None, None, "8"),
    ]


def headers_of(pairs: list[tuple[str, str]], ttl: int | None = None) -> Any:
    rows = reader("data string, headers map<string,string>, ttl bigint")
    kind = pa.map_(pa.string(), pa.string())
    arrays = [pa.array(["x"]), pa.array([pairs], kind), pa.array([ttl], pa.int64())]
    batch = pa.RecordBatch.from_arrays(arrays, names=["data", "headers", "ttl"])
    (message,) = rows.read(iter([batch]))
    return message.headers


def test_headers_of_an_earlier_publication_are_left_out() -> None:
    earlier = [
        ("Nats-Batch-Id", "b"),
        ("Nats-Batch-Sequence", "7"),
        ("Nats-Batch-Commit", "1"),
        ("Nats-Expected-Stream", "S"),
        ("Nats-Expected-Last-Subject-Sequence", "0"),
        ("Nats-Msg-Id", "1"),
        ("Nats-Required-Api-Level", "2"),
        ("Nats-Trace-Dest", "trace disabled"),
    ]
    assert headers_of(earlier) is None
    # What says what becomes of the message is the row's own, and so is what no server reads.
    own = [("Nats-Rollup", "sub"), ("Nats-TTL", "5"), ("nats-batch-commit", "1"), ("K", "v")]
    assert headers_of([*earlier, *own]) == {name: [value] for name, value in own}


def test_headers_that_only_servers_write_are_left_out() -> None:
    of_server = [
        ("Nats-Stream-Source", "A 1 > > a"),
        ("Nats-Scheduler", "plan.a"),
        ("Nats-Schedule-Next", "purge"),
        ("Nats-Counter-Sources", "{}"),
        ("Nats-Pin-Id", "a"),
        ("Nats-Msg-Size", "1"),
    ]
    assert headers_of([*of_server, ("K", "v")]) == {"K": ["v"]}


@pytest.mark.parametrize(("data", "kept"), [("", {"Nats-Incr": ["5"]}), ('{"val":"5"}', None)])
def test_an_increment_is_not_a_copied_total(data: str, kept: dict[str, list[str]] | None) -> None:
    kind = pa.map_(pa.string(), pa.string())
    arrays = [pa.array([data]), pa.array([[("Nats-Incr", "5")]], kind)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["data", "headers"])
    (message,) = reader("data string, headers map<string,string>").read(iter([batch]))
    assert message.headers == kept


def test_column_takes_precedence_over_the_ttl_header() -> None:
    assert headers_of([("Nats-TTL", "5"), ("K", "v")], ttl=60) == {"K": ["v"]}


@pytest.mark.parametrize("values", [None, [None], ["a", None]])
def test_a_header_has_no_null(values: list[str | None] | None) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.string()))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["x"]), pa.array([[("K", values)]], kind)], names=["data", "headers"]
    )
    with pytest.raises(SchemaError, match="column 'headers': a row for 's' has null for 'K'"):
        list(reader("data string").read(iter([batch])))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"headers": [("a b", "v")]}, "header name 'a b' may hold visible ASCII"),
        ({"headers": [("K", "v\nw")]}, "header K: a value may not hold CR, LF or NUL"),
        ({"ttl": 0}, "ttl must be whole seconds from 1, got 0"),
        ({"msg_id": "1\n2"}, "header Nats-Msg-Id: a value may not hold CR, LF or NUL"),
        ({"msg_id": "1 "}, "msg_id must not begin or end with blanks, got '1 '"),
        ({"msg_id": " "}, "msg_id must not be empty or blank"),
    ],
)
def test_a_row_that_cannot_be_published_is_named(wrong: dict[str, Any], reason: str) -> None:
    ddl = "subject string, data string, headers map<string,string>, ttl bigint, msg_id string"
    rows = [{"subject": "s.a", "data": "x"}, {"subject": "s.b", "data": "y", **wrong}]
    kinds = {"headers": pa.map_(pa.string(), pa.string()), "ttl": pa.int64()}
    names = ["subject", "data", "headers", "ttl", "msg_id"]
    arrays = [pa.array([row.get(n) for row in rows], kinds.get(n, pa.string())) for n in names]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    found = reader(ddl).read(iter([batch]))
    assert next(found).subject == "s.a"
    with pytest.raises(SchemaError, match=f"a row for 's.b' cannot be published: {reason}"):
        next(found)


def test_an_id_column_has_no_null() -> None:
    batch = pa.RecordBatch.from_pylist([{"data": "x", "id": 7}, {"data": "y", "id": None}])
    rows = reader("data string, id bigint", idColumn="id").read(iter([batch]))
    assert next(rows).identity == "7"
    with pytest.raises(SchemaError, match="has null in column 'id', which the option idColumn"):
        next(rows)
    batch = pa.RecordBatch.from_pylist([{"data": "x", "id": ""}])
    with pytest.raises(
        SchemaError, match="has empty text in column 'id', which the option idColumn"
    ):
        next(reader("data string, id string", idColumn="id").read(iter([batch])))
    # Without the option the column may be empty: its content identifies such a row.
    batch = pa.RecordBatch.from_pylist([{"data": "x", "msg_id": None}])
    assert next(reader("data string, msg_id string").read(iter([batch]))).identity is None


@pytest.mark.parametrize(
    ("name", "ddl"),
    [
        ("data", "data binary"),
        ("timestamp", "data string, timestamp timestamp"),
        ("headers", "data string, headers map<string,string>"),
    ],
)
def test_an_id_column_is_text_or_a_number(name: str, ddl: str) -> None:
    with pytest.raises(OptionError, match=f"'idColumn': column '{name}' is .*; cast it"):
        reader(ddl, idColumn=name)
    reader("data string, seq bigint", idColumn="seq")


@pytest.mark.parametrize(
    "mode", [{"idempotence": "insert"}, {"idempotence": "ledger", "ledgerSubject": "s.l"}]
)
def test_message_ids_mean_nothing_to_other_modes(mode: dict[str, str]) -> None:
    with pytest.raises(SchemaError, match="column 'msg_id' needs idempotence=msgId or none"):
        reader("data string, msg_id string", **mode)
    reader("data string, msg_id string", idempotence="none")


def test_an_id_column_must_be_there() -> None:
    with pytest.raises(OptionError, match="the rows have no column 'nope'"):
        reader("data string", idColumn="nope")


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"stream": None}, "stream", "is required with idempotence=msgId"),
        ({"idempotence": "ledger"}, "ledgerSubject", "is required with idempotence=ledger"),
        ({"ledgerSubject": "x"}, "ledgerSubject", "needs idempotence=ledger"),
        ({"idempotence": "insert", "idColumn": "id"}, "idColumn", "needs idempotence=msgId"),
        ({"idempotence": "exactly"}, "idempotence", "must be msgId, none, insert or ledger"),
        ({"subject": "a.>"}, "subject", "wildcard"),
        ({"writeId": "a.b"}, "writeId", "not allowed"),
        ({"maxInFlight": "0"}, "maxInFlight", "from 1 up"),
        ({"maxInFlights": "1"}, "maxInFlights", "did you mean 'maxInFlight'"),
    ],
)
def test_a_mistake_names_its_option(given: dict[str, Any], option: str, reason: str) -> None:
    options = {name: text for name, text in {**LEAST, **given}.items() if text is not None}
    with pytest.raises(OptionError) as caught:
        SinkOptions.parse(options)
    assert caught.value.option == option
    assert reason in str(caught.value)


def test_insert_refuses_a_duplicate_subject(jet: JetStream) -> None:
    options = SinkOptions.parse({**LEAST, "idempotence": "insert"})
    rows = iter([OutMessage("other.x", b"", None, None, None)] * 2)
    with pytest.raises(SchemaError, match=r"'other\.x' occurs twice"):
        publish_rows(jet, options, rows, TaskIdentity("w", 0, 0))
