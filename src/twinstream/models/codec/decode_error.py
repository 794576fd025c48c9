"""`DecodeError`."""

from __future__ import annotations

from twinstream.models.picklable_error import PicklableError

__all__ = ["DecodeError"]


class DecodeError(PicklableError, ValueError):
    """The data is not a valid record of the expected class.

    `problems` is a list of pairs: a path such as `config.ack_wait`, and the reason. The path is
    empty if the reason concerns the whole text.

    What to do: Correct the members that `problems` lists.
    """

    def __init__(self, what: str, problems: list[tuple[str, str]]) -> None:
        self.what = what
        """Name of the expected record."""
        self.problems = problems
        shown = "; ".join(f"{path}: {reason}" if path else reason for path, reason in problems)
        super().__init__(f"cannot read {what}: {shown}")
