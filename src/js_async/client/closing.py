"""Base classes of publishers with messages in flight.

The base classes report what the program did not read: failed messages and unsent messages.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Final

from js_async.client.closable import Closable
from js_async.runtime.concurrency import BlockHint, Forks, LoopHint, Work
from twinstream.errors import PublishFailures
from twinstream.errors.publish_failures import UnreadFailures

__all__ = [
    "Leaving",
    "SentWhileRead",
    "failure_of",
    "warn_of_failures",
    "warn_of_unseen",
]

# Python prints these errors with their notes if no code catches them.
_SHOWN: Final = (Exception, KeyboardInterrupt)


class Leaving(Closable, BlockHint, ABC):
    """The base class of publishers of many messages, which a `with` block closes.

    It reports the failures that the user did not read (`UnreadFailures`):

    - `close`, the end of the block and the end of an iteration without a block raise them as
      `PublishFailures`.
    - If another error is being raised, the failures become a note of this error. If Python would
      not print the error, a warning reports the failures, too.
    - When a publisher is garbage-collected, a warning reports them.
    """

    # `__del__` uses these defaults if `__init__` raised.
    _what = ""
    _failures: UnreadFailures | None = None
    _forks = 0

    def _watch_failures(self, what: str, failures: UnreadFailures) -> None:
        """Set the publisher's name for warnings, and the object that collects its failures."""
        self._what = what
        self._forks = Forks.count
        self._failures = failures

    @property
    def _is_inherited(self) -> bool:
        """Whether this process was forked after `_watch_failures` was called."""
        return self._forks != Forks.count

    @abstractmethod
    async def close(self) -> None:
        """Wait for the messages in flight. Raises `PublishFailures` for unread failures."""

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_parents:
            return
        if error is None:
            await self.close()
            return
        try:
            await self.close()
        except PublishFailures as failures:
            # The error of the block takes precedence; the failures are added to it.
            _note(error, self._what, failures)

    def _raise_unread(self) -> None:
        """Raise `PublishFailures` if there are unread failures."""
        failures = self._take_failures()
        if failures is not None:
            raise failures

    def _note_failures(self, error: BaseException) -> None:
        """Add the unread failures as a note to an error that is being raised."""
        failures = self._take_failures()
        if failures is not None:
            _note(error, self._what, failures)

    def _take_failures(self) -> PublishFailures | None:
        if self._failures is None or self._is_inherited:
            return None
        return self._failures.take()

    def __del__(self) -> None:
        failures = self._take_failures()
        if failures is not None:
            warn_of_failures(self._what, failures)


class SentWhileRead(Leaving, LoopHint):
    """The base class of publishers that send only while the caller iterates over their outcomes."""

    _unread = False

    def _expect_reader(self, what: str, failures: UnreadFailures) -> None:
        """Watch for failures, and warn at the end if the caller never iterated over the outcomes.

        `what` is the publisher's name for warnings.
        """
        self._watch_failures(what, failures)
        self._unread = True

    def _is_read(self) -> None:
        """Suppress the warning, because the caller iterates or an error prevents the iteration."""
        self._unread = False

    _unused = _is_read

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._is_read()
        self._warn_of_unread()
        await super().__aexit__(kind, error, trace)

    def __del__(self) -> None:
        self._warn_of_unread()
        super().__del__()

    def _warn_of_unread(self) -> None:
        unread, self._unread = self._unread, False
        if unread and not self._is_inherited:
            text = f"{self._what} sent nothing: it sends while its outcomes are iterated over"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


async def failure_of(work: Work) -> BaseException | None:
    """Run background work to its end. Return the exception that ended it, or None."""
    try:
        await work()
    except BaseException as error:
        # Also `SystemExit` of a handler: the call that waits for the end of the work raises it.
        return error
    return None


def _note(error: BaseException, what: str, failures: PublishFailures) -> None:
    error.add_note(str(failures))
    if not isinstance(error, _SHOWN):
        # Python prints neither a cancellation nor SystemExit, so it would not print the note.
        warn_of_failures(what, failures)


def warn_of_failures(what: str, failures: PublishFailures) -> None:
    """Warn that the publisher `what` ended with unread failures."""
    # Not a `ResourceWarning`, which Python hides by default: the failed messages are not stored.
    text = f"{what} ended with failures that were not read: {failures}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def warn_of_unseen(what: str, count: int) -> None:
    """Warn that `what` ended with `count` messages in flight or unread, unless `count` is 0."""
    if count:
        warnings.warn(
            f"{what} was left with {count} messages in flight or unread; use it in a `with` block,"
            " or close it, to learn their outcome",
            ResourceWarning,
            stacklevel=3,
        )
