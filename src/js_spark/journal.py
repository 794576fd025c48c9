"""What was landed, batch by batch: the truth about which sequences are in the tables.

Two small files serve a batch. The plan is written before anything is read, so that an interrupted
batch is finished with the same bounds. The entry is written after everything is in place; it is
the commit, and the next batch starts where it ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from js_spark.errors import JournalError
from js_spark.mark import Mark
from js_spark.offsets import Position
from js_spark.report import LandReport, TableReport

__all__ = ["Journal", "Plan"]

_FOLDER: Final = "journal"
_PLAN: Final = "_plan.json"


@frozen(kw_only=True)
class Plan:
    """The bounds of one batch, and the stream they belong to.

    ``created`` tells it from one that was made later, ``mark`` from an earlier state of it.
    """

    batch_id: int
    created: str
    start: int
    end: int
    mark: Mark | None = None

    @property
    def position(self) -> Position:
        """Where the stream stands behind the batch."""
        return Position(self.end, self.created, mark=self.mark)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Read what was stored."""
        return cls(**Mark.read_in(value))


class Journal:
    """The journal of one stream below a landing folder."""

    def __init__(self, root: Path, stream: str) -> None:
        self._folder: Final = root / _FOLDER / stream
        self._stream: Final = stream

    def plan(self) -> Plan | None:
        """Return the batch that was begun and not finished."""
        file = self._folder / _PLAN
        return Plan.from_json(_read(file)) if file.exists() else None

    def begin(self, plan: Plan) -> None:
        """Write the plan of the next batch."""
        _write(self._folder / _PLAN, asdict(plan))

    def commit(self, plan: Plan, report: LandReport) -> None:
        """Write the entry of a batch; from here on it is landed."""
        _write(self._entry(plan.batch_id), {"plan": asdict(plan), "report": asdict(report)})
        (self._folder / _PLAN).unlink(missing_ok=True)

    def last(self) -> Plan | None:
        """Return the plan of the last batch that is landed."""
        ids = self.batch_ids()
        return Plan.from_json(_read(self._entry(ids[-1]))["plan"]) if ids else None

    def batch_ids(self) -> list[int]:
        """Return the numbers of all landed batches, ascending."""
        if not self._folder.is_dir():
            return []
        return sorted(int(file.stem.partition("=")[2]) for file in self._folder.glob("batch_id=*"))

    def report(self, batch_id: int) -> LandReport:
        """Return what a batch landed."""
        found = _read(self._entry(batch_id))["report"]
        tables = tuple(TableReport(**each) for each in found.pop("tables"))
        return LandReport(**found, tables=tables)

    def _entry(self, batch_id: int) -> Path:
        return self._folder / f"batch_id={batch_id}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError) as error:
        raise JournalError(
            f"the journal file {file} cannot be read ({error}); it is written in one step, so"
            " something else changed it: restore it, or land into a new folder"
        ) from error


def _write(file: Path, value: dict[str, Any]) -> None:
    """Write a file in one step: whoever looks sees the old one, the new one or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    building = file.with_name(f".{file.name}.{os.getpid()}")
    with building.open("w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    building.replace(file)
