"""A setting of a stream or consumer that lets a promise down."""

from __future__ import annotations

from attrs import frozen

__all__ = ["Hole"]


@frozen
class Hole:
    """One setting, what follows from it, and what to set instead."""

    setting: str
    value: object
    because: str
    instead: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.value}, so {self.because}: {self.instead}"
