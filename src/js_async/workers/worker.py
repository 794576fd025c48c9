"""Workers: call a handler for each message of a consumer, with retries, in order if required."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from js_async import Consumer, JetStream, Message
from js_async.extension import BackgroundWork, MessageBuffer, api_of, buffer_of
from js_async.runtime.concurrency import (
    Handler,
    Signal,
    Task,
    call,
    check_handler,
)
from js_async.workers.dead_letters import DeadLetters, collection_of
from js_async.workers.job_outcome import Outcomes
from js_async.workers.job_queue import JobQueue
from js_async.workers.jobs import Job
from js_async.workers.redeliveries import Redeliveries
from js_async.workers.settings import KeyOf, OnBad, WorkSettings
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.consume.pull_request import Priority
from twinstream.core.deadline import NEVER, Deadline
from twinstream.core.log.events import WorkerStarted, WorkerStopped
from twinstream.core.on_failure import OnFailure
from twinstream.core.wire.subjects import check_name
from twinstream.core.workers.reports import WorkReport
from twinstream.core.workers.retry import RETRY, Retry
from twinstream.errors import (
    BadArgument,
    PermissionDenied,
    WrongHandler,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import AckPolicy, ConsumerConfig

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["Take", "Worker", "payloads_of_handler"]


class Take(Protocol):
    """A function that returns the next message before a deadline, or None at the end."""

    async def __call__(self, deadline: Deadline) -> Message | None:
        """Return the next message. Raises `RequestTimeout` if there is none before the deadline."""
        ...


_UNCONFIRMED: Final = (*FAILED_REQUEST, PermissionDenied)


class Worker(BackgroundWork):
    """A worker that calls a handler for each message of a consumer.

    Call `run`, which works until the program receives a signal. Or use the worker in a `with`
    block, or call `start` and `stop`. The constructor sends no request.

    When the handler returns, the worker acknowledges the message, unless the handler has done so.
    If the handler raises an error, the message is retried: `TryLater` sets the delay. After
    `Reject` or the last attempt, the worker stores the message as a dead letter, if enabled, and
    terminates it. While the handler runs, the worker extends the ack_wait.

    At the end, unhandled messages are returned to the server. If the connection and the permissions
    allow it, the work ends after the server has received all acknowledgements.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        consumer: Name of the consumer, or the configuration with which to create it.
        handler: Function to call with each message. If its annotation is `Message[Order]`, the
            messages have a `payload` of type `Order`.
        concurrency: Maximum number of handlers that run at once.
        order: Which messages are handled one after the other: "none", "subject" (messages of the
            same subject), "total" (all messages), or a function of the message (messages with the
            same return value).
        retry: When to retry, and how often.
        dead_letters: Where to store messages that are not retried any more.
        on_bad: What to do with a message whose payload does not fit the type of the handler.
            "dead_letter" (the default with `dead_letters`) stores it as a dead letter, "terminate"
            (the default without) terminates it with the reason, and "hand_over" calls the handler,
            whose `message.payload` raises the `PayloadError`. It is never retried.
        max_messages: Maximum number of messages to buffer. By default it is 500 if `order` is
            "subject" or a function, 2 if `order` is "total", and otherwise two for each handler.
            The same number may be in flight to the worker. When the worker stops, it returns
            buffered messages to the server, which still counts their delivery.
        priority: Priority group, if the consumer has groups. With the policy `pinned_client`, one
            worker gets all messages, and the others stand by.
        on_report: Callback that receives reports.

    Raises:
        BadArgument: An argument is invalid, or the handler's annotation cannot be resolved, or its
            type cannot be encoded.
    """

    _area = "worker"

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        consumer: str | ConsumerConfig,
        handler: Handler[Message[Any]],
        *,
        concurrency: int = 1,
        order: KeyOf = "none",
        retry: Retry = RETRY,
        dead_letters: DeadLetters | None = None,
        on_bad: OnBad | None = None,
        max_messages: int | None = None,
        priority: Priority | None = None,
        on_report: Callable[[WorkReport], None] | None = None,
    ) -> None:
        settings = WorkSettings(
            concurrency=concurrency,
            order=order,
            retry=retry,
            dead_letters=dead_letters,
            max_messages=max_messages,
            priority=priority,
            on_report=on_report,
            on_bad=on_bad,
        )
        super().__init__(on_report)
        api_of(jet)  # Raises `BadArgument` for another object.
        check_name(stream_name, "stream")
        if isinstance(consumer, str):
            check_name(consumer, "consumer")
        else:
            check_kind(consumer, ConsumerConfig, "consumer", "a name or a ConsumerConfig")
            # Without an `ack_policy`, the client asks for an explicit one.
            _suitable(consumer, consumer.ack_policy or AckPolicy.EXPLICIT, stream_name)
        check_handler(handler)
        self._payloads: Final = payloads_of_handler(handler)
        self._jet: Final = jet
        self._stream: Final = stream_name
        self._wanted: Final = consumer
        self._handler: Final = handler
        self._settings: Final = settings
        self._outcomes = Outcomes(settings, ConsumerConfig())
        self._jobs: Final = JobQueue(settings.room, settings.key)
        self._consumer: Consumer | None = None
        self._buffer: MessageBuffer | None = None
        self._redeliveries: Redeliveries | None = None
        # An error that ends the creation of dead letters is raised at the end of the work.
        self._letters_ended: Final = Signal()
        self._is_unstarted = True

    @property
    def _label(self) -> str:
        wanted = self._wanted if self._consumer is None else self._consumer.name
        if isinstance(wanted, str):
            name = wanted
        else:
            name = wanted.name or wanted.durable_name or "a new consumer"
        return f"{name} of {self._stream}"

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
        return self._jobs.in_hand

    @property
    def waiting(self) -> int:
        """Number of queued messages that wait for their handler, or for a retry by the worker."""
        return self._jobs.waiting

    # ---- lifecycle

    async def _begin(self) -> None:
        """Bind the consumer, check its configuration, and open the buffer of messages."""
        consumer = await self._bound()
        info = consumer.cached_info
        found = info.config if info is not None else None
        if found is None:
            raise BadArgument(f"{consumer}: a worker needs ack_policy explicit")
        config = _suitable(found, found.ack_policy, f"{consumer}")
        self._consumer = consumer
        self._outcomes = Outcomes(
            self._settings,
            config,
            consumer.stream_name,
            consumer.name,
            api_of(self._jet).transport.observers,
        )
        # Pull no more messages than needed. When the worker stops, it returns unhandled messages,
        # but the server has already counted their delivery.
        messages = consumer.messages(
            max_messages=self._settings.room,
            priority=self._settings.priority,
            on_report=self._settings.on_report,
        )
        buffer = buffer_of(messages)
        buffer.ends_by(self._end_soon, self._ended_by)
        buffer.ready.payloads = self._payloads
        buffer.progress.keep_all |= self._settings.is_ordered
        if self._settings.dead_letters is not None:
            await collection_of(self._settings.dead_letters).join(self._letters_ended)
        self._buffer = buffer
        self._redeliveries = Redeliveries(consumer, buffer, self._jobs, self._outcomes)

    async def _bound(self) -> Consumer:
        """Return the consumer with its info."""
        if isinstance(self._wanted, str):
            return await self._jet.get_consumer(self._stream, self._wanted)
        return await self._jet.create_consumer(self._stream, self._wanted)

    async def _work(self) -> None:
        """Run the dispatcher and the handlers until the worker stops."""
        report = self._outcomes.report
        dispatcher = self._spawn(self._dispatch, "twinstream-dispatch")
        handlers = [
            self._spawn(self._handle_all, f"twinstream-worker-{number}")
            for number in range(self._settings.concurrency)
        ]
        report.log(WorkerStarted(self._settings.concurrency))
        try:
            await self._stopping.sleep(NEVER)
        finally:
            # Also if this task is cancelled, as all tasks are at the end of an event loop.
            self._stop_taking()
            await self._end(dispatcher, handlers)
        await self._confirm()

    async def _end(self, dispatcher: Task, handlers: list[Task]) -> None:
        try:
            await self._end_work(dispatcher, handlers)
        finally:
            if self._settings.dead_letters is not None:
                await collection_of(self._settings.dead_letters).leave(self._letters_ended)
            self._outcomes.report.log(WorkerStopped(self.handled, self.retried, self.rejected))

    async def _request_stop(self) -> None:
        self._stop_taking()

    async def _end_work(self, dispatcher: Task, handlers: list[Task]) -> None:
        """Wait until no handler is running and the other messages are returned."""
        if not self._settings.is_ordered:
            await self._give_back(dispatcher)
        for task in handlers:
            await task.join(NEVER)
        # With an order, messages are returned only after the handlers have ended. If they were
        # returned earlier, another client could receive a message while this worker still handles
        # an earlier message with the same key.
        await self._give_back(dispatcher)

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
        self._jobs.close()
        self._stopping.set()

    async def _give_back(self, dispatcher: Task) -> None:
        """Return all messages that no handler has started to the server, in order."""
        if self._buffer is not None:
            await self._buffer.close()
        # The dispatching task or thread may have a message that is not queued yet.
        await dispatcher.join(NEVER)
        jobs = await self._jobs.clear()
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
        """Move messages from the buffer to the queue of jobs, whenever the queue has room.

        Skips redeliveries of messages that the worker still has.
        """
        buffer, redeliveries = self._buffer, self._redeliveries
        if buffer is None or redeliveries is None:
            return
        take = self._taking(buffer)
        try:
            while await self._jobs.has_room():
                message = await take(NEVER)
                if message is None:
                    return
                if await redeliveries.is_known(message):
                    continue
                message = self._adapted(message)
                buffer.progress.hold(message)
                await self._jobs.add(message)
        except Exception as error:
            self._fail(error)

    def _taking(self, buffer: MessageBuffer) -> Take:
        """Return the function that takes the next message."""
        return buffer.take

    def _adapted(self, message: Message) -> Message:
        """Return a message as its key is computed from it, and as its handler receives it."""
        return message

    def _fail(self, error: BaseException) -> None:
        """Stop the worker. The error is kept if it is the first one."""
        self._keep_error(error)
        self._stop_taking()

    # ---- from the queue to the handler

    async def _handle_all(self) -> None:
        try:
            await self._handle_each()
        except BaseException as error:
            # Also `SystemExit` of a handler: the call that waits for the end of the work raises it.
            self._fail(error)

    async def _handle_each(self) -> None:
        while (taken := await self._jobs.take()) is not None:
            await self._handle(*taken)

    async def _handle(self, key: Hashable, job: Job) -> None:
        delay: float | None = None
        try:
            # An error ends the worker. The next message of the key, which is free below, must not
            # begin.
            with OnFailure(self._jobs.close):
                delay = await self._attempt(job)
        finally:
            if delay is None:
                self._release(job)
                await self._jobs.done(key, job)
            else:
                await self._jobs.again(key, job, delay)

    async def _attempt(self, job: Job) -> float | None:
        """Call the handler once. Return the seconds until this worker retries, or None."""
        message = job.message
        if await self._jobs.leaves_late(job):
            return None
        if message._place is not None and await self._skips(job):
            return None
        observers = api_of(self._jet).transport.observers
        if observers is None:
            return await self._try(job)
        with observers.begin_of("handle", self._area, message) as operation:
            operation.attempts = job.attempt
            return await self._try(job)

    async def _try(self, job: Job) -> float | None:
        """Handle a job once and settle its message.

        Return the delay in seconds after which to try again, or None if the job is finished.
        """
        if self._payloads is not None and self._settings.on_bad != "hand_over":
            # A message that does not fit never reaches the handler.
            payload_error = job.message.payload_error
            if payload_error is not None:
                await self._outcomes.misfit(job, payload_error)
                return None
        try:
            await call(self._handler, job.message)
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


def _suitable(config: ConsumerConfig, ack_policy: AckPolicy | None, where: str) -> ConsumerConfig:
    """Return the configuration of a worker's consumer. Raises `BadArgument` for others."""
    if ack_policy != AckPolicy.EXPLICIT:
        raise BadArgument(f"{where}: a worker needs ack_policy explicit")
    if config.deliver_subject is not None:
        raise BadArgument(
            f"{where}: a worker pulls its messages, and a deliver_subject makes a push consumer:"
            " omit it, or read the messages with push_messages of the stream"
        )
    return config


def payloads_of_handler(handler: Handler[Any]) -> Payloads[Any] | None:
    """Return the payloads that the annotation of a handler requires; see `handled_payloads`."""
    from twinstream.core.payloads.annotation import handled_payloads

    return handled_payloads(handler, Message)


def _place(job: Job) -> int:
    return job.message.metadata.stream_seq
