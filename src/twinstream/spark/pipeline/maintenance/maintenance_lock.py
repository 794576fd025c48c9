"""Lock the tables of a pipeline for work that must not run while something is unfinished."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from twinstream.spark.errors import CheckpointError, SparkSourceError
from twinstream.spark.pipeline.letters.finish import finish_interrupted
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.pipeline.tables.table_lock import TableLock

__all__ = ["folder_of_files", "maintenance_lock"]


def folder_of_files(config: PipelineConfig, purpose: str) -> Path:
    """Return the folder with the tables. Raises `SparkSourceError` if it is on an object store."""
    if isinstance(config.path, Path):
        return config.path
    raise SparkSourceError(
        f"pipeline {purpose} is for lakes on a file system, and this one is {config.path}: land the"
        " messages into another folder, with the start that you need"
    )


@contextmanager
def maintenance_lock(
    config: PipelineConfig, purpose: str, *, may_be_planned: bool = False
) -> Generator[Mapping[str, LettersReport]]:
    """Lock the tables of a pipeline for the block, after checking that no batch is unfinished.

    A replay of dead letters that was interrupted is finished first. The value of the block is what
    was landed so, by the name of the source. If the pipeline runs, this function waits until the
    current batches are landed, and the pipeline begins no batch until the block ends. `purpose` is
    shown in the errors of other commands. With `may_be_planned`, an unfinished batch is no reason
    to refuse as long as no table has rows of it.
    Raises `PipelineBusy` while another command has the lock, and `CheckpointError` if a batch was
    interrupted.
    """
    folders = Folders.of(config.path)
    with TableLock(folders).alone(f"pipeline {purpose} of {config.name}"):
        finished: dict[str, LettersReport] = {}
        for source in config.sources:
            finished[source.name] = finish_interrupted(config, source)
            _refuse_unfinished(config, source, may_be_planned=may_be_planned)
        yield finished


def _refuse_unfinished(
    config: PipelineConfig, source: SourceConfig, *, may_be_planned: bool
) -> None:
    state = SourceState.of(config, source)
    plan = state.journal.unfinished()
    if plan is None:
        return
    tables = possible_tables(source, state.sink)
    is_held = any(state.sink.holds(table, plan.batch) for table in tables)
    if may_be_planned and not is_held:
        return
    schema = ", with the schema that it began with" if may_be_planned else ""
    raise CheckpointError(
        f"a batch of source {source.name} was interrupted; finish it first{schema}:"
        " twinstream pipeline run --once"
    )
