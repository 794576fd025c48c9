"""Divide rows among the partitions of a table, and name partitions as Hive does.

The partition of a file is a text such as `region=eu/timestamp_day=2026-11-30`, the path of its
folder in a Parquet table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import OptionError
from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.landing.partitions import Partition, partitions_in, with_partitions

__all__ = [
    "NULL",
    "by_value",
    "divided",
    "partition_of",
    "partition_with",
    "values_of",
    "with_values",
]

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The text of null, and of an empty text, in the name of a folder."""

# The signs that Hive and Spark escape. They decode other escapes one byte at a time, so no other
# sign may be escaped.
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")

# Bytes of the name of a file or folder, on usual file systems.
_LONGEST: Final = 255


def divided(
    rows: pa.RecordBatch, partitions: Sequence[Partition]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield each partition for which there are rows, and its rows in their order.

    The rows keep all their columns. The cost does not grow with the number of partitions.
    """
    if not partitions:
        yield "", rows
        return
    codes: pa.Array = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    names = [""]
    for each in partitions:
        found = each.values(rows).dictionary_encode(null_encoding="encode")
        texts = found.dictionary.cast(pa.string()).to_pylist()
        folder = _exact if each.stored else _folder
        folders = [folder(each.name, text) for text in texts]
        size = len(folders)
        both = pc.add(pc.multiply(codes, size), found.indices.cast(pa.int64()))
        distinct = both.dictionary_encode()
        pairs = (divmod(code, size) for code in distinct.dictionary.to_pylist())
        names = [f"{names[a]}/{folders[b]}".lstrip("/") for a, b in pairs]
        codes = distinct.indices.cast(pa.int64())
    yield from ((names[code], inside) for code, inside in _by_code(rows, codes))


def by_value(rows: pa.RecordBatch, values: pa.Array) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Yield each of the values, which are texts, and the rows for which it is the value."""
    found = values.dictionary_encode(null_encoding="encode")
    texts = found.dictionary.to_pylist()
    yield from ((texts[code], inside) for code, inside in _by_code(rows, found.indices))


def _by_code(rows: pa.RecordBatch, codes: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not rows.num_rows:
        return
    if pc.all(pc.equal(codes, codes[0])).as_py():
        yield codes[0].as_py(), rows
        return
    order = pc.array_sort_indices(codes)  # keeps the order of equal values
    sorted_rows, sorted_codes = rows.take(order), codes.take(order)
    start = 0
    for run in pc.run_end_encode(sorted_codes).run_ends.to_pylist():
        yield sorted_codes[start].as_py(), sorted_rows.slice(start, run - start)
        start = run


def _folder(name: str, text: str | None) -> str:
    # Hive and Delta have no empty text in a partition.
    value = _ESCAPED.sub(lambda sign: f"%{ord(sign[0]):02X}", text) if text else NULL
    # deltalake, which compacts Delta tables, escapes all other signs in the names of its folders.
    size = len(f"{name}={quote(text or NULL, safe='')}")
    if size > _LONGEST:
        raise OptionError(
            "partition_by",
            f"a value of {name} has {size} bytes as the escaped name of a folder, {value[:40]!r}…,"
            f" and {_LONGEST} are possible: land into another table, with other partitions",
        )
    return f"{name}={value}"


def _exact(name: str, text: str | None) -> str:
    """Return the text of a stored value, of any size. Null has no `=`, unlike an empty text."""
    if text is None:
        return name
    # With the escape of "_", no value is `NULL`.
    return f"{name}={quote(text, safe='').replace('_', '%5F')}"


def values_of(partition: str) -> dict[str, str | None]:
    """Return the text of each value of a partition, by the name of its column."""
    found = (folder.partition("=") for folder in partition.split("/") if folder)
    return {name: unquote(value) if sign and value != NULL else None for name, sign, value in found}


def partition_with(values: Mapping[str, Any]) -> str:
    """Return the partition with these values, by the names of their columns."""
    texts = {name: pa.array([each]).cast(pa.string())[0].as_py() for name, each in values.items()}
    return "/".join(_folder(name, text) for name, text in texts.items())


def partition_of(file: Path) -> str:
    """Return the partition of a file by the folders in which it is."""
    found: list[str] = []
    for folder in reversed(file.parts[:-1]):
        if "=" not in folder or folder.startswith(BATCH_FOLDER):
            break
        found.append(folder)
    return "/".join(reversed(found))


def with_values(
    files: Sequence[TaskFile], columns: pa.Schema, lake: ObjectFolder | None = None
) -> ds.Dataset:
    """Return the rows of files, whose columns are `columns`, with the values of their partitions.

    If `lake` is given, the paths are relative to it.
    """
    store, added = arrow_files(lake), [field for _, field in partitions_in(columns)]
    if not added:
        return ds.dataset([str(file.path) for file in files], schema=columns, filesystem=store)
    form = ds.ParquetFileFormat()
    fragments = [
        form.make_fragment(
            str(file.path), store, partition_expression=_equal(file.partition, added)
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, with_partitions(columns), form, store)


def _equal(partition: str, columns: Sequence[pa.Field]) -> ds.Expression:
    texts = values_of(partition)
    found: ds.Expression | None = None
    for column in columns:
        text, field = texts[column.name], ds.field(column.name)
        each = (
            field.is_null()
            if text is None
            else field == pa.scalar(text, pa.string()).cast(column.type)
        )
        found = each if found is None else found & each
    assert found is not None
    return found
