"""The journal of landed batches. It determines which sequences count as landed.

The journal has two small files for a batch. The plan is written before any message is read, so that
an interrupted batch is finished with the same bounds. The entry is written after all files are in
the tables. With the entry the batch is committed, and the plan is removed. The next batch starts
where the last committed batch ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from twinstream.core.hooks import HOOKS, reached
from twinstream.lake.stored_members import checked_members
from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.durable import read_json, write_json
from twinstream.spark.landing.report import LandReport, TableReport
from twinstream.spark.source.offsets import Position

__all__ = ["Journal", "Plan"]

_FOLDER: Final = "journal"
_PLAN: Final = "_plan.json"
_ENTRY: Final = re.compile(r"batch_id=(\d+)\.json", re.ASCII)


@frozen(kw_only=True)
class Plan:
    """The bounds of one batch, and the identity of its stream.

    `start` is inclusive, `end` is exclusive. `created` is the creation time of the stream,
    which distinguishes it from a later stream of the same name. `mark` is the last message of the
    stream, which shows whether the stream was restored to an earlier state.
    """

    batch_id: int
    created: str
    start: int
    end: int
    mark: Mark | None = None
    filter: str | None = None
    """Subject filters, separated by commas; `None` in plans of older releases."""

    @property
    def position(self) -> Position:
        """The position in the stream after the batch."""
        return Position(self.end, self.created, mark=self.mark)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Return the plan that a JSON object contains."""
        return cls(**checked_members(cls, Mark.read_in(value)))


class Journal:
    """The journal of one stream below a landing folder."""

    def __init__(self, root: Path, stream: str) -> None:
        self._folder: Final = root / _FOLDER / stream
        self._stream: Final = stream

    @property
    def lock(self) -> Path:
        """The file that is locked while a process lands the stream."""
        return self._folder / "_lock"

    def plan(self) -> Plan | None:
        """Return the plan of the unfinished batch, or `None` if there is none."""
        file = self._folder / _PLAN
        return read_json(file, Plan.from_json) if file.exists() else None

    def begin(self, plan: Plan) -> None:
        """Write the plan of the next batch."""
        write_json(self._folder / _PLAN, asdict(plan))

    def commit(self, plan: Plan, report: LandReport) -> None:
        """Commit a batch: write its entry, then remove its plan."""
        if HOOKS:
            reached("journal: before commit", plan)
        write_json(self._entry(plan.batch_id), {"plan": asdict(plan), "report": asdict(report)})
        (self._folder / _PLAN).unlink(missing_ok=True)

    def last(self) -> Plan | None:
        """Return the plan of the last landed batch, or `None` if no batch was landed."""
        ids = self.batch_ids()
        if not ids:
            return None
        return read_json(self._entry(ids[-1]), lambda found: Plan.from_json(found["plan"]))

    def batch_ids(self) -> list[int]:
        """Return the numbers of all landed batches, ascending.

        Raises `JournalError` for a file that looks like the entry of a batch but is not one.
        """
        if not self._folder.is_dir():
            return []
        return sorted(_number(file) for file in self._folder.glob("batch_id=*"))

    def report(self, batch_id: int) -> LandReport:
        """Return the report of a landed batch."""
        return read_json(self._entry(batch_id), _report)

    def _entry(self, batch_id: int) -> Path:
        return self._folder / f"batch_id={batch_id}.json"


def _report(entry: Mapping[str, Any]) -> LandReport:
    found = dict(entry["report"])
    tables = tuple(
        TableReport(**checked_members(TableReport, each)) for each in found.pop("tables")
    )
    return LandReport(**checked_members(LandReport, found), tables=tables)


def _number(file: Path) -> int:
    match = _ENTRY.fullmatch(file.name)
    if match is None:
        raise JournalError(
            f"{file} is not the entry of a batch, such as batch_id=7.json: another program put it"
            " there; move it away"
        )
    return int(match[1])
