"""Workers: call a handler for each message of a consumer, with retries, in order if required."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Final, Protocol, Self

from js_async.api.api import Api
from js_async.client.closing import failure_of
from js_async.consume.buffer import MessageBuffer
from js_async.consume.delivery import ack_wait_of
from js_async.consume.message import Message
from js_async.consume.messages import buffer_of
from js_async.consumer import Consumer, existing_consumer, made_consumer
from js_async.runtime.concurrency import (
    Handler,
    Lock,
    Signal,
    Task,
    call,
    check_handler,
    here,
    spawn,
)
from js_async.workers.dead_letters import DeadLetters
from js_async.workers.job_outcome import Outcomes
from js_async.workers.jobs import Job, JobsHere, is_repeated
from js_async.workers.runnable import Runnable
from js_async.workers.settings import WorkSettings
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.deadline import NEVER, Deadline, Seconds, monotonic
from twinstream.core.log.events import WorkerStarted, WorkerStopped
from twinstream.core.wire.subjects import check_name
from twinstream.core.workers.work_queue import WorkQueue
from twinstream.errors import (
    AlreadyAcknowledged,
    BadArgument,
    PermissionDenied,
    RequestTimeout,
    WrongHandler,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import AckPolicy, ConsumerConfig

__all__ = ["Take", "Worker"]


class Take(Protocol):
    """A function that returns the next message before a deadline, or None at the end."""

    async def __call__(self, deadline: Deadline) -> Message | None:
        """Return the next message. Raises `RequestTimeout` if there is none before the deadline."""
        ...


_UNCONFIRMED: Final = (*FAILED_REQUEST, PermissionDenied)
# The consumer's settings are requested after a redelivery, but at most once in this time (seconds).
_REFRESH_INTERVAL: Final = 5.0


class Worker(Runnable):
    """A worker that calls a handler for each message. Created by `JetStream.worker`.

    Call `run`, which works until the program receives a signal. Or use the worker in a `with`
    block, or call `start` and `stop`. A message is acknowledged when its handler returns, unless
    the handler has acknowledged it. If the work ended with an error that no call has raised, the
    object issues a `RuntimeWarning` when it is deleted.
    """

    _area = "worker"

    def __init__(
        self,
        api: Api,
        stream: str,
        consumer: str | ConsumerConfig | Consumer,
        handler: Handler[Message],
        settings: WorkSettings,
    ) -> None:
        super().__init__()
        check_name(stream, "stream")
        if isinstance(consumer, str):
            check_name(consumer, "consumer")
        else:
            kinds = ConsumerConfig | Consumer
            check_kind(consumer, kinds, "consumer", "a name or a ConsumerConfig")
        check_handler(handler)
        self._api: Final = api
        self._stream: Final = stream
        self._wanted: Final = consumer
        self._handler: Final = handler
        self._settings: Final = settings
        self._on_end = settings.on_report
        self._outcomes = Outcomes(settings, ConsumerConfig())
        self._queue: Final[WorkQueue[Job]] = WorkQueue()
        self._lock: Final = Lock()
        self._filled: Final = Signal()
        self._emptied: Final = Signal()
        self._tasks: list[Task] = []
        self._consumer: Consumer | None = None
        self._buffer: MessageBuffer | None = None
        self._letters: DeadLetters | None = None
        self._stopping = False
        self._end_is_logged = False
        self._numbers = 0
        self._here: Final = JobsHere(settings.room)
        self._next_refresh = Deadline.after(0)

    def __repr__(self) -> str:
        counts = f"{self.handled} handled, {self.in_hand} in progress, {self.waiting} waiting"
        return f"<Worker {self._stream}: {counts}{self._ended_by}>"

    @property
    def handled(self) -> int:
        """Number of messages whose handler has returned."""
        return self._outcomes.handled

    @property
    def retried(self) -> int:
        """Number of handler failures after which the message was, or will be, retried."""
        return self._outcomes.retried

    @property
    def rejected(self) -> int:
        """Number of messages that were rejected and will not be retried."""
        return self._outcomes.rejected

    @property
    def in_hand(self) -> int:
        """Number of messages that are being handled."""
        return self._queue.in_hand

    @property
    def waiting(self) -> int:
        """Number of queued messages that wait for their handler, or for a retry by the worker."""
        return self._queue.waiting

    # ---- lifecycle

    async def start(self) -> None:
        """Start to work in the background. Raises `ConsumerNotFound` or `BadArgument`."""
        if self._tasks:
            raise BadArgument("the worker was started already")
        self._note_begun()
        consumer = await self._bound()
        info = consumer.cached_info
        config = info.config if info is not None else None
        if config is None or config.ack_policy != AckPolicy.EXPLICIT:
            raise BadArgument(f"{consumer}: a worker needs ack_policy explicit")
        self._consumer = consumer
        self._outcomes = Outcomes(self._settings, config, consumer.stream_name, consumer.name)
        # Pull no more messages than needed. When the worker stops, it returns unhandled messages,
        # but the server has already counted their delivery.
        messages = consumer.messages(
            max_messages=self._settings.room,
            priority=self._settings.priority,
            on_report=self._settings.on_report,
        )
        buffer = buffer_of(messages)
        buffer.progress.keep_all |= self._settings.is_ordered
        if self._settings.dead_letters is not None:
            await self._settings.dead_letters.start()
            self._letters = self._settings.dead_letters
        self._home = here()
        self._buffer = buffer
        self._tasks.append(spawn(self._dispatch, "twinstream-dispatch"))
        for number in range(self._settings.concurrency):
            self._tasks.append(spawn(self._work, f"twinstream-worker-{number}"))
        self._outcomes.report.log(WorkerStarted(self._settings.concurrency))

    async def _bound(self) -> Consumer:
        if isinstance(self._wanted, Consumer):
            return self._wanted
        if isinstance(self._wanted, str):
            return await existing_consumer(self._api, self._stream, self._wanted)
        return await made_consumer(self._api, self._stream, self._wanted, "create")

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Wait for the running handlers, return other messages to the server, and end the work.

        If the connection and the permissions allow it, wait until the server has received all
        acknowledgements.

        Raises:
            RequestTimeout: A handler takes longer than `timeout` seconds.
            NotStarted: The worker was not started.
            Exception: The error that ended the work, if there was one.
        """
        if self._is_parents:
            return
        self._require_begun(f"the worker on {self._stream}")
        deadline = Deadline.after(timeout)
        self._stop_taking()
        try:
            await self._end_work(deadline)
        finally:
            # Close the dead letters only once for each start, because other workers may use the
            # same object.
            letters, self._letters = self._letters, None
            if letters is not None:
                await letters.close()
            self._log_end()
        await self._confirm()
        self._raise_kept()

    def _log_end(self) -> None:
        if self._tasks and not self._end_is_logged:
            self._end_is_logged = True
            totals = WorkerStopped(self.handled, self.retried, self.rejected)
            self._outcomes.report.log(totals)

    async def _end_work(self, deadline: Deadline) -> None:
        """Wait until no handler is running and the other messages are returned."""
        if not self._settings.is_ordered:
            await self._give_back(deadline)
        try:
            for task in self._tasks[1:]:
                if not task.is_current() and not await task.join(deadline):
                    raise RequestTimeout("a handler is still running")
        finally:
            # With an order, messages are returned only after the handlers have ended. If they were
            # returned earlier, another client could receive a message while this worker still
            # handles an earlier message with the same key.
            await self._give_back(deadline)

    async def _confirm(self) -> None:
        """Send a request. Its response shows that the server has received all earlier acks."""
        try:
            if self._consumer is not None and self._error is None:
                await self._consumer.info()
        except _UNCONFIRMED:
            # There is no connection or no permission for the request. The server redelivers the
            # messages whose ack was lost.
            return

    def _stop_taking(self) -> None:
        self._stopping = True
        self._ended.set()
        self._filled.set()
        self._emptied.set()

    async def _give_back(self, deadline: Deadline) -> None:
        if self._buffer is not None:
            await self._buffer.close()
        for dispatcher in self._tasks[:1]:
            # The dispatching task or thread may have a message that is not queued yet.
            await dispatcher.join(deadline)
        async with self._lock:
            jobs = self._queue.clear()
        if jobs and self._settings.is_ordered:
            # Request the consumer info, so that the server drops the pull requests of the closed
            # inbox. Otherwise the server could use one of these requests for a returned message,
            # and then move this message behind the other returned messages.
            await self._confirm()
        for job in sorted(jobs, key=_place):
            await self._outcomes.give_back(job)
            self._release(job)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- from the consumer to the queue

    async def _dispatch(self) -> None:
        buffer = self._buffer
        if buffer is None:
            return
        adapt, take = self._settings.adapt, self._taking(buffer)
        try:
            while await self._has_room():
                message = await take(NEVER)
                if message is None:
                    return
                if await self._is_known(buffer, message):
                    continue
                if adapt is not None:
                    message = adapt(message)
                buffer.progress.hold(message)
                self._numbers += 1
                key = self._settings.key(message, self._numbers)
                async with self._lock:
                    self._queue.put(key, self._here.add(message))
                self._filled.set()
        except Exception as error:
            self._fail(error)

    def _taking(self, buffer: MessageBuffer) -> Take:
        """Return the function that takes the next message."""
        return buffer.take

    async def _is_known(self, buffer: MessageBuffer, message: Message) -> bool:
        """Return whether an earlier delivery of the message is queued, being handled or done.

        If this is so, the caller must skip the message, because the outcome of the earlier delivery
        counts for both deliveries. The server delivers such a message again after a long
        disconnect, or if the consumer's `ack_wait` was shortened.
        """
        if not is_repeated(message):
            return False
        await self._refresh_settings(buffer)
        async with self._lock:
            earlier = self._here.waiting(message)
            is_over = self._here.is_over(message)
        with suppress(AlreadyAcknowledged, *_UNCONFIRMED):
            if is_over:
                await message.ack()
            elif earlier is not None:
                # The server now waits for another `ack_wait` before it redelivers the message.
                await earlier.in_progress()
        return is_over or earlier is not None

    async def _refresh_settings(self, buffer: MessageBuffer) -> None:
        """Request the consumer's settings, which may have been changed, at most every 5 seconds."""
        if self._consumer is None or not self._next_refresh.expired():
            return
        self._next_refresh = Deadline.after(_REFRESH_INTERVAL)
        try:
            info = await self._consumer.info()
        except PermissionDenied:
            self._next_refresh = NEVER
            return
        except _UNCONFIRMED:
            return
        ack_wait = ack_wait_of(info)
        if info.config is not None and ack_wait is not None:
            self._outcomes.config = info.config
            buffer.change_ack_wait(ack_wait)

    async def _has_room(self) -> bool:
        """Wait until the queue has space for a message; return False if the worker stops."""
        while not self._stopping:
            self._emptied.clear()
            if len(self._queue) < self._settings.room:
                return True
            if not self._stopping:
                await self._emptied.sleep(NEVER)
        return False

    def _fail(self, error: BaseException) -> None:
        """Stop the worker. The error is kept if it is the first one."""
        self._keep_error(error, f"the worker on {self._stream}")
        self._stop_taking()

    # ---- from the queue to the handler

    async def _work(self) -> None:
        error = await failure_of(self._handle_all)
        if error is not None:
            self._fail(error)

    async def _handle_all(self) -> None:
        while (taken := await self._next()) is not None:
            await self._handle(*taken)

    async def _next(self) -> tuple[Hashable, Job] | None:
        """Return a message that may be handled now, with its key, or None at the end."""
        while True:
            # The signal is cleared before the queue is checked, so that no new message is missed.
            self._filled.clear()
            if self._stopping:
                self._filled.set()
                return None
            async with self._lock:
                taken = self._queue.take(monotonic())
                wake_at = self._queue.wake_at
                more = self._queue.has_free
            if more:
                # Wake up another handler task or thread, because this one has cleared the signal.
                self._filled.set()
            if taken is not None:
                return taken
            await self._filled.sleep(NEVER.earlier(wake_at))

    async def _handle(self, key: Hashable, job: Job) -> None:
        again: float | None = None
        try:
            again = await self._attempt(job)
        finally:
            if again is None:
                self._release(job)
            async with self._lock:
                if again is None:
                    self._here.done(job)
                    self._queue.done(key)
                else:
                    job.tries += 1
                    self._queue.again(key, job, monotonic() + again)
            self._filled.set()
            self._emptied.set()

    async def _attempt(self, job: Job) -> float | None:
        """Call the handler once. Return the seconds until this worker retries, or None."""
        message = job.message
        if message.is_late and not job.tries:
            # The server redelivers the message, or has redelivered it.
            return None
        if message._place is not None and await self._skips(job):
            return None
        try:
            await call(self._handler, message)
        except WrongHandler:
            # The handler is unsuitable for every message, so the worker ends.
            raise
        except Exception as error:
            return await self._outcomes.failed(job, error)
        await self._outcomes.succeeded(job)
        return None

    async def _skips(self, job: Job) -> bool:
        """Return whether a message need not be handled any more; acknowledge it then."""
        return False

    def _release(self, job: Job) -> None:
        if self._buffer is not None:
            self._buffer.progress.release(job.message)


def _place(job: Job) -> int:
    return job.message.metadata.stream_seq
