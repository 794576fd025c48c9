"""Parquet files."""

from collections.abc import Sequence
from pathlib import Path

from . import RecordBatch, Schema, Table

class FileMetaData:
    num_rows: int

class ParquetFile:
    schema_arrow: Schema
    def __init__(self, source: str | Path) -> None: ...
    def read(self, columns: Sequence[str] | None = None) -> Table: ...

class ParquetWriter:
    def __init__(
        self,
        where: str | Path,
        schema: Schema,
        *,
        compression: str = ...,
        use_dictionary: bool | list[str] = ...,
    ) -> None: ...
    def write_batch(self, batch: RecordBatch) -> None: ...
    def write_table(self, table: Table) -> None: ...
    def close(self) -> None: ...

def read_table(source: str | Path) -> Table: ...
def read_metadata(where: str | Path) -> FileMetaData: ...
def read_schema(where: str | Path) -> Schema: ...
