"""Which columns a Parquet table takes beside those that it has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.table_fit import check_fit

NUMBER, TEXT = pa.int64(), pa.string()


def batch(table: Path, number: int, name: str = "rows", **columns: pa.DataType) -> Path:
    file = table / f"batch_id={number}" / f"{name}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.schema(list(columns.items())).empty_table(), file)
    return file


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        (NUMBER, NUMBER, True),
        (NUMBER, TEXT, False),
        (pa.struct({"a": NUMBER}), pa.struct({"a": NUMBER, "b": TEXT}), True),
        (pa.struct({"a": NUMBER, "b": TEXT}), pa.struct({"b": TEXT}), True),
        (pa.struct({"a": NUMBER}), pa.struct({"a": TEXT}), False),
        (pa.list_(pa.struct({"a": NUMBER})), pa.list_(pa.struct({"a": TEXT})), False),
        (pa.struct({"a": NUMBER}), TEXT, False),
        (pa.struct({"a": NUMBER}), pa.struct({"A": NUMBER}), False),
        (pa.map_(TEXT, pa.struct({"a": NUMBER})), pa.map_(TEXT, pa.struct({"a": NUMBER})), True),
        (pa.map_(TEXT, pa.struct({"a": NUMBER})), pa.map_(TEXT, pa.struct({"b": NUMBER})), False),
    ],
)
def test_a_column_keeps_its_type(
    tmp_path: Path, old: pa.DataType, new: pa.DataType, fits: bool
) -> None:
    table = tmp_path / "orders"
    files = [batch(tmp_path / "staged", 0, id=new, more=TEXT)]
    check_fit(table, files)
    batch(table, 9, id=old, gone=NUMBER)
    batch(table, 10, id=old, gone=NUMBER)
    if fits:
        check_fit(table, files)
    else:
        with pytest.raises(SchemaError, match="column 'id' of the table orders was landed as"):
            check_fit(table, files)
    check_fit(table, [])


@pytest.mark.parametrize(
    ("newest", "added", "fits"),
    [
        ({"more": TEXT}, {"id": NUMBER}, True),
        ({"more": TEXT}, {"id": TEXT}, False),
        ({"more": TEXT}, {"ID": NUMBER}, False),
        ({"in": pa.struct({"a": TEXT})}, {"in": pa.struct({"b": TEXT})}, False),
        ({"in": pa.list_(pa.struct({"a": TEXT}))}, {"each": pa.list_(TEXT)}, False),
    ],
)
def test_a_column_that_was_away_keeps_its_type(
    tmp_path: Path, newest: dict[str, pa.DataType], added: dict[str, pa.DataType], fits: bool
) -> None:
    table = tmp_path / "orders"
    batch(table, 0, id=NUMBER, **{"in": pa.struct({"b": NUMBER})}, each=pa.list_(NUMBER))
    batch(table, 1, id=NUMBER)
    batch(table, 2, **newest)
    files = [batch(tmp_path / "staged", 0, more=TEXT, **added)]
    if fits:
        check_fit(table, files)
    else:
        with pytest.raises(SchemaError, match="of the table orders was landed as"):
            check_fit(table, files)


@pytest.mark.parametrize("name", ["letters-000000000", "letters-000000001", "part-0"])
def test_each_file_of_a_batch_is_compared(tmp_path: Path, name: str) -> None:
    """Replays of dead letters add files, and each may have been landed with another schema."""
    table = tmp_path / "orders"
    for each in ("letters-000000000", "letters-000000001", "part-0"):
        columns = {"item": TEXT} if each == name else {"price": NUMBER}
        batch(table, 0, each, id=NUMBER, **columns)
    new = batch(tmp_path / "staged", 0, id=NUMBER, item=NUMBER)
    with pytest.raises(SchemaError, match="column 'item' of the table orders was landed as string"):
        check_fit(table, [new])
