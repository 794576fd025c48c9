"""Decode dead letters again, in tasks that write files for the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from twinstream.lake.engine import Engine
from twinstream.lake.task_report import TaskFile, TaskReport
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import TableNames, TableSplit
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline.letters.letter_pages import BatchLetters, LetterPage
from twinstream.spark.pipeline.letters.letters_by_batch import letters_by_batch
from twinstream.spark.source.columns import MessageColumns
from twinstream.spark.source.options import SourceOptions

__all__ = ["LettersJob"]


@frozen
class LettersJob:
    """A job that decodes the dead letters of batches of one stream to files in `folder`.

    A file has rows of one batch for one partition of a table. Letters that still do not fit are
    written for the table of dead letters, with the reason of now.
    """

    options: SourceOptions
    names: TableNames
    stream: str
    folder: Path | LakeOutput

    def run(self, engine: Engine, parts: Sequence[Sequence[BatchLetters]]) -> list[TaskReport]:
        """Run one task for each part, and return the reports of all tasks."""
        return engine.run(self.land, parts, "")

    def land(self, part: Sequence[BatchLetters]) -> TaskReport:
        """Do the work of one task: decode the letters of some batches, and report the files."""
        batches = letters_by_batch(part, self.options.corrupt_column)
        files: list[TaskFile] = []
        missing: list[str] = []
        for each in batches:
            written = self._batch(*each)
            is_bucket = self.options.bucket is not None
            files += written.finish(MessageColumns.of("json", is_bucket=is_bucket).seq)
            missing += written.missing
        first = min((each.first for each in files), default=0)
        end = max((each.last + 1 for each in files), default=first)
        return TaskReport(first, end, tuple(files), tuple(missing))

    def _batch(self, letters: BatchLetters, pages: Iterable[LetterPage]) -> TableFiles:
        tables = TableSplit(self.options, self.names, letters.batch)
        files = TableFiles(self.folder, self.names.files)
        for page in pages:
            for place, rows in tables.split(page.messages, self.stream):
                files.add(place, rows)
        return files
