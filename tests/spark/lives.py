"""Lives of a program that runs Spark, to be ended by `kill -9` of one of its processes or of all.

Linux only: the processes below the program are found in `/proc`. None but those is ever killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.quick_java import QUICK_JAVA
from twinstream.core.deadline import Deadline

__all__ = ["VICTIMS", "Life"]

ROOT: Final = Path(__file__).parents[2]

VICTIMS: Final = ["all", "driver", "java", "worker", "planner"]
"""All processes at once; Python of the driver; Java, which plans and runs all tasks; a
Python process that works on tasks, or the one that forks them; another one below Java: they look
sources up and plan what a stream reads."""

_PATIENCE: Final = 500.0
"""Seconds until something that must happen is taken for lost, on the busiest machine."""


class Life:
    """One life of `program`, a file beside this one, in a session of processes of its own.

    Not a group: daemons of Spark make groups of their own.

    The program prints a line for each thing that happens. What it says otherwise is in `log`.
    """

    def __init__(self, program: str, *arguments: str, log: Path) -> None:
        self._log: Final = log
        self._said: Final = log.with_suffix(".out")
        with log.open("w") as errors, self._said.open("w") as said:
            self._process: Final = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / program), *arguments],
                stdout=said,
                stderr=errors,
                env={**os.environ, **QUICK_JAVA, "PYTHONPATH": _python_path()},
                start_new_session=True,
            )

    @property
    def said(self) -> list[str]:
        """The whole lines of the program so far."""
        return [each for each in self._said.read_text().splitlines(True) if each.endswith("\n")]

    @property
    def is_over(self) -> bool:
        """Whether the program has ended; others of its session may go on for a moment."""
        return self._process.poll() is not None

    def until(self, word: str) -> None:
        """Return when a line begins with a word. Fails when the program ends before."""
        deadline = Deadline.after(_PATIENCE)
        while not any(line.startswith(word) for line in self.said):
            assert not self.is_over, f"the program ended before it said {word!r}: {self._told()}"
            assert not deadline.expired(), f"the program does not say {word!r}: {self._told()}"
            time.sleep(0.02)

    def live_on(self, seconds: float) -> None:
        """Return after a while, or when the program has ended."""
        deadline = Deadline.after(seconds)
        while not deadline.expired() and not self.is_over:
            time.sleep(0.005)

    def kill(self, victim: str, dice: random.Random) -> list[str]:
        """Kill one process, or `all`; return what it was, nothing when there is none."""
        if self.is_over:
            return []
        if victim == "all":
            self.end()
            return [victim]
        if victim == "driver":
            self._process.kill()
            self._process.wait(_PATIENCE)
            return [victim]
        chosen = self._choose(victim, dice)
        if chosen is None:
            return []
        what = victim if victim == "java" else _command(chosen).rpartition("pyspark.")[2]
        try:
            os.kill(chosen, signal.SIGKILL)
        except ProcessLookupError:
            return []
        return [what]

    def _choose(self, victim: str, dice: random.Random) -> int | None:
        """Return a process of a kind, as soon as there is one; None when the program ends before.

        None as well when there is none for long: others may have done all that was left.
        """
        deadline = Deadline.after(30)
        while not self.is_over and not deadline.expired():
            found = [pid for pid, kind in self._below() if kind == victim]
            if found:
                return dice.choice(found)
            time.sleep(0.02)
        return None

    def wait(self, patience: float = _PATIENCE) -> int:
        """Return the exit code of the program, which ends within so many seconds."""
        return self._process.wait(patience)

    def wait_for_all(self) -> None:
        """Return when no process is left: the others end by themselves when the program has."""
        deadline = Deadline.after(_PATIENCE)
        while self._session():
            assert not deadline.expired(), f"{self._session()} go on without their program"
            time.sleep(0.05)

    def end(self) -> None:
        """Kill what is left, also what is being started meanwhile."""
        while left := self._session():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        self._process.wait(_PATIENCE)

    def _told(self) -> str:
        return self._log.read_text()[-3000:]

    def _session(self) -> list[int]:
        return [pid for pid, (_, session) in _processes().items() if session == self._process.pid]

    def _below(self) -> list[tuple[int, str]]:
        """Return the processes below the program, each with its kind."""
        parents = {pid: parent for pid, (parent, _) in _processes().items()}
        java = {pid for pid in parents if parents[pid] == self._process.pid and _is_java(pid)}
        found = [(pid, "java") for pid in java]
        own = {pid for pid in parents if parents[pid] == self._process.pid}
        found += [(pid, "task") for pid in own if "spawn_main" in _command(pid)]
        below = java
        while below:
            below = {pid for pid, parent in parents.items() if parent in below}
            found += [(pid, _kind(_command(pid))) for pid in below]
        return found


def _python_path() -> str:
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(ROOT), given] if given else [str(ROOT)])


def _processes() -> dict[int, tuple[int, int]]:
    """Return the parent and the session of each process of this machine that has not ended."""
    found: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name, in brackets, may hold anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[0] != "Z":
                found[int(folder.name)] = int(fields[1]), int(fields[3])
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _kind(command: str) -> str:
    if command.endswith("pyspark.worker"):
        return "worker"
    return "planner" if "pyspark." in command else ""


def _is_java(pid: int) -> bool:
    return "org.apache.spark.deploy.SparkSubmit" in _command(pid)
