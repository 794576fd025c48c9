"""Parquet files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import NativeFile, RecordBatch, Schema, Table
from .fs import FileSystem

class Statistics:
    has_null_count: bool
    null_count: int
    num_values: int
    has_min_max: bool
    min: Any
    max: Any

class ColumnChunkMetaData:
    statistics: Statistics | None

class RowGroupMetaData:
    num_rows: int
    def column(self, i: int) -> ColumnChunkMetaData: ...

class ColumnSchema:
    path: str

class ParquetSchema:
    def __len__(self) -> int: ...
    def column(self, i: int) -> ColumnSchema: ...

class FileMetaData:
    num_rows: int
    num_row_groups: int
    schema: ParquetSchema
    def row_group(self, i: int) -> RowGroupMetaData: ...

class ParquetFile:
    schema_arrow: Schema
    def __init__(self, source: str | Path, *, filesystem: FileSystem | None = None) -> None: ...
    def read(self, columns: Sequence[str] | None = None) -> Table: ...
    def iter_batches(self, *, batch_size: int, columns: Sequence[str]) -> Iterator[RecordBatch]: ...

class ParquetWriter:
    def __init__(
        self,
        where: str | Path | NativeFile,
        schema: Schema,
        *,
        compression: str = ...,
        use_dictionary: bool | list[str] = ...,
        metadata_collector: list[FileMetaData] = ...,
    ) -> None: ...
    def write_batch(self, batch: RecordBatch) -> None: ...
    def write_table(self, table: Table) -> None: ...
    def close(self) -> None: ...

def read_table(source: str | Path) -> Table: ...
def read_metadata(where: str | Path, *, filesystem: FileSystem | None = None) -> FileMetaData: ...
def read_schema(where: str | Path, *, filesystem: FileSystem | None = None) -> Schema: ...
