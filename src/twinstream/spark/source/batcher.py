"""Convert pages of stored messages to Arrow record batches with the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.records.entry import KeyValueOperation
from twinstream.spark.decode import fields
from twinstream.spark.decode.delete_markers import key_markers_in, markers_in
from twinstream.spark.decode.payload import EventPayloads, JsonPayloads, Payload, PayloadDecoder
from twinstream.spark.errors import DecodeFailure
from twinstream.spark.source.bucket_options import BucketOptions
from twinstream.spark.source.columns import Part, key_array, part
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ERROR, EXTRA, OPERATION, ReadColumns

__all__ = ["BAD_HEADERS", "Batcher"]

BAD_HEADERS: Final = "headers: not a NATS header block"
"""How the reason begins why a message with a malformed header block is a dead letter."""

_VERSION: Final = b"NATS/1.0"
_PUT: Final = KeyValueOperation.PUT.name


@frozen
class _Block:
    """A page of messages of `stream`, from which the columns are built.

    `payload` has the decoded payloads, or is `None` for raw reads. `markers` has the
    operations of delete markers, by the position of the message in the page.
    """

    page: ArrowPage
    stream: str
    payload: Payload | None
    markers: Mapping[int, str]


class Batcher:
    """A builder of record batches with exactly the requested columns.

    Raises `SchemaError` for columns that the read does not offer.
    """

    def __init__(self, options: SourceOptions, requested: pa.Schema) -> None:
        layout = ReadColumns(options, requested)
        layout.check(requested)
        self.schema: Final = pa.schema(map(fields.bare_field, requested))
        self._mode: Final = options.mode
        self._decoder: Final = _decoder(options, layout, requested)
        self._builders: Final = [_builder(layout, name, options) for name in requested.names]
        self._checks_headers: Final = options.include_headers
        self._finds_markers: Final = options.value_format == "json"
        self._bucket: Final = options.bucket

    def build(self, page: ArrowPage, stream: str) -> pa.RecordBatch:
        """Return the rows of a page.

        Raises `DecodeFailure` if the mode is FAILFAST and a message does not match the schema.
        """
        markers = {} if self._bucket is None else key_markers_in(page)
        payload = None if self._decoder is None else self._decode(self._decoder, page, markers)
        # A delete marker has no payload, so the decoder also counts it as a misfit.
        if payload is not None and payload.misfits and self._finds_markers:
            if self._bucket is None:
                markers = markers_in(page, payload.misfits)
            payload = payload.without_misfits(markers)
        block = _Block(page, stream, payload, markers)
        if payload is not None and payload.misfits and self._mode == "FAILFAST":
            at, reason = min(payload.misfits.items())
            raise DecodeFailure(stream, page.seqs[at].as_py(), reason)
        arrays = [build(block) for build in self._builders]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        omitted = self._omitted(block)
        if omitted:
            kept = [at not in omitted for at in range(len(page))]
            batch = batch.filter(pa.array(kept, pa.bool_()))
        return batch

    def _omitted(self, block: _Block) -> set[int]:
        """Return the positions of messages that give no row.

        These are messages that do not match the schema with mode DROPMALFORMED, and the markers of
        a bucket with `deletes=false`.
        """
        omitted: set[int] = set()
        if block.payload is not None and self._mode == "DROPMALFORMED":
            omitted.update(block.payload.misfits)
        if self._bucket is not None and not self._bucket.deletes:
            omitted.update(block.markers)
        return omitted

    def _decode(
        self, decoder: PayloadDecoder, page: ArrowPage, markers: Mapping[int, str]
    ) -> Payload:
        """Return the decoded payloads of a page.

        If the read includes headers, a message with malformed headers does not match the schema.
        Its payload and the payloads of delete markers are not decoded.
        """
        bad = _malformed_headers(page) if self._checks_headers else {}
        if not bad and not markers:
            return decoder.decode(page.payloads)
        without = {*bad, *markers}
        rows = page.payloads.to_pylist()
        payloads = [b"" if at in without else row for at, row in enumerate(rows)]
        found = decoder.decode(pa.array(payloads, pa.binary()))
        return evolve(found, misfits={**found.misfits, **bad})


def _malformed_headers(page: ArrowPage) -> dict[int, str]:
    """Return why headers cannot be parsed, by the position of the message in the page."""
    if pc.all(pc.or_(_is_empty(page.headers), pc.starts_with(page.headers, _VERSION))).as_py():
        return {}
    return {
        at: f"{BAD_HEADERS}: {block[:40]!r}"
        for at, block in enumerate(page.headers.to_pylist())
        if block and not block.startswith(_VERSION)
    }


def _is_empty(blocks: pa.Array) -> pa.Array:
    return pc.equal(pc.binary_length(blocks), 0)


def _decoder(
    options: SourceOptions, layout: ReadColumns, requested: pa.Schema
) -> PayloadDecoder | None:
    if options.value_format == "raw":
        return None
    if options.value_format == "advisory":
        return EventPayloads()
    return JsonPayloads(
        layout.payload,
        # If the user gave a Spark schema, a string column accepts any JSON value as its text, as
        # Spark's `from_json` does.
        lenient=options.json_schema is None,
        keep_extras=EXTRA in requested.names,
        renames=dict(options.renames),
    )


def _builder(
    layout: ReadColumns, name: str, options: SourceOptions
) -> Callable[[_Block], pa.Array]:
    """Return the function that builds the column `name` of a page.

    In typed reads, the columns of parts of the message have names that begin with `_`.
    """
    if name in layout.payload.names:
        return lambda block: _payload(block).column(name)
    if name == EXTRA:
        return lambda block: _payload(block).extras
    if name == ERROR:
        return _errors
    if name == layout.raw_column and layout.is_typed:
        return _misfit_payloads
    own_name = name.removeprefix("_") if layout.is_typed else name
    if options.bucket is not None and own_name in {"key", "value", "operation"}:
        return _bucket_builder(own_name, options.bucket)
    if name == OPERATION and layout.is_typed:
        return _operations
    build: Part = part(own_name, options.uint64)
    return lambda block: build(block.page, block.stream)


def _bucket_builder(name: str, bucket: BucketOptions) -> Callable[[_Block], pa.Array]:
    if name == "key":
        return lambda block: key_array(block.page.subjects, bucket.prefix)
    return _values if name == "value" else _key_operations


def _values(block: _Block) -> pa.Array:
    """Return the payloads, with null for markers."""
    if not block.markers:
        return block.page.payloads
    return _nulls_at(block.page.payloads, block.markers)


def _key_operations(block: _Block) -> pa.Array:
    if not block.markers:
        return pa.repeat(pa.scalar(_PUT, pa.string()), len(block.page))
    found = [block.markers.get(at, _PUT) for at in range(len(block.page))]
    return pa.array(found, pa.string())


def _payload(block: _Block) -> Payload:
    if block.payload is None:
        raise RuntimeError("a column of the payload without a decoded payload")
    return block.payload


def _errors(block: _Block) -> pa.Array:
    misfits = _payload(block).misfits
    if not misfits:
        return pa.nulls(len(block.page), pa.string())
    return pa.array([misfits.get(at) for at in range(len(block.page))], pa.string())


def _operations(block: _Block) -> pa.Array:
    if not block.markers:
        return pa.nulls(len(block.page), pa.string())
    return pa.array([block.markers.get(at) for at in range(len(block.page))], pa.string())


def _misfit_payloads(block: _Block) -> pa.Array:
    misfits = _payload(block).misfits
    if not misfits:
        return pa.nulls(len(block.page), pa.binary())
    fitting = [at for at in range(len(block.page)) if at not in misfits]
    return _nulls_at(block.page.payloads, fitting)


def _nulls_at(payloads: pa.Array, positions: Iterable[int]) -> pa.Array:
    """Return the payloads, with null at some positions."""
    places: list[int | None] = list(range(len(payloads)))
    for at in positions:
        places[at] = None
    return payloads.take(pa.array(places, pa.int64()))
