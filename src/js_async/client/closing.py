"""Bases of objects with messages in flight or work in the background.

The bases report each failed or unsent message, and each error that ended the work, that the program
has not read.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Final

from js_async.client.owned import Owned
from js_async.runtime.concurrency import BlockHint, Forks, LoopHint
from twinstream.core.log.logger import Log
from twinstream.core.publish.request import UnreadFailures
from twinstream.errors import ConnectionClosed, NotStarted, PublishFailures

__all__ = [
    "Leaving",
    "SentWhileRead",
    "WorksBeside",
    "warn_of_failures",
    "warn_of_unseen",
]

_NEWS: Final = (Exception, SystemExit, KeyboardInterrupt)
# Errors whose notes Python prints if no code catches them.
_SHOWN: Final = (Exception, KeyboardInterrupt)


class Leaving(Owned, BlockHint, ABC):
    """Base of the publishers of many messages, which are closed at the end of a `with` block.

    The rule for failures that the user did not read (`UnreadFailures`): the end of the block,
    `close`, or the end of an iteration without a block raises them. If another error is being
    raised, they become a note of it, and also a warning if that error is not printed. A publisher
    that is dropped warns of them.
    """

    # Defaults for `__del__` after an `__init__` that raised.
    _what = ""
    _failures: UnreadFailures | None = None
    _forks = 0

    def _watch_failures(self, what: str, failures: UnreadFailures) -> None:
        """Set the name of the publisher for warnings, and where its failures are collected."""
        self._what = what
        self._forks = Forks.count
        self._failures = failures

    @property
    def _is_inherited(self) -> bool:
        """Whether the object belongs to the process from which this one was forked."""
        return self._forks != Forks.count

    @abstractmethod
    async def close(self) -> None:
        """Wait for messages in flight; raises `PublishFailures` for unread failures."""

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
    """Base of publishers that send only while their outcomes are iterated over."""

    _unread = False

    def _expect_reader(self, what: str, failures: UnreadFailures) -> None:
        """Warn at the end that `what` sent nothing, unless it was iterated over by then."""
        self._watch_failures(what, failures)
        self._unread = True

    def _is_read(self) -> None:
        """Record that the outcomes are iterated over, or that there is a reason not to."""
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


class WorksBeside(BlockHint):
    """Base of objects that work in the background and keep the error that ended the work."""

    _begun = False
    _error: BaseException | None = None
    _what = ""
    _forks = 0
    # The log area.
    _area = "consumer"

    def _note_begun(self) -> None:
        """Record that the work was started, even if the start failed."""
        self._begun = True

    def _require_begun(self, what: str) -> None:
        """Raise `NotStarted` if the work was never started: its end would look like success."""
        if not self._begun:
            raise NotStarted(
                f"{what} was never started: use it in a `with` block, or call start() first"
            )

    def _keep_error(self, error: BaseException, what: str) -> None:
        """Keep the first error for the call that waits for the end, and log it.

        `what` describes the work in the log and in a warning.
        """
        if self._error is None:
            self._what = what
            self._forks = Forks.count
            self._error = error
            if _is_news(error):
                from twinstream.core.log.events import WorkEnded

                Log(self._area)(WorkEnded(what, error))

    def _raise_kept(self) -> None:
        """Raise the kept error, if there is one. It then counts as seen."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __del__(self) -> None:
        error = self._error
        # In a forked process the parent reports the error.
        if error is None or self._forks != Forks.count or not _is_news(error):
            return
        text = f"{self._what} ended with an error that no call raised: {error!r}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _is_news(error: BaseException) -> bool:
    """Return whether an error that ended the work is unknown to the user.

    A cancellation is known, and so is a connection that the user closed.
    """
    if isinstance(error, ConnectionClosed) and error.__cause__ is None:
        return False
    return isinstance(error, _NEWS)


def _note(error: BaseException, what: str, failures: PublishFailures) -> None:
    error.add_note(str(failures))
    if not isinstance(error, _SHOWN):
        # A cancellation or SystemExit is not printed, and neither are its notes.
        warn_of_failures(what, failures)


def warn_of_failures(what: str, failures: PublishFailures) -> None:
    """Warn of unread failures."""
    # Not a ResourceWarning, which Python hides by default: these messages are not stored.
    text = f"{what} ended with failures that were not read: {failures}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def warn_of_unseen(what: str, count: int) -> None:
    """Warn of messages whose outcomes were not read, if there are any."""
    if count:
        warnings.warn(
            f"{what} was left with {count} messages in flight or unread; use it in a `with` block,"
            " or close it, to learn their outcome",
            ResourceWarning,
            stacklevel=3,
        )
