"""Which columns may be asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns

STRICT = pa.struct([pa.field("b", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("kind", "nullable", "named"),
    [
        (pa.int64(), False, "a"),
        (STRICT, True, "a.b"),
        (pa.list_(pa.field("element", pa.int64(), nullable=False)), True, "a[]"),
        (pa.list_(STRICT), True, "a[].b"),
        (pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)), True, "a.*"),
    ],
)
def test_no_column_can_be_promised_to_hold_no_null(
    kind: pa.DataType, nullable: bool, named: str
) -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", "valueFormat": "json"})
    wanted = pa.schema([pa.field("a", kind, nullable)])
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
        ReadColumns(options, pa.schema([pa.field("a", pa.int64())]))


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
    wanted = pa.schema([pa.field(name, pa.int64()) for name in names])
    with pytest.raises(SchemaError, match=message):
        ReadColumns(options).check(wanted)


def test_a_column_of_the_payload_is_there_once() -> None:
    options = SourceOptions.parse({"nats.servers": "h", "stream": "S", "valueFormat": "json"})
    wanted = pa.schema([pa.field("id", pa.int64())] * 2)
    with pytest.raises(SchemaError, match="has column 'id' twice"):
        ReadColumns(options, wanted).check(wanted)
