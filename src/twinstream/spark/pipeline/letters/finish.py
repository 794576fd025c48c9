"""Do what the plan of a replay of dead letters says, at first or after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pyarrow.fs import FileType

from twinstream.core.hooks import HOOKS, reached
from twinstream.lake.entry import BatchEntry
from twinstream.lake.letters_plan import LettersFile, LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import JournalError, PipelineBusy, SchemaError
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.outputs import DATA
from twinstream.spark.landing.split_tables import Place
from twinstream.spark.landing.staging import remove_staged
from twinstream.spark.landing.table_files import task_file
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.source_state import SourceState, journals_in
from twinstream.spark.pipeline.tables.sink import SourceWriter

__all__ = ["finish", "finish_before_run", "finish_interrupted", "planned_folders"]


def planned_folders(folders: Folders) -> set[str]:
    """Return the names of the folders of staged files that interrupted replays still need.

    Their sources may be those of another pipeline's file.
    """
    plans = (journal.letters.unfinished() for _, journal in journals_in(folders))
    return {plan.folder for plan in plans if plan is not None}


def finish_interrupted(
    config: PipelineConfig, source: SourceConfig, check: Callable[[], None]
) -> LettersReport:
    """Finish the replay of dead letters of a source that was interrupted, if there is one.

    The caller has the exclusive lock of the tables, of which `check` is. The files of the plan are
    finished, so neither the stream nor the schema matters. Return what was landed.
    """
    state = SourceState.of(config, source, check)
    plan = state.journal.letters.unfinished()
    if plan is None:
        return LettersReport(source=source.name, letters=0, left=0, batches=[])
    before = state.journal.entries()
    changed = finish(state, source, plan)
    landed = sum(before[each.batch].dead_letters - each.dead_letters for each in changed)
    return LettersReport(source=source.name, letters=landed, left=0, batches=changed)


def finish_before_run(config: PipelineConfig, state: SourceState) -> None:
    """Finish the replays of dead letters that were interrupted, before a source of a run starts.

    A command that works on the tables now does it, too.
    """
    if state.journal.letters.unfinished() is None:
        return
    purpose = f"pipeline run of {config.name}"
    with suppress(PipelineBusy), state.lock.alone(purpose, waits=False) as lock:
        for each in config.sources:
            finish_interrupted(config, each, lock.check)


def finish(state: SourceState, source: SourceConfig, plan: LettersPlan) -> list[BatchEntry]:
    """Add the letters that fit to their tables, and remove them from the dead letters.

    Each step can be repeated. The tables are changed first: after an interruption between the two,
    a letter exists twice, until this is done again, and is not lost. Return the new entries of the
    batches. There are none if the plan was dropped, because a run has changed the columns of a
    table since it was made. Then all letters stay.
    """
    origin = state.journal.origin()
    if origin is None:
        raise JournalError(f"the journal of source {source.name} has no origin; restore it")
    if HOOKS:
        reached("letters: before tables", plan)
    writer = SourceWriter(source.name, origin.id, source.seq_column)
    files = _staged_files(state, source, plan)
    if not plan.entries or not _fit(state, files, plan, writer):
        state.journal.letters.dropped(plan)
        remove_staged(state.folders.staging / plan.folder)
        return []
    letters = files.pop(source.dead_letters, {})
    for table, by_batch in sorted(files.items()):
        state.sink.add(table, by_batch, plan, writer)
    if HOOKS:
        reached("letters: before removal", plan)
    remaining = {each.batch: letters[each.batch] for each in plan.entries if each.batch in letters}
    # A batch without a remaining letter gets no file, which removes its rows from the table.
    no_files = {each.batch: list[TaskFile]() for each in plan.entries}
    state.sink.replace(source.dead_letters, no_files | remaining)
    if not state.journal.letters.landed(plan):
        for each in plan.entries:
            state.journal.replayed(each)
    remove_staged(state.folders.staging / plan.folder)
    return list(plan.entries)


def _fit(
    state: SourceState,
    files: Mapping[str, Mapping[int, Sequence[TaskFile]]],
    plan: LettersPlan,
    writer: SourceWriter,
) -> bool:
    """Return whether the files fit their tables, which may have got other columns meanwhile.

    Raises `SchemaError` if they do not, and a table has rows of the plan already.
    """
    try:
        for table, by_batch in files.items():
            added = [file.path for inside in by_batch.values() for file in inside]
            state.sink.check(table, added)
    except SchemaError:
        if any(state.sink.has_added(table, plan, writer) for table in files):
            raise
        return False
    return True


def _staged_files(
    state: SourceState, source: SourceConfig, plan: LettersPlan
) -> dict[str, dict[int, list[TaskFile]]]:
    """Return the files of each table and each batch. Raises `JournalError` if a file is gone."""
    found: dict[str, dict[int, list[TaskFile]]] = {}
    homes: dict[str, Path] = {}
    lake = state.sink.lake
    if lake is not None:
        homes = {table: state.sink.home(table) for table in {each.table for each in plan.files}}
    paths = [_staged_file(state.folders, homes, plan, each) for each in plan.files]
    infos = arrow_files(lake).get_file_info([str(path) for path in paths])
    for each, path, info in zip(plan.files, paths, infos, strict=True):
        if info.type == FileType.NotFound:
            raise JournalError(
                f"a replay of the dead letters of source {source.name} was interrupted, and its"
                f" file {info.path} is gone: restore it"
            )
        # The partition is in the plan: on an object store, the path does not have it.
        place, footer = Place(each.table, each.partition), Footer.of(path, lake)
        file = task_file(place, footer, source.seq_column, info.size)
        found.setdefault(each.table, {}).setdefault(each.batch, []).append(file)
    return found


def _staged_file(
    folders: Folders, homes: Mapping[str, Path], plan: LettersPlan, file: LettersFile
) -> Path:
    """Return the path of a file. In a lake on an object store, it is in the folder of its table."""
    if file.table in homes:
        return homes[file.table] / DATA / file.name
    return folders.staging / plan.folder / file.partition / file.name
