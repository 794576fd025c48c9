"""The worker of a group member for one consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from js_async import Consumer, JetStream, Message
from js_async.extension import MessageBuffer
from js_async.groups.floors import Floors
from js_async.groups.message import group_message
from js_async.groups.redelivery_order import RedeliveryOrder
from js_async.runtime.concurrency import Handler, Signal
from js_async.workers.jobs import Job
from js_async.workers.settings import WorkSettings
from js_async.workers.worker import Take, Worker
from twinstream.core.groups.member_consumer import PRIORITY_GROUP
from twinstream.errors import ConsumerDeleted, NoResponders

if TYPE_CHECKING:
    from js_async.groups.message import GroupMessage

__all__ = ["MemberWorker"]


class MemberWorker(Worker):
    """A `Worker` for the consumer of a group member.

    It sets `woken` when it ends, and when another instance was pinned. If the consumer was deleted,
    the worker ends without an error, and `gone` is set.
    """

    # The `GroupWorker` reports the error: it is the work that the program has started.
    _reports_end = False

    def __init__(
        self,
        jet: JetStream,
        consumer: Consumer,
        handler: Handler[Message],
        settings: WorkSettings,
        woken: Signal,
        floors: Floors | None = None,
    ) -> None:
        if floors is not None:
            floors.bind(consumer, self._fail)
        super().__init__(
            jet,
            consumer.stream_name,
            consumer.name,
            handler,
            concurrency=settings.concurrency,
            order=settings.order,
            retry=settings.retry,
            dead_letters=settings.dead_letters,
            max_messages=settings.max_messages,
            priority=settings.priority,
            on_report=settings.on_report,
            on_bad=settings.on_bad,
        )
        self._is_unstarted = False  # the program starts the `GroupWorker`
        self.consumer: Final = consumer
        self._woken: Final = woken
        self.gone: ConsumerDeleted | NoResponders | None = None
        """The error that showed that the consumer was deleted, or None.

        It is `NoResponders` if the client has no permission to request the consumer's info.
        """
        self.lost_pin = False
        """Whether another instance of the member was pinned."""
        self._order: RedeliveryOrder | None = None
        self.floors: Final = floors
        consumer._channels.pins.on_drop = self._note_lost_pin

    @property
    def has_ended(self) -> bool:
        """Whether the work has ended or is ending."""
        return self._jobs.is_closed

    @property
    def pin(self) -> str | None:
        """The id of this instance's pin as last reported by the server, or None without a pin."""
        return self.consumer._channels.pins.get(PRIORITY_GROUP)

    def is_handler(self) -> bool:
        """Return whether the caller is a handler of this worker."""
        return self._is_within() or (self.floors is not None and self.floors.is_keeper())

    async def _bound(self) -> Consumer:
        return self.consumer

    def _adapted(self, message: Message) -> Message:
        return group_message(message) if self.floors is None else self.floors.adapt(message)

    async def _skips(self, job: Job) -> bool:
        return self.floors is not None and await self.floors.skips(
            cast("GroupMessage", job.message)
        )

    def _release(self, job: Job) -> None:
        if self.floors is not None and job.is_over:
            self.floors.note_processed(cast("GroupMessage", job.message))
        super()._release(job)

    @property
    def skipped(self) -> int:
        """Number of messages that the server copied again, and that were not handled again."""
        return 0 if self.floors is None else self.floors.skipped

    async def _work(self) -> None:
        """Work like a `Worker`. At the end, another instance may take over."""
        try:
            await super()._work()
        finally:
            if self.floors is not None:
                await self.floors.close()

    def _note_lost_pin(self) -> None:
        self.lost_pin = True
        if self._buffer is not None:
            # Stop pulling, so that the server does not pin a pull request whose inbox is about to
            # close.
            self._buffer.stop_pulling()
        self._woken.set()

    def _taking(self, buffer: MessageBuffer) -> Take:
        info = self.consumer.cached_info
        config = info.config if info is not None else None
        # Messages are not sorted if the consumer delivers one at a time, if the user requires no
        # order, or if the settings of the consumer are unknown.
        if config is None or config.max_ack_pending == 1 or not self._settings.is_ordered:
            return super()._taking(buffer)
        report = self._outcomes.report
        self._order = RedeliveryOrder(buffer, self.consumer, config, report)
        return self._order.take

    async def _dispatch(self) -> None:
        try:
            await super()._dispatch()
        finally:
            if self._order is not None:
                await self._order.give_back()

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, ConsumerDeleted | NoResponders) and self._error is None:
            self.gone = error
            self._stop_taking()
        else:
            super()._fail(error)

    def _stop_taking(self) -> None:
        super()._stop_taking()
        self._woken.set()
