"""The unread sequences of each stream, of which the next batch reads a part.

The limits of a batch count messages. The server is asked for their number only if the number of
sequences alone does not decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from twinstream.spark.source.limits.batch_limits import admit, is_too_little
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState

__all__ = ["Backlog"]


class Backlog:
    """The unread sequences `[low, high)` of each stream in `spans`."""

    def __init__(
        self,
        spans: Mapping[str, tuple[int, int]],
        states: Mapping[str, StreamState],
        options: SourceOptions,
        counts: MessageCounts,
    ) -> None:
        self._spans: Final = spans
        self._states: Final = states
        self._options: Final = options
        self._counter: Final = counts
        self._sizes: Final = {name: state.mean_size for name, state in states.items()}
        self._sequences: Final = {name: high - low for name, (low, high) in spans.items()}
        self._shares: dict[str, int] = {}

    @property
    def ends(self) -> dict[str, int]:
        """The end of each stream's unread sequences."""
        return {name: high for name, (_, high) in self._spans.items()}

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {
            name: self._counter.count(self._states[name], low, high) if high > low else 0
            for name, (low, high) in self._spans.items()
        }

    def is_too_little(self, waited: float) -> bool:
        """Return whether the next batch waits for more messages.

        The last batch was planned `waited` seconds ago.
        """
        # There are at most as many messages as sequences.
        return is_too_little(self._options, self._sequences, waited) or (
            self._options.min_messages_per_trigger is not None
            and is_too_little(self._options, self._counts, waited)
        )

    def limited(self) -> dict[str, int]:
        """Return the end of the next batch in each stream, within the limits of the options."""
        if admit(self._options, self._sequences, self._sizes) == self._sequences:
            return self.ends
        self._shares = admit(self._options, self._counts, self._sizes)
        return {name: self._end(name, share) for name, share in self._shares.items()}

    def _end(self, name: str, share: int) -> int:
        low, high = self._spans[name]
        if share == self._counts[name]:
            return high
        if not share:
            return low
        return self._counter.end_of(self._states[name], low, high, share, self._counts[name])

    def messages(self, name: str, end: int) -> int:
        """Return about how many messages of a stream a batch reads that ends at `end`."""
        return min(end - self._spans[name][0], self._shares.get(name, self._sequences[name]))
