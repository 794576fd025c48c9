"""Count the dead letters of a source by their reasons."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
from attrs import define, field, frozen

from twinstream.spark.pipeline.letters.reason_kind import kind_of_reason
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.read_columns import ERROR

__all__ = ["LettersSummary", "ReasonCount", "letters_of"]


@define
class ReasonCount:
    """The letters with reasons of one kind: their number, the first one and the last one.

    `first_time` and `last_time` are the times at which the stream stored the messages.
    """

    reason: str
    count: int
    first_seq: int
    first_time: datetime
    last_seq: int
    last_time: datetime

    def add(self, other: ReasonCount) -> None:
        """Include the letters of another count."""
        self.count += other.count
        self.first_seq = min(self.first_seq, other.first_seq)
        self.first_time = min(self.first_time, other.first_time)
        self.last_seq = max(self.last_seq, other.last_seq)
        self.last_time = max(self.last_time, other.last_time)


@frozen(kw_only=True)
class LettersSummary:
    """The dead letters of a source, the most frequent reason first.

    If `is_interrupted`, a replay of the letters is not finished, and some of them are in their
    tables already.
    """

    source: str
    reasons: list[ReasonCount] = field(factory=list[ReasonCount])
    is_interrupted: bool = False

    @property
    def letters(self) -> int:
        """The number of all letters."""
        return sum(each.count for each in self.reasons)


def letters_of(config: PipelineConfig, source: SourceConfig) -> LettersSummary:
    """Count the dead letters of a source. Sources with the format `raw` have none."""
    state = SourceState.of(config, source)
    if source.format == "raw":
        return LettersSummary(source=source.name)
    found: dict[str, ReasonCount] = {}
    seq, time = source.seq_column, source.time_column
    end = max((each.end for each in state.journal.entries().values()), default=0)
    for rows in state.sink.scan(source.dead_letters, [seq, time, ERROR], seq, 0, end, 0):
        for each in _counted(rows):
            known = found.setdefault(each.reason, each)
            if known is not each:
                known.add(each)
    return LettersSummary(
        source=source.name,
        reasons=sorted(found.values(), key=lambda each: (-each.count, each.reason)),
        is_interrupted=state.journal.letters.unfinished() is not None,
    )


def _counted(rows: pa.RecordBatch) -> list[ReasonCount]:
    """Count letters by their reasons. The columns are the sequence, the time and the reason."""
    columns = [rows.column(at) for at in range(3)]
    rows = pa.RecordBatch.from_arrays(columns, ["seq", "time", ERROR])
    ends = [(name, end) for name in ("seq", "time") for end in ("min", "max")]
    groups = pa.table(rows).group_by(ERROR).aggregate([(ERROR, "count"), *ends])
    return [_count_of(each) for each in groups.to_pylist()]


def _count_of(group: dict[str, Any]) -> ReasonCount:
    return ReasonCount(
        kind_of_reason(group[ERROR]),
        group[f"{ERROR}_count"],
        int(group["seq_min"]),
        group["time_min"],
        int(group["seq_max"]),
        group["time_max"],
    )
