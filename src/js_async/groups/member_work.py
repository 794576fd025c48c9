"""The consumer and the worker of a member, which are replaced when its partitions change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from js_async import Consumer, JetStream, Message
from js_async.groups.floors import Floors
from js_async.groups.member_join import create_member_consumer, delete_member_consumer
from js_async.groups.member_worker import MemberWorker
from js_async.runtime.concurrency import Handler, Signal
from js_async.workers.settings import WorkSettings
from twinstream.core.groups.names import GroupNames
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.errors import ConsumerExists
from twinstream.models import ConsumerConfig

if TYPE_CHECKING:
    from js_async.groups.store import GroupStore
    from twinstream.core.groups.reports import GroupReport
    from twinstream.core.log.reporter import Reporter
    from twinstream.models import Timestamp

__all__ = ["MemberSettings", "MemberWork"]

_FOREVER: Final = float("inf")


@frozen
class MemberSettings:
    """The settings of a member's work."""

    names: GroupNames
    member: str
    handler: Handler[Message]
    settings: WorkSettings
    template: ConsumerConfig


class MemberWork:
    """The current consumer and worker of a member, and the counts of all its workers.

    Its workers set `woken` when they have ended, and when another instance was pinned.
    """

    def __init__(
        self,
        jet: JetStream,
        settings: MemberSettings,
        store: GroupStore[Any],
        report: Reporter[GroupReport],
        woken: Signal,
    ) -> None:
        self._jet: Final = jet
        self._settings: Final = settings
        self._store: Final[GroupStore[Any]] = store
        self._report: Final = report
        self._woken: Final = woken
        self._floors: Floors | None = None
        self._created: Timestamp | None = None
        self._was_in_use = False
        # The counts of all earlier workers.
        self._counts = (0, 0, 0, 0)
        self.worker: MemberWorker | None = None
        """The current worker, or None."""

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The numbers of handled, retried, rejected and skipped messages."""
        worker, (handled, retried, rejected, skipped) = self.worker, self._counts
        if worker is None:
            return self._counts
        return (
            handled + worker.handled,
            retried + worker.retried,
            rejected + worker.rejected,
            skipped + worker.skipped,
        )

    def is_handler(self) -> bool:
        """Return whether the caller is a handler of the current worker."""
        worker = self.worker
        return worker is not None and worker.is_handler()

    async def create_consumer(self, filters: tuple[str, ...]) -> Consumer:
        """Create the consumer of the member, or return it if another instance has created it.

        Raises `ConsumerExists` or another error if the server refuses it.
        """
        settings = self._settings
        looks_first, self._was_in_use = self._was_in_use, False
        try:
            consumer = await create_member_consumer(
                self._jet,
                settings.names,
                settings.member,
                filters,
                settings.template,
                looks_first=looks_first,
            )
        except ConsumerExists:
            self._was_in_use = True
            raise
        self._created = consumer.cached_info.created if consumer.cached_info else None
        return consumer

    async def start(self, consumer: Consumer) -> None:
        """Start a worker for the consumer."""
        settings, floors = self._settings, None
        if settings.names.kind == "elastic":
            floors = self._floors = Floors(
                self._jet,
                settings.names,
                self._store,
                settings.member,
                self._report,
                self._floors,
            )
        worker = MemberWorker(
            self._jet, consumer, settings.handler, settings.settings, self._woken, floors
        )
        # Set this first, because a handler may run before `start` has returned.
        self.worker = worker
        async with AsyncOnFailure(self._forget):
            await worker.start()

    async def _forget(self) -> None:
        self.worker = None

    async def stop(self) -> None:
        """Stop the worker, and wait until its handlers have ended. Raises the error of the work."""
        if self.worker is None:
            return
        try:
            await self.worker.stop(timeout=_FOREVER)
        finally:
            self._counts, self.worker = self.counts, None

    async def delete_consumer(self) -> None:
        """Delete the consumer that this object created, unless another one has its name now."""
        settings = self._settings
        await delete_member_consumer(
            self._jet, settings.names, settings.member, created=self._created
        )
