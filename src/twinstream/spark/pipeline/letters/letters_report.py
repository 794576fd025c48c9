"""The result of a replay of dead letters."""

from __future__ import annotations

from attrs import frozen

from twinstream.lake.entry import BatchEntry

__all__ = ["LettersReport"]


@frozen(kw_only=True)
class LettersReport:
    """The result of a replay: the number of letters, and of those that still do not fit.

    `batches` are the entries of the batches that have changed.
    """

    source: str
    letters: int
    left: int
    batches: list[BatchEntry]

    @property
    def landed(self) -> int:
        """The number of letters that are in tables now."""
        return self.letters - self.left
