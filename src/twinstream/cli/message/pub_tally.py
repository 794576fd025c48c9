"""Count the outcomes of the messages that `pub` sent."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from attrs import define, field
from rich.console import Console

if TYPE_CHECKING:
    from js_sync import PublishFailure
    from twinstream.models import PubAck


@define
class Tally:
    """The number of messages with each outcome, the last `PubAck`, and the first error."""

    stored: int = 0
    duplicates: int = 0
    failed: int = 0
    last: PubAck | None = None
    error: Exception | None = None
    _started: float = field(factory=time.monotonic)

    @property
    def sent(self) -> int:
        """The total number of counted messages."""
        return self.stored + self.duplicates + self.failed

    def enter(self, outcome: PubAck | PublishFailure) -> None:
        """Count the outcome of a message."""
        from js_sync import PublishFailure

        if isinstance(outcome, PublishFailure):
            self.failed += 1
            self.error = self.error or outcome.error
            return
        self.last = outcome
        if outcome.duplicate:
            self.duplicates += 1
        else:
            self.stored += 1

    def show(self, console: Console) -> None:
        """Print a summary of the stored messages on one line.

        If no message was sent, print a note to standard error. If all messages failed, print
        nothing.
        """
        if self.last is None:
            if not self.failed:
                print("nothing was published: there was no input", file=sys.stderr)
            return
        where = f"{self.last.stream}"
        if self.sent == 1:
            known = " (already known by its message id)" if self.duplicates else ""
            console.print(f"stored in {where} at sequence {self.last.seq}{known}")
            return
        seconds = time.monotonic() - self._started
        known = f", {self.duplicates:,} already known" if self.duplicates else ""
        console.print(
            f"{self.stored:,} stored in {where}, the last at sequence {self.last.seq}{known}"
            f" ({self.sent / seconds:,.0f} a second)"
        )
