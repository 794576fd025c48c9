"""This process and everything that it started: their CPU and their memory, from `/proc`.

On a busy machine the clock tells what others do; CPU seconds tell what the work costs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Process", "cpu_seconds", "family"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One process; `cpu` in seconds holds that of ended children, `resident` is in bytes."""

    pid: int
    parent: int
    command: str
    cpu: float
    resident: int

    @property
    def own(self) -> int:
        """The bytes that are in no file, with its share of those that other processes have, too.

        Resident memory also has the pages of libraries, which may be those of all processes.
        """
        try:
            lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it ended meanwhile
            return 0
        return sum(int(each.split()[1]) * 1024 for each in lines if each.startswith("Pss_Anon:"))


def family() -> list[Process]:
    """Return this process and all its descendants."""
    everyone = {each.pid: each for each in _everyone()}
    return [each for each in everyone.values() if _descends(each, everyone)]


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all its descendants, ended ones included."""
    return sum(each.cpu for each in family())


def _everyone() -> Iterator[Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            command = (entry / "cmdline").read_text("utf-8", "replace").replace("\0", " ")
        except OSError:  # it ended meanwhile
            continue
        # User and system time, its own and that of children which it has waited for.
        cpu = sum(map(int, fields[11:15])) / _TICKS
        yield Process(int(entry.name), int(fields[1]), command, cpu, int(fields[21]) * _PAGE)


def _descends(process: Process, everyone: dict[int, Process]) -> bool:
    own, pid = os.getpid(), process.pid
    while pid in everyone and pid != own:
        pid = everyone[pid].parent
    return pid == own
