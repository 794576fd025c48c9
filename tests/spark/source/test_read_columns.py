"""Which columns may be asked for."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns

STRICT = StructType([StructField("b", LongType(), nullable=False)])


@pytest.mark.parametrize(
    ("kind", "nullable", "named"),
    [
        (LongType(), False, "a"),
        (STRICT, True, "a.b"),
        (ArrayType(LongType(), containsNull=False), True, "a[]"),
        (ArrayType(STRICT), True, "a[].b"),
        (MapType(StringType(), LongType(), valueContainsNull=False), True, "a.*"),
    ],
)
def test_no_column_can_be_promised_to_hold_no_null(
    kind: DataType, nullable: bool, named: str
) -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", "valueFormat": "json"})
    wanted = StructType([StructField("a", kind, nullable)])
    with pytest.raises(SchemaError) as caught:
        ReadColumns(options, wanted).check(wanted)
    assert f"column {named!r} is NOT NULL" in str(caught.value)


@pytest.mark.parametrize("name", ["_seq", "_Extra", "_error"])
def test_the_payload_that_does_not_fit_has_a_column_of_its_own(name: str) -> None:
    options = SourceOptions.parse(
        {
            "nats.servers": "h",
            "stream": "S",
            "valueFormat": "json",
            "columnNameOfCorruptRecord": name,
        }
    )
    with pytest.raises(OptionError, match=f"the source has another column '{name}'"):
        ReadColumns(options, StructType([StructField("a", LongType())]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["seq", "seq"], "has column 'seq' twice; remove one of them"),
        (
            ["SEQ"],
            "seq, timestamp; column names are case-sensitive, use 'seq'",
        ),
        (["headers"], "there is no column 'headers'.*; includeHeaders=true adds the headers"),
    ],
)
def test_columns_that_cannot_be_had_are_named(names: list[str], message: str) -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S"})
    wanted = StructType([StructField(name, LongType()) for name in names])
    with pytest.raises(SchemaError, match=message):
        ReadColumns(options).check(wanted)


def test_a_column_of_the_payload_is_there_once() -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", "valueFormat": "json"})
    wanted = StructType([StructField("id", LongType())] * 2)
    with pytest.raises(SchemaError, match="has column 'id' twice"):
        ReadColumns(options, wanted).check(wanted)
