"""The error of data that is not the record that was asked for."""

from __future__ import annotations

from twinstream.models.restorable import Restorable

__all__ = ["DecodeError"]


class DecodeError(Restorable, ValueError):
    """The data is not the record that was asked for.

    ``problems`` has a path such as ``config.ack_wait`` and a reason for each place; the path is
    empty where the whole text is at fault.
    """

    def __init__(self, what: str, problems: list[tuple[str, str]]) -> None:
        self.what = what
        self.problems = problems
        shown = "; ".join(f"{path}: {reason}" if path else reason for path, reason in problems)
        super().__init__(f"cannot read {what}: {shown}")
