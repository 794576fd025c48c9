"""The failures of bulk writers, and the error for those that the caller has not read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from attrs import field, frozen

from twinstream.errors.base import TwinstreamError
from twinstream.records.publish_request import PublishRequest

__all__ = ["LISTED", "PublishFailure", "PublishFailures", "UnreadFailures"]

LISTED: Final = 100
"""Maximum number of failures that a `PublishFailures` lists. Further failures are only counted."""


class UnreadFailures:
    """The failures of a bulk writer whose `error` the caller has not read.

    It keeps the first `LISTED` failures and counts the others. Several threads may use it, because
    each step is one atomic operation. If `is_wanted` is false, it stays empty.
    """

    __slots__ = ("_listed", "_unlisted", "is_wanted")

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted: Final = is_wanted
        # The keys are object ids, because equal failures count separately.
        self._listed: Final[dict[int, PublishFailure]] = {}
        self._unlisted: Final[deque[None]] = deque()

    def add(self, failure: PublishFailure) -> None:
        """Add a failure before the caller receives it."""
        if not self.is_wanted:
            return
        if len(self._listed) < LISTED:
            self._listed[id(failure)] = failure
        else:
            self._unlisted.append(None)
        failure.enter(self)

    def discard(self, failure: PublishFailure) -> None:
        """Remove a failure whose error the caller has read."""
        # After `take`, both collections may be empty.
        if self._listed.pop(id(failure), None) is None and self._unlisted:
            self._unlisted.pop()

    def take(self) -> PublishFailures | None:
        """Remove all failures and return the error for them, or None if there are none."""
        failures = list(self._listed.values())
        count = len(failures) + len(self._unlisted)
        self._listed.clear()
        self._unlisted.clear()
        return PublishFailures(failures[:LISTED], count) if count else None


@frozen(repr=False, match_args=False)
class PublishFailure:
    """A message of a bulk writer that was not acknowledged, and the error.

    The failure counts as handled once the caller reads `error`. If the caller does not read it, the
    writer raises `PublishFailures` at its end.
    """

    request: PublishRequest
    """The message that was not acknowledged."""
    _error: TwinstreamError = field(alias="error")
    # Contains the writer's `UnreadFailures` until the error is read. It is a list, because the
    # pop() of a list is atomic.
    _unread: list[UnreadFailures] = field(init=False, factory=list[UnreadFailures], eq=False)

    __match_args__ = ("request", "error")

    @property
    def error(self) -> TwinstreamError:
        """The error of the message. Reading this property marks the failure as handled."""
        try:
            unread = self._unread.pop()
        except IndexError:
            pass
        else:
            unread.discard(self)
        return self._error

    def peek(self) -> TwinstreamError:
        """Return the error without marking the failure as handled."""
        return self._error

    def enter(self, unread: UnreadFailures) -> None:
        """Remember the collection from which this failure is removed when its error is read.

        Args:
            unread: The collection.
        """
        # The traceback of the error refers to the writer. It is removed, because it would keep the
        # writer from being garbage-collected.
        _forget_frames(self._error)
        self._unread.append(unread)

    def __repr__(self) -> str:
        return f"PublishFailure(request={self.request!r}, error={self._error!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (PublishFailure, (self.request, self._error))


def _forget_frames(error: BaseException) -> None:
    chain = [error]
    for each in chain:
        each.__traceback__ = None
        for other in (each.__cause__, each.__context__):
            if other is not None and other not in chain:
                chain.append(other)


class PublishFailures(TwinstreamError):
    """Published messages were not acknowledged, and the caller did not read their `error`.

    `count` is the number of these messages; `failures` contains the first 100 of them.

    What to do: Look at the errors in `failures`, and publish these messages again.
    """

    def __init__(self, failures: Sequence[PublishFailure], count: int) -> None:
        self.failures = tuple(failures)
        self.count = count
        shown = "; ".join(str(each.error) for each in self.failures[:3])
        messages = "1 message was" if count == 1 else f"{count} messages were"
        super().__init__(f"{messages} not acknowledged: {shown}")
