"""What tests of pipelines share: their files, and a second opinion on their tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from twinstream.spark.pipeline import PipelineConfig, read_config

SINKS = ["parquet", "delta"]

ENGINE = "TWINSTREAM_TEST_ENGINE"
"""The variable with the engine of pipelines that name none."""

SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
}

MAX_DELIVER = {
    "type": "io.nats.jetstream.advisory.v1.max_deliver",
    "id": "i",
    "timestamp": "2024-01-01T00:00:00Z",
    "stream": "S",
    "consumer": "C",
    "deliveries": 3,
}


def write_config(folder: Path, sink: str, server: str, *sources: str, **top: str) -> Path:
    """Write a pipeline's file; each source is the text of its table."""
    (folder / "order.json").write_text(json.dumps(SCHEMA))
    top.setdefault("engine", os.environ.get(ENGINE, "spark"))
    lines = [f'path = "lake"\nsink = "{sink}"', *(f'{key} = "{top[key]}"' for key in top)]
    lines += [f'[nats]\nservers = "{server}"', "[restart]\nfirst = '100ms'\nmost = 3"]
    lines += [f"[[source]]\n{source}" for source in sources]
    file = folder / "orders.toml"
    file.write_text("\n".join(lines))
    return file


def config_of(*args: Any, **top: str) -> PipelineConfig:
    return read_config(write_config(*args, **top))


def files_of(table: Path, sink: str) -> list[str]:
    """Return the files of a table as its readers find them."""
    if sink == "parquet":
        return sorted(str(file) for file in table.rglob("*.parquet"))
    from deltalake import DeltaTable

    return DeltaTable(str(table)).file_uris()


def rows_of(table: Path, sink: str) -> list[dict[str, Any]]:
    """Rows as Arrow reads them."""
    return ds.dataset(files_of(table, sink)).to_table().to_pylist()


def counted(table: Path, sink: str, column: str = "_seq") -> tuple[int, int]:
    """Rows and distinct sequences, as DuckDB counts them; Arrow must agree."""
    files = files_of(table, sink)
    if not files:
        return 0, 0
    found = counted_by_duckdb(files, column)
    # Of the same files, as a pipeline may land more meanwhile.
    seqs = ds.dataset(files).to_table(columns=[column]).column(column).to_pylist()
    assert found == (len(seqs), len(set(seqs)))
    return found


def counted_by_duckdb(files: list[str], column: str = "_seq") -> tuple[int, int]:
    """Rows and distinct sequences of Parquet files."""
    query = f"SELECT count(*), count(DISTINCT {column}) FROM read_parquet(?, union_by_name=true)"
    found = duckdb.execute(query, [files]).fetchone()
    assert found is not None
    return found


def schema_of(table: Path, sink: str) -> pa.Schema:
    return ds.dataset(files_of(table, sink)).schema
