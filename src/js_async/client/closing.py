"""The end of what has messages under way: nothing that failed, or was not sent, goes unnoticed.

The same goes for what works beside the program, and for the error that ended it.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Final

from js_async.runtime.concurrency import BlockHint, Forks, LoopHint
from js_async.client.owned import Owned
from twinstream.errors import ConnectionClosed, NotStarted, PublishFailures
from twinstream.core.log.logger import Log
from twinstream.core.publish.request import UnreadFailures

__all__ = [
    "Leaving",
    "SentWhileRead",
    "WorksBeside",
    "warn_of_failures",
    "warn_of_unseen",
]

_NEWS: Final = (Exception, SystemExit, KeyboardInterrupt)
# Errors whose notes Python prints if nothing catches them.
_SHOWN: Final = (Exception, KeyboardInterrupt)


class Leaving(Owned, BlockHint, ABC):
    """The base of what is closed at the end of its `with` block: the writers of many messages.

    The rule for failures that the program did not look at (`UnreadFailures`): the end of the block,
    `close` or the end of an iteration without a block raises them. Where another error is being
    raised they become a note of it, and a warning too where that error is not printed. A writer
    that is dropped warns of them.
    """

    # Defaults for `__del__` after an `__init__` that raised.
    _what = ""
    _failures: UnreadFailures | None = None
    _forks = 0

    def _watch_failures(self, what: str, failures: UnreadFailures) -> None:
        """Set the name of the writer for warnings, and where its failures are collected."""
        self._what = what
        self._forks = Forks.count
        self._failures = failures

    @property
    def _is_inherited(self) -> bool:
        """Tell whether it is the business of the process that this one was forked off."""
        return self._forks != Forks.count

    @abstractmethod
    async def close(self) -> None:
        """Wait for what is under way; raises `PublishFailures` for what nothing looked at."""

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_parents:
            return
        if error is None:
            await self.close()
            return
        try:
            await self.close()
        except PublishFailures as failures:
            # What the program raised is the news; this goes along with it.
            _note(error, self._what, failures)

    def _raise_unread(self) -> None:
        """Raise `PublishFailures` if there are failures that the program did not look at."""
        failures = self._take_failures()
        if failures is not None:
            raise failures

    def _note_failures(self, error: BaseException) -> None:
        """Add the failures that the program did not look at to an error that is being raised."""
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
    """The base of what sends only while the program iterates over its outcomes."""

    _unread = False

    def _expect_reader(self, what: str, failures: UnreadFailures) -> None:
        """Warn at the end that `what` sent nothing, unless the program has iterated by then."""
        self._watch_failures(what, failures)
        self._unread = True

    def _is_read(self) -> None:
        """Note that the program iterates, or has a reason not to."""
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
            text = f"{self._what} sent nothing: it sends while its outcomes are gone through"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


class WorksBeside(BlockHint):
    """The base of what works beside the program, and keeps the error that ends it."""

    _begun = False
    _error: BaseException | None = None
    _what = ""
    _forks = 0
    # The area of the log.
    _area = "consumer"

    def _note_begun(self) -> None:
        """Note that the program asked for the work, even if it could not start."""
        self._begun = True

    def _require_begun(self, what: str) -> None:
        """Raise `NotStarted` where nothing was asked to start: its end would look like success."""
        if not self._begun:
            raise NotStarted(
                f"{what} was never started: use it in a `with` block, or call start() first"
            )

    def _keep_error(self, error: BaseException, what: str) -> None:
        """Keep the first error for the call that waits for the end, and log it.

        `what` names in the log, and in a warning, what ended.
        """
        if self._error is None:
            self._what = what
            self._forks = Forks.count
            self._error = error
            if _is_news(error):
                from twinstream.core.log.events import WorkEnded

                Log(self._area)(WorkEnded(what, error))

    def _raise_kept(self) -> None:
        """Raise the error that is kept, if there is one; it is seen then."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __del__(self) -> None:
        error = self._error
        # In a forked process it is the parent's.
        if error is None or self._forks != Forks.count or not _is_news(error):
            return
        text = f"{self._what} ended by an error that nobody waited for: {error!r}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _is_news(error: BaseException) -> bool:
    """Tell whether the program does not know of an error that ended its work.

    It knows of a cancellation, and that it closed the connection.
    """
    if isinstance(error, ConnectionClosed) and error.__cause__ is None:
        return False
    return isinstance(error, _NEWS)


def _note(error: BaseException, what: str, failures: PublishFailures) -> None:
    error.add_note(str(failures))
    if not isinstance(error, _SHOWN):
        # A cancellation or SystemExit is not printed, nor are its notes.
        warn_of_failures(what, failures)


def warn_of_failures(what: str, failures: PublishFailures) -> None:
    """Warn of failures that the program did not look at."""
    # Not a ResourceWarning, which Python hides by default: these messages are not stored.
    text = f"{what} ended with failures that nothing looked at: {failures}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def warn_of_unseen(what: str, count: int) -> None:
    """Warn of messages whose outcomes nobody will know, if there are any."""
    if count:
        warnings.warn(
            f"{what} was left with {count} messages under way or not looked at; use it in a `with`"
            " block, or close it, to know what became of them",
            ResourceWarning,
            stacklevel=3,
        )
