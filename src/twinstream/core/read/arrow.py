"""Pages of stored messages as Arrow arrays. pyarrow is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.page import StoredPage
from twinstream.errors import Unsupported
from twinstream.records.headers import Headers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "arrow_schema",
    "header_array",
    "header_pairs",
    "record_batch",
    "require_arrow",
    "table",
    "text_array",
]


def require_arrow() -> None:
    """Raise `Unsupported` if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise Unsupported("Arrow tables need pyarrow: pip install pyarrow")


def arrow_schema() -> pa.Schema:
    """Return the Arrow schema of stored messages: subject, seq, time, headers, data.

    `time` is in nanoseconds, UTC. `headers` maps each name to all its values, and is null for a
    message without headers. `seq` is a signed integer, so a read raises `Unsupported` for sequences
    from 2**63 up. Raises `Unsupported` if pyarrow is not installed.
    """
    require_arrow()
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("subject", pa.string()),
            pa.field("seq", pa.int64()),
            pa.field("time", pa.timestamp("ns", "UTC")),
            pa.field("headers", pa.map_(pa.string(), pa.list_(pa.string()))),
            pa.field("data", pa.binary()),
        ]
    )


def record_batch(page: StoredPage) -> pa.RecordBatch:
    """Return a page as a record batch of `arrow_schema`.

    Raises `Unsupported` for a sequence from 2**63 up.
    """
    import pyarrow as pa

    schema = arrow_schema()
    columns = ArrowPage.of(page)
    arrays = [
        text_array(columns.subjects),
        _signed(columns.seqs),
        columns.times,
        header_array(columns.headers, schema.field("headers").type),
        columns.payloads,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _signed(seqs: pa.Array) -> pa.Array:
    import pyarrow as pa

    if seqs.type == pa.int64():
        return seqs
    raise Unsupported(
        f"sequence {seqs[-1]} does not fit into the column seq, a signed 64-bit integer: iterate"
        " over the messages of the read, or read its pages with `next_page`"
    )


def table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return record batches as one table."""
    import pyarrow as pa

    return pa.Table.from_batches(batches, schema=arrow_schema())


def text_array(values: pa.Array) -> pa.Array:
    """Return bytes as text. Bytes that are not UTF-8, which subjects may contain, become U+FFFD."""
    import pyarrow as pa

    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts: list[bytes] = values.to_pylist()
        return pa.array([each.decode("utf-8", "replace") for each in texts], pa.string())


def header_array(blocks: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return header blocks as Arrow maps of type `kind`, null for a message without headers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.max(pc.binary_length(blocks)).as_py():
        return pa.nulls(len(blocks), kind)
    return pa.array([header_pairs(each) for each in blocks.to_pylist()], kind)


def header_pairs(block: bytes) -> list[tuple[str, list[str]]] | None:
    """Return each name in a stored header block with all its values, or None for an empty block.

    For a malformed block (see `Headers.malformed`), the first pair has an empty name. Its value is
    the whole block, with escapes for bytes that are not UTF-8.
    """
    if not block:
        return None
    headers = Headers.parse(block)
    pairs = [(_clean(name), [_clean(each) for each in headers.get_all(name)]) for name in headers]
    if not headers.malformed:
        return pairs
    raw = headers.malformed.decode("utf-8", "backslashreplace")
    return [("", [raw]), *(pair for pair in pairs if pair[0])]


def _clean(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
