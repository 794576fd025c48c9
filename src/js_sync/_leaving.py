# Generated from src/js_async/_leaving.py by codegen/twin.py. Edit that file instead.
"""The end of what has messages under way: nothing that failed, or was not sent, goes unnoticed.

The same goes for what works beside the program, and for the error that ended it.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from js_core.errors import ConnectionClosed, NotStarted, PublishFailures
from js_core.log import Log
from js_core.publish import PublishFailure
from js_sync._io import Forks
from js_sync._owned import Owned

__all__ = [
    "LISTED",
    "Leaving",
    "SentWhileRead",
    "WorksBeside",
    "raise_failures",
    "warn_of_unseen",
]

# Failures that an error lists; it counts the others.
LISTED: Final = 100
_NEWS: Final = (Exception, SystemExit, KeyboardInterrupt)


class Leaving(Owned, ABC):
    """The base of what is closed at the end of its `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Wait for what is under way; raises `PublishFailures` for what nobody looked at."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.is_parents:
            return
        if error is None:
            self.close()
            return
        try:
            self.close()
        except PublishFailures as failures:
            # What the program raised is the news; this goes along with it.
            error.add_note(str(failures))


class SentWhileRead(Leaving):
    """The base of what sends only while somebody iterates over its outcomes."""

    _unread = ""
    _forks = 0

    def _expect_reader(self, what: str) -> None:
        """Have a warning at the end that `what` sent nothing, unless somebody reads by then."""
        self._unread = what
        self._forks = Forks.count

    @property
    def _is_inherited(self) -> bool:
        """Tell whether it is the business of the process that this one was forked off."""
        return self._forks != Forks.count

    def _is_read(self) -> None:
        """Note that somebody reads, or has a reason not to."""
        self._unread = ""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._is_read()
        self._warn_of_unread()
        super().__exit__(kind, error, trace)

    def __del__(self) -> None:
        self._warn_of_unread()

    def _warn_of_unread(self) -> None:
        what, self._unread = self._unread, ""
        if what and not self._is_inherited:
            text = f"{what} sent nothing: it sends while its outcomes are gone through"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


class WorksBeside:
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
                from js_core.log_events import WorkEnded

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


def raise_failures(outcomes: Iterable[object]) -> None:
    """Raise `PublishFailures` where outcomes that nobody took are failures."""
    failures = [found for found in outcomes if isinstance(found, PublishFailure)]
    if failures:
        raise PublishFailures(failures[:LISTED], len(failures))


def warn_of_unseen(what: str, count: int) -> None:
    """Warn of messages whose outcomes nobody will know, if there are any."""
    if count:
        warnings.warn(
            f"{what} was left with {count} messages under way or not looked at; use it in a `with`"
            " block, or close it, to know what became of them",
            ResourceWarning,
            stacklevel=3,
        )
