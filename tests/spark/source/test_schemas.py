"""Schemas of Spark as schemas of Arrow, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VarcharType,
    VariantType,
)

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.page import StoredPage
from twinstream.spark.decode import fields
from twinstream.spark.decode.events import EVENT_COLUMNS
from twinstream.spark.errors import SchemaError
from twinstream.spark.schemas import arrow_schema, spark_schema
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.options import SourceOptions

INNER = fields.record(
    fields.required("n", fields.DOUBLE, "How much.", nullable=True, exact=True),
    fields.json_text("any", must_exist=True),
)
COLUMNS = pa.schema(
    [
        *(fields.optional(str(kind), kind) for kind in (pa.int8(), pa.int16(), fields.INTEGER)),
        fields.required("id", fields.LONG, "Number."),
        fields.optional("f", fields.FLOAT),
        fields.optional("s", fields.STRING, "true"),
        fields.optional("b", fields.BOOLEAN),
        fields.optional("raw", fields.BINARY),
        fields.optional("on", fields.DATE),
        fields.optional("at", fields.TIMESTAMP),
        fields.optional("price", pa.decimal128(18, 2)),
        fields.optional("o", INNER),
        fields.optional("all", fields.array_of(fields.array_of(INNER))),
        fields.optional("by", fields.map_of(INNER)),
        pa.field("batch", pa.int64(), nullable=False),
    ]
)


@pytest.mark.parametrize("columns", [COLUMNS, EVENT_COLUMNS], ids=["all types", "events"])
def test_nothing_is_lost_on_the_way_to_spark_and_back(columns: pa.Schema) -> None:
    there = spark_schema(columns)
    assert arrow_schema(there).equals(columns, check_metadata=True)
    assert spark_schema(arrow_schema(there)) == there


def test_spark_has_its_own_metadata() -> None:
    found = spark_schema(COLUMNS)
    assert found["id"].metadata == {"twinstream.required": True, "comment": "Number."}
    assert found["s"].metadata == {"comment": "true"}
    assert found["f"].metadata == {}


def test_what_may_be_null_is_kept() -> None:
    strict = StructType([StructField("b", LongType(), nullable=False)])
    given = StructType(
        [
            StructField("a", ArrayType(strict, containsNull=False)),
            StructField("m", MapType(StringType(), strict, valueContainsNull=False)),
        ]
    )
    assert spark_schema(arrow_schema(given)) == given


@pytest.mark.parametrize("kind", [VariantType(), CalendarIntervalType(), VarcharType(3)])
def test_types_that_arrow_lacks_are_refused(kind: DataType) -> None:
    given = StructType([StructField("a", ArrayType(StructType([StructField("b", kind)])))])
    with pytest.raises(SchemaError, match=r"column 'a\[\].b': the source has no values of type"):
        arrow_schema(given)


def test_types_that_json_lacks_are_refused_by_their_name_in_spark() -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", "valueFormat": "json"})
    given = StructType([StructField("a", TimestampNTZType())])
    with pytest.raises(SchemaError, match="JSON has no values for a column of type timestamp_ntz"):
        Batcher(options, arrow_schema(given))


def test_payloads_beside_malformed_headers_are_decoded() -> None:
    given = {"valueFormat": "json", "includeHeaders": "true", "mode": "PERMISSIVE"}
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", **given})
    batcher = Batcher(options, pa.schema([fields.optional("a", fields.LONG)]))
    page = StoredPage(
        seqs=[1, 2],
        subjects=[b"s", b"s"],
        times=[1, 2],
        headers=[b"malformed", b""],
        payloads=[b'{"a":1}', b'{"a":2}'],
    )
    found = batcher.build(ArrowPage.of(page), "S").to_pylist()
    assert found == [{"a": None}, {"a": 2}]
