"""Check that the tables have the rows of batches that the journal says, before letters move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from twinstream.lake.entry import BatchEntry
from twinstream.lake.objects.files import arrow_files
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.pipeline.tables.parquet_files import damage_named

__all__ = ["check_landed"]


def check_landed(
    state: SourceState, source: SourceConfig, tables: Iterable[str], batches: Sequence[BatchEntry]
) -> None:
    """Compare the rows that batches have in the tables of their source with the journal.

    A replay from the stream changes the tables one after the other, and then the journal. If it was
    interrupted, a letter may be in two tables, and a message in none. Raises `JournalError` if a
    batch has another number of rows or of letters, or if a letter is in another table, too.
    """
    numbers = [each.batch for each in batches]
    letters = set[tuple[int, int]]()
    rows, dead, twice = Counter[int](), Counter[int](), Counter[int]()
    for seqs, of_batches in _rows(state, source.dead_letters, source.seq_column, numbers):
        dead.update(of_batches.to_pylist())
        letters.update(zip(of_batches.to_pylist(), seqs.to_pylist(), strict=True))
    wanted = pa.array({seq for _, seq in letters}, pa.uint64())
    for table in tables:
        if table == source.dead_letters:
            continue
        for seqs, of_batches in _rows(state, table, source.seq_column, numbers):
            rows.update({e["values"]: e["counts"] for e in pc.value_counts(of_batches).to_pylist()})
            # A stream that was created again has the same sequences in other batches.
            known = pc.is_in(seqs, wanted)
            found = (each.filter(known).to_pylist() for each in (of_batches, seqs))
            twice.update(key[0] for key in zip(*found, strict=True) if key in letters)
    for each in batches:
        number = each.batch
        if (rows[number], dead[number], twice[number]) != (each.rows, each.dead_letters, 0):
            raise JournalError(
                f"batch {number} of source {source.name} has {rows[number]} rows and"
                f" {dead[number]} dead letters in its tables, of which {twice[number]} are both;"
                f" its journal has {each.rows} and {each.dead_letters}: a replay from the stream"
                " was interrupted, or another program changed the tables; nothing was landed;"
                f" first run twinstream pipeline replay --from {each.start} --to {each.end - 1}"
            )


def _rows(
    state: SourceState, table: str, seq: str, numbers: Sequence[int]
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the sequences, of the column `seq`, and the batches of the rows of some batches."""
    by_batch, lake = state.sink.files(table, numbers), state.sink.lake
    names = sorted({str(file) for files in by_batch.values() for file in files})
    if not names:
        return
    store = arrow_files(lake)
    with damage_named(names, [seq, BATCH_COLUMN], lake):
        # Sequences are decimals if uint64=decimal.
        kind = pq.read_schema(names[0], filesystem=store).field(seq).type
        columns = pa.schema([(seq, kind), (BATCH_COLUMN, pa.int64())])
        found = ds.dataset(names, schema=columns, filesystem=store)
        for part in found.to_batches(filter=ds.field(BATCH_COLUMN).isin(numbers)):
            yield part.column(seq).cast(pa.uint64()), part.column(BATCH_COLUMN)
