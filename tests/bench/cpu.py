"""CPU seconds of this process and of everything that it started, from ``/proc``.

On a busy machine the clock tells what others do; CPU seconds tell what the work costs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["cpu_seconds"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all its descendants, ended ones included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            pid = int(entry.name)
            parents[pid] = int(fields[1])
            # User and system time, its own and that of children which it has waited for.
            ticks[pid] = sum(map(int, fields[11:15]))
    own = os.getpid()
    return sum(ticks[pid] for pid in ticks if _descends(pid, own, parents)) / _TICKS


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != root:
        pid = parents[pid]
    return pid == root
