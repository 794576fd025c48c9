"""Store the results of a processing, each of them once."""

from __future__ import annotations

from typing import Final

from js_async import JetStream, Message
from js_async.exactly_once.idempotent_writer import By, IdempotentWriter, once_writer
from js_async.exactly_once.stored_results import KnownResults
from js_async.runtime.concurrency import Lock
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.core.exactly_once.processing import InputStream
from twinstream.errors import OutcomeUnknown
from twinstream.models import Timestamp
from twinstream.records.publish_request import PublishRequest

__all__ = ["ResultStore"]


class ResultStore:
    """The output stream of a processing. `timeout` is the limit of a write (seconds)."""

    def __init__(self, jet: JetStream, into: str, by: By, timeout: float) -> None:
        self.writer: Final[IdempotentWriter] = once_writer(jet, into, by, timeout)
        self._looks_up: Final = by == "id"
        self._timeout: Final = timeout
        self._known: KnownResults | None = None
        self._counting: Final = Lock()
        self.stored = 0
        """The number of results that this object stored."""
        self.repeated = 0
        """The number of results that the stream already contained."""

    async def open(self, input: InputStream, now: Timestamp | None) -> None:
        """Check the settings of the stream. Raises `UnsuitableSettings` or `StreamNotFound`.

        `input` is the stream of the messages, `now` the server's current time, if it is known.
        """
        if self._looks_up:
            self._known = KnownResults(self.writer, input, now, self._timeout)
        await self.writer.check()

    async def store(self, message: Message, results: list[PublishRequest]) -> OutcomeUnknown | None:
        """Store the results of a message that the stream does not contain yet.

        Return the error of a result with an unknown outcome, or None if there is none. Raises the
        error of a result that was not stored.
        """
        known = () if self._known is None else await self._known.of(message, results)
        missing = [result for result in results if result.msg_id not in known]
        outcomes = await self.writer.write(missing) if missing else []
        failed = [outcome for outcome in outcomes if not isinstance(outcome, Stored)]
        fresh = sum(isinstance(each, Stored) and not each.repeated for each in outcomes)
        async with self._counting:
            self.stored += fresh
            self.repeated += len(results) - fresh - len(failed)
        unknown = None
        for error in failed:
            if not isinstance(error, OutcomeUnknown):
                raise error
            unknown = error
        return unknown
