"""Verify, against the stream and the journal, that the tables have every message exactly once.

Verification does not need Spark. Arrow reads the files of the tables, and the SDK's range reader
reads the stream. The leader of the stream confirms its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, pairwise
from typing import Final

import pyarrow as pa
from attrs import define, evolve, field

from twinstream.lake.entry import BatchEntry, of_one_stream
from twinstream.spark.landing.write_batch import position_of
from twinstream.spark.pipeline.located_source import located_source
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.held_messages import held_messages, windows
from twinstream.spark.pipeline.state.landed_rows import missing_of, read_landed, tables_of
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_identity import why_other

__all__ = ["Verdict", "verify"]

# The maximum number of sequences or batches that a problem lists.
_SHOWN: Final = 5


@define(kw_only=True)
class Verdict:
    """The result for one source, from sequence `start` up to, not including, `end`.

    The source's tables have `rows` rows, including dead letters, with `distinct` different
    sequences. The stream still has `held` messages of the range; `missing` of these messages
    are in no table. `gaps` is the number of sequences that neither the tables nor the stream
    have. The messages of these sequences were deleted, filtered out, or removed by limits before
    they were landed. `problems` is empty if every message is in the tables once, and if the
    batches in the tables match the journal.
    """

    source: str
    start: int = 0
    end: int = 0
    batches: int = 0
    rows: int = 0
    distinct: int = 0
    dead_letters: int = 0
    held: int = 0
    missing: int = 0
    gaps: int = 0
    problems: list[str] = field(factory=list[str])

    @property
    def passed(self) -> bool:
        """Whether there are no `problems`."""
        return not self.problems


def verify(
    config: PipelineConfig, tell: Callable[[str, int, int], None] = lambda name, done, total: None
) -> Iterator[Verdict]:
    """Verify each source, and yield its verdict.

    The callback `tell` is called with the source's name, the number of sequences that are
    verified so far, and the number of all sequences to verify. A batch that is not in the journal
    yet is not verified. Raises `JournalError` if a file of a table is damaged, and
    `OptionError` if a stream does not exist.
    """
    sink = open_sink(config)
    for source in config.sources:
        journal = journal_of(Folders.of(config.path), source)
        verdict = _verify(sink, located_source(source), journal.entries(), tell)
        if journal.letters.unfinished() is not None:
            verdict.problems.append(
                "a replay of dead letters is not finished; if it was interrupted, the next"
                " twinstream pipeline run finishes it"
            )
        yield verdict


def _verify(
    sink: Sink,
    source: SourceConfig,
    entries: dict[int, BatchEntry],
    tell: Callable[[str, int, int], None],
) -> Verdict:
    """Compare the tables of a source with its stream and its journal, and return the verdict.

    If the stream was re-created since the newest batch, the tables are not read.
    """
    verdict = Verdict(source=source.name)
    if not entries:
        return verdict
    newest = entries[max(entries)]
    current = of_one_stream(entries)
    verdict.start, verdict.end = current[min(current)].start, newest.end
    verdict.batches = len(current)
    verdict.dead_letters = sum(each.dead_letters for each in current.values())
    with Leader(source.source_options) as leader:
        (state,) = leader.states()
        reason = why_other(position_of(newest), state, leader.time_at)
        # A stream that was restored to an earlier state keeps its creation time. The messages that
        # it has can still be compared.
        is_recreated = state.created != newest.created and reason is not None
        if is_recreated:
            verdict.problems.append(f"{reason}; there is nothing to compare the tables with")
            return verdict
        rows_by_batch = _compare_messages(verdict, sink, source, entries, leader, tell)
    verdict.gaps = verdict.end - verdict.start - verdict.distinct - verdict.missing
    # If later messages may replace messages that are not landed yet, a batch may begin after a gap.
    strict = source.source_options.fail_on_data_loss and not state.keeping.replaces
    _check_batches(verdict, current, rows_by_batch, strict=strict)
    return verdict


def _compare_messages(
    verdict: Verdict,
    sink: Sink,
    source: SourceConfig,
    entries: Mapping[int, BatchEntry],
    leader: Leader,
    tell: Callable[[str, int, int], None],
) -> Counter[int]:
    """Compare the rows of the tables with the messages of the stream, window by window.

    Add the numbers and the problems of each window to the verdict. Return the number of rows of
    each batch that was landed from the current stream.
    """
    current = of_one_stream(entries)
    first_batch, newest_batch = min(current), max(current)
    tables = tables_of(source, entries.values())
    rows_by_batch: Counter[int] = Counter()
    for low, high, options in _windows(source, current):
        # A run may have landed further batches since the entries were read.
        all_rows = read_landed(sink, source, tables, low, high).up_to(newest_batch)
        landed = all_rows.since(first_batch)
        held = held_messages(leader.jet(), options, low, high)
        _compare(verdict, landed.doubles(_SHOWN), missing_of(held, landed.rows))
        _compare_generations(verdict, all_rows.landed_again(first_batch, _SHOWN))
        verdict.rows += landed.count
        verdict.distinct += landed.distinct
        verdict.held += held.num_rows
        rows_by_batch.update(landed.by_batch())
        # Otherwise the memory grows with the number of windows.
        pa.default_memory_pool().release_unused()
        tell(source.name, high - verdict.start, verdict.end - verdict.start)
    return rows_by_batch


def _windows(
    source: SourceConfig, entries: Mapping[int, BatchEntry]
) -> Iterator[tuple[int, int, SourceOptions]]:
    """Split the range of the batches into windows, each with the subject filter of its batches.

    Yield `(low, high, options)`: the sequences `[low, high)`, and the source's options with
    the subjects that the batches of the window landed.
    """
    now = source.source_options
    groups = [list(each) for _, each in groupby(entries.values(), lambda entry: entry.filter)]
    ends = [group[0].start for group in groups[1:]] + [groups[-1][-1].end]
    for group, end in zip(groups, ends, strict=True):
        subjects = group[0].filter
        options = evolve(now, subjects=tuple(subjects.split(",")) if subjects else ())
        yield from ((low, high, options) for low, high in windows(group[0].start, end))


def _compare(verdict: Verdict, doubles: list[int], missing: list[int]) -> None:
    if doubles:
        verdict.problems.append(f"sequences with more than one row: {_text_of(doubles)}")
    if missing:
        verdict.missing += len(missing)
        verdict.problems.append(
            f"{len(missing)} messages of the stream are in no table: {_text_of(missing)}"
        )


def _compare_generations(verdict: Verdict, again: list[int]) -> None:
    if again:
        verdict.problems.append(
            "messages that batches of an earlier stream of this name also have (perhaps it was"
            f" restored): {_text_of(again)}"
        )


def _check_batches(
    verdict: Verdict,
    entries: dict[int, BatchEntry],
    rows_by_batch: Counter[int],
    *,
    strict: bool,
) -> None:
    """Add a problem for each batch whose rows or whose start do not match the journal.

    Batches never overlap. If `strict` is false, a batch may begin after a gap of removed messages.
    """
    for number, entry in entries.items():
        if rows_by_batch[number] != entry.messages:
            verdict.problems.append(
                f"batch {number} has {rows_by_batch[number]} rows in the tables, the journal has"
                f" {entry.messages}"
            )
    unknown = sorted(rows_by_batch.keys() - entries.keys())
    if unknown:
        verdict.problems.append(f"rows of batches that are not in the journal: {_text_of(unknown)}")
    for before, after in pairwise(entries.values()):
        overlaps = after.start < before.end
        leaves_gap = after.start > before.end
        if overlaps or (leaves_gap and strict):
            verdict.problems.append(
                f"batch {after.batch} begins at {after.start}, the one before ended at {before.end}"
            )


def _text_of(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return f"{shown}, …" if len(numbers) > _SHOWN else shown
