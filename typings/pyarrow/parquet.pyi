"""Parquet files."""

from pathlib import Path

from . import Table

class FileMetaData:
    num_rows: int

def read_table(source: str | Path) -> Table: ...
def read_metadata(where: str | Path) -> FileMetaData: ...
