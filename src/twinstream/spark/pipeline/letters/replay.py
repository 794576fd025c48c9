"""Land dead letters again from their files, after a change of the schema.

Unlike a replay of batches, this does not need the messages in the stream. A letter stays in its
batch, whose number of messages does not change. Tasks decode the letters and write finished files.
The plan with the names of these files is stored. Then the letters that fit are added to the tables,
and removed from the dead letters. A crash in between leaves a plan that is not done. The next
command that changes the tables, and the next run, finish it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry, TableEntry
from twinstream.lake.letters_plan import LettersFile, LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.task_report import TaskFile, TaskReport
from twinstream.spark.errors import JournalError, OptionError
from twinstream.spark.landing.missing_tables import reports_of
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN, TableSplit
from twinstream.spark.pipeline.engines import engine_of
from twinstream.spark.pipeline.letters.check_landed import check_landed
from twinstream.spark.pipeline.letters.finish import finish
from twinstream.spark.pipeline.letters.letter_pages import BatchLetters, have_headers
from twinstream.spark.pipeline.letters.letters_job import LettersJob
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.plan_portions import plan_portions
from twinstream.spark.pipeline.letters.staged_letters import StagedLetters
from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.state.landed_rows import possible_tables, tables_of
from twinstream.spark.pipeline.state.source_state import SourceState, refuse_tables_of_others
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns
from twinstream.spark.source.read_columns import ERROR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["batches_with_letters", "replay_letters"]


# The number of letters from which several tasks are worth the start of their processes.
_MANY: Final = 50_000


def batches_with_letters(
    entries: Mapping[int, BatchEntry], low: int, high: int | None
) -> list[BatchEntry]:
    """Return the batches with dead letters that have sequences in `[low, high)`, ascending.

    If `high` is `None`, there is no upper bound.
    """
    return [
        each
        for each in entries.values()
        if each.dead_letters and each.end > low and (high is None or each.start < high)
    ]


def replay_letters(
    spark: SparkSession | None,
    config: PipelineConfig,
    source: SourceConfig,
    low: int = 0,
    high: int | None = None,
    *,
    tell: Callable[[int], None] = lambda _: None,
) -> LettersReport:
    """Land the dead letters of all batches that have sequences in `[low, high)` again.

    If a replay of the source was interrupted, it is finished first, and the report includes the
    letters that it lands.

    Args:
        spark: the session that runs the tasks, or `None` with `engine = "local"`.
        config: the pipeline.
        source: the source of the letters.
        low: the first sequence.
        high: the sequence after the last sequence; `None` means no upper bound.
        tell: called with the number of batches that are done each time.

    Raises:
        JournalError: if the rows of the batches are not those of the journal, perhaps because a
            replay from the stream was interrupted, if another source has landed into a table, or
            if a file is damaged. Nothing is changed.
        SchemaError: if the columns of the schema do not fit the tables. Nothing is changed.
        OptionError: if letters that still do not fit have headers, and the source includes none
            now. Nothing is changed.
        StorageError: if an object store does not answer, or if the lock in it was lost meanwhile.
            The next command that changes the tables finishes the replay.
        CheckpointError: if the tables have a part of an unfinished batch.
    """
    remaining = 0
    with (
        maintenance_lock(config, "letters replay") as held,
        engine_of(spark, config) as engine,
    ):
        state = SourceState.of(config, source, held.check)
        finished = held.finished[source.name]
        letters, changed = finished.letters, finished.batches
        known = state.journal.entries()
        refuse_tables_of_others(state.folders, source, state.sink, known)
        tables = tables_of(source, known.values())
        refuse_old_columns(state.sink, source, tables)
        possible = len({*tables, *possible_tables(source, state.sink)})
        for batches in plan_portions(batches_with_letters(known, low, high), possible):
            check_landed(state, source, tables, batches)
            # Without a change, `run` returns no entries, and all letters of the batches remain.
            entries = _Replay(state, source, batches, held.check).run(engine)
            letters += sum(each.dead_letters for each in batches)
            remaining += sum(each.dead_letters for each in entries or batches)
            changed += entries
            tell(len(batches))
    return LettersReport(source=source.name, letters=letters, left=remaining, batches=changed)


@frozen
class _Replay:
    """A replay of the letters of some batches, of which one plan changes all tables."""

    state: SourceState
    source: SourceConfig
    batches: list[BatchEntry]
    check: Callable[[], None]

    def run(self, engine: Engine) -> list[BatchEntry]:
        """Land the letters that fit. Return the entries of all batches; none without a change."""
        letters = self.state.journal.letters
        number = letters.next_number()
        staged = StagedLetters(self.state.folders, self._output(number))
        try:
            plan = self._plan(number, staged, self._decode(engine, number, staged))
            if plan is None:
                return []
            staged.settle()
            self.check()
            plan = letters.planned(plan)
            self.check()  # otherwise the plan may be that of the next owner of the lock
            return finish(self.state, self.source, plan)
        finally:
            if letters.unfinished() is None:
                staged.close()

    def _output(self, number: int, new: Sequence[str] = ()) -> LakeOutput | None:
        """Return where the tasks of a plan write files on an object store."""
        split = TableSplit(self.source.source_options, self.source.tables, self.batches[0].batch)
        return self.state.sink.output(f"{self.source.name}.letters-{number:09}-", split, new)

    def _decode(self, engine: Engine, number: int, staged: StagedLetters) -> list[TaskFile]:
        """Let tasks decode the letters, and return the files that the tasks have written.

        Each letter is in one of the files. Raises `JournalError` if the tasks have decoded another
        number of letters than the journal has.
        """
        numbers = [each.batch for each in self.batches]
        files = self.state.sink.files(self.source.dead_letters, numbers)
        lake = self.state.sink.lake
        letters = [BatchLetters(number, tuple(files[number]), lake) for number in numbers]
        options = evolve(self.source.source_options, slots=engine.slots)
        names, parts = self.source.tables, list(self._parts(letters, engine.slots))

        def decode(folder: Path | LakeOutput) -> list[TaskReport]:
            return LettersJob(options, names, self.source.stream, folder).run(engine, parts)

        reports = reports_of(
            decode,
            staged.folder,
            lambda new: self._output(number, new) or staged.folder,
            names,
            self.state.sink.existing,
        )
        written = [file for each in reports for file in each.files]
        found, known = sum(each.rows for each in written), sum(e.dead_letters for e in self.batches)
        if found != known:
            raise JournalError(
                f"source {self.source.name} has {found} dead letters of batches {numbers[0]} to"
                f" {numbers[-1]} in its files, and {known} in its journal; nothing was landed;"
                " please report this"
            )
        return written

    def _parts(self, letters: Sequence[BatchLetters], slots: int) -> Iterator[list[BatchLetters]]:
        """Divide the batches among tasks, with about as many letters each."""
        total = sum(each.dead_letters for each in self.batches)
        most = total if total < _MANY else -(-total // slots)
        part: list[BatchLetters] = []
        count = 0
        for entry, each in zip(self.batches, letters, strict=True):
            if part and count + entry.dead_letters > most:
                yield part
                part, count = [], 0
            part.append(each)
            count += entry.dead_letters
        yield part

    def _plan(
        self, number: int, staged: StagedLetters, written: Sequence[TaskFile]
    ) -> LettersPlan | None:
        """Return the plan that lands the files of the tasks, or `None` if no letter changes.

        No letter changes if none fits the schema and each has the same reason as before. Raises
        `SchemaError` if the files do not fit their tables, and `OptionError` if letters that stay
        would lose their headers.
        """
        by_table: dict[str, list[TaskFile]] = defaultdict(list)
        for file in written:
            by_table[file.table].append(file)
        letter_files = by_table.get(self.source.dead_letters, [])
        none_fits = len(letter_files) == len(written)
        if none_fits and self._stored_reasons() == self._reasons_in(letter_files):
            return None
        names = self.source.tables
        if names.token:
            names.refuse_many([*self.state.sink.existing(names.table), *by_table])
        if letter_files:
            self._refuse_loss_of_headers()
        for table, files in by_table.items():
            self.state.sink.check(table, [each.path for each in files])
        # The number of rows that each table gets, by the batch of the rows.
        rows: dict[int, dict[str, int]] = defaultdict(dict)
        planned_files: list[LettersFile] = []
        for file in written:
            batch = _batch_of(file)
            known = rows[batch].get(file.table, 0)
            rows[batch][file.table] = known + file.rows
            planned_files.append(LettersFile(file.table, batch, file.path.name, file.partition))
        return LettersPlan(
            number=number,
            newest=self.state.journal.newest(),
            folder=staged.name,
            files=tuple(planned_files),
            entries=tuple(self._entry_after(each, rows[each.batch]) for each in self.batches),
        )

    def _refuse_loss_of_headers(self) -> None:
        """Raise `OptionError` if the letters have headers that the source does not include."""
        if self.source.source_options.include_headers:
            return
        numbers = [each.batch for each in self.batches]
        by_batch = self.state.sink.files(self.source.dead_letters, numbers)
        files = {file for files in by_batch.values() for file in files}
        if have_headers(files, self.state.sink.lake):
            raise OptionError(
                "includeHeaders",
                f"dead letters of source {self.source.name} have headers, which those that still do"
                ' not fit would lose: set it to "true"; nothing was landed',
            )

    def _entry_after(self, entry: BatchEntry, rows: Mapping[str, int]) -> BatchEntry:
        """Return the entry of a batch after the replay, which gives `rows` rows to each table."""
        tables, letters = dict(entry.tables), self.source.dead_letters
        for table, added in rows.items():
            known = tables.get(table, TableEntry(rows=0, files=0, bytes=0))
            # The new file of letters replaces the old ones. Other tables only get further rows.
            total = added if table == letters else known.rows + added
            tables[table] = evolve(known, rows=total)
        remaining = rows.get(letters, 0)
        if not remaining:
            tables.pop(letters, None)
        return evolve(entry, replays=entry.replays + 1, dead_letters=remaining, tables=tables)

    def _stored_reasons(self) -> list[tuple[int, int, str]]:
        """Return the sequence, the batch and the reason of each letter in the table."""
        numbers = {each.batch for each in self.batches}
        end = max(each.end for each in self.batches)
        columns, seq = self._compared, self.source.seq_column
        found = self.state.sink.scan(self.source.dead_letters, columns, seq, 0, end, min(numbers))
        rows = (row for part in found for row in _reason_rows(part, columns))
        return sorted(row for row in rows if row[1] in numbers)

    def _reasons_in(self, files: Sequence[TaskFile]) -> list[tuple[int, int, str]]:
        """Return the sequence, the batch and the reason of each letter in the files of tasks."""
        store, paths = arrow_files(self.state.sink.lake), [str(each.path) for each in files]
        found = (pq.ParquetFile(path, filesystem=store).read(self._compared) for path in paths)
        return sorted(row for rows in found for row in _reason_rows(rows, self._compared))

    @property
    def _compared(self) -> list[str]:
        """The columns that show whether a replay would change a letter."""
        return [self.source.seq_column, BATCH_COLUMN, ERROR]


def _reason_rows(
    rows: pa.RecordBatch | pa.Table, columns: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    seqs, batches, reasons = (rows.column(name).to_pylist() for name in columns)
    return ((int(seq), batch, why) for seq, batch, why in zip(seqs, batches, reasons, strict=True))


def _batch_of(file: TaskFile) -> int:
    """Return the batch of a file's rows. A task writes a file for each batch."""
    return int(file.bounds[BATCH_COLUMN][0])
