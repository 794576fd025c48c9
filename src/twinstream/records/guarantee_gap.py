"""A setting of a stream or consumer that breaks a guarantee."""

from __future__ import annotations

from attrs import frozen

__all__ = ["GuaranteeGap"]


@frozen
class GuaranteeGap:
    """A setting that breaks a guarantee, the consequence (`because`), and what to do `instead`."""

    setting: str
    """Name of the setting."""
    value: object
    """Value of the setting."""
    because: str
    instead: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.value}, so {self.because}: {self.instead}"
