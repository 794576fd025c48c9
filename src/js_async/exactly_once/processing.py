"""Processing without duplicates: each result is stored once, then the input is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Self

from js_async import Consumer, Consuming, JetStream, Message
from js_async.exactly_once.idempotent_writer import By
from js_async.exactly_once.result_store import ResultStore
from js_async.extension import BackgroundWork, api_of, buffer_of
from js_async.runtime.concurrency import Handler, Lock, call, check_handler
from twinstream.core.consume.order import Order
from twinstream.core.consume.pull_request import Priority
from twinstream.core.consume.reports import WorkEnded
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.exactly_once.processing import (
    InputStream,
    ProcessReport,
    Reject,
    delays,
    processing_gaps,
    results_of,
)
from twinstream.core.log.reporter import Reporter
from twinstream.core.wire.subjects import check_name
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    OutcomeUnknown,
    UnsuitableSettings,
    WrongHandler,
)
from twinstream.errors.transient import NO_RESPONSE
from twinstream.models import ConsumerConfig

__all__ = ["Processing"]


class _Consumption(Consuming):
    """The consumption of a processing. It reports the error that ends both."""

    _call = "process"

    @property
    def _title(self) -> str:
        return f"Processing {self._label}"

    async def end_soon(self) -> None:
        """Stop, without waiting for the handlers."""
        await self._end_soon()

    def is_handler(self) -> bool:
        """Return whether the caller is a handler."""
        return self._is_within()


class Processing(BackgroundWork):
    """A processing of a consumer's messages in the background, without duplicate results.

    It calls a handler for each message, stores the results that the handler returns in another
    stream, each of them once, and then acknowledges the message with confirmation. Use it in a
    `with` block, or call `run`, or call `start`, and finally `stop` or `drain`. The constructor
    sends no request.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream whose messages are processed.
        consumer: Name of the consumer.
        handler: Function that gets a message and returns None, a `PublishRequest` or several. The
            id of a result consists of `name`, the stream and sequence of the processed message, and
            the index of the result. `{id}` in the subject of a result is replaced by the id of the
            result. If the handler raises `Reject`, the message is not redelivered.
        into: Name of the stream for the results.
        by: How duplicates are prevented. "subject": each result has a unique subject, and the
            stream refuses a second message of a subject. "id": the stream refuses a second message
            with the same id within its duplicate window; for older results, the processing searches
            the stream.
        name: Name in the ids. The default is the name of the consumer.
        concurrency: Maximum number of handlers that run at once.
        order: "none", "subject" (messages of one subject one after the other) or "total" (all
            messages one after the other).
        priority: Priority group and options.
        stop_after: End after this number of messages.
        retry: Seconds until redelivery after an error of the handler. With several values, the
            first applies after the first delivery, the second after the second delivery and so on.
            The last value applies after all further deliveries.
        timeout: Seconds for one attempt to store results.
        on_report: Callback that receives failures, and a `WorkEnded` if an error ended the
            processing.

    Raises:
        BadArgument: An argument is invalid.
    """

    # The consumption reports it.
    _reports_end = False

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        consumer: str,
        handler: Handler[Message],
        *,
        into: str,
        by: By,
        name: str | None = None,
        concurrency: int = 1,
        order: Order = "none",
        priority: Priority | None = None,
        stop_after: int | None = None,
        retry: Seconds | Sequence[Seconds] = (1, 5, 30),
        timeout: Seconds = 5.0,
        on_report: Callable[[ProcessReport | WorkEnded], None] | None = None,
    ) -> None:
        super().__init__()
        api_of(jet)  # Raises `BadArgument` for another object.
        check_name(stream_name, "stream")
        check_name(consumer, "consumer")
        check_name(into, "stream")
        # A generator function yields its results.
        check_handler(handler, may_yield=True)
        self._jet: Final = jet
        self._consumer: Final[Consumer] = jet.bind_consumer(stream_name, consumer)
        self._handler: Final = handler
        self._into: Final = into
        self._name: Final = name or consumer
        self._timeout: Final = seconds(timeout)
        self._results: Final = ResultStore(jet, into, by, self._timeout)
        self._delays: Final = delays(retry)
        self._reporter: Final[Reporter[ProcessReport | WorkEnded]] = Reporter(
            on_report, stream=stream_name, consumer=consumer
        )
        self._new_consumption: Final = partial(
            self._consume, concurrency, order, priority, stop_after, on_report
        )
        # `start` replaces it when the settings of the consumer are known. This one checks the
        # arguments.
        self._consuming = self._new_consumption()
        self._input: InputStream | None = None
        self._is_unstarted = True
        self._counting: Final = Lock()
        self.done = 0
        """The number of messages with stored results and a confirmed acknowledgement."""

    def _consume(
        self,
        concurrency: int,
        order: Order,
        priority: Priority | None,
        stop_after: int | None,
        on_report: Callable[[ProcessReport | WorkEnded], None] | None,
    ) -> _Consumption:
        return _Consumption(
            self._label,
            self._consumer.messages(priority=priority, stop_after=stop_after),
            self._handle,
            concurrency,
            order,
            progress=True,
            on_end=on_report,
        )

    @property
    def _label(self) -> str:
        return f"{self._consumer.name} of {self._consumer.stream_name}"

    @property
    def stored(self) -> int:
        """The number of results that this object stored."""
        return self._results.stored

    @property
    def repeated(self) -> int:
        """The number of results that the stream already contained."""
        return self._results.repeated

    # ---- lifecycle

    async def start(self) -> None:
        """Check the settings of the streams and the consumer, then start to work.

        Raises:
            UnsuitableSettings: The settings allow duplicates or losses.
            StreamNotFound: A stream does not exist.
            ConsumerNotFound: The consumer does not exist.
            BadArgument: The processing was started before.
        """
        await super().start()

    async def _begin(self) -> None:
        """Check the settings of the consumer and of its stream, and start to consume."""
        info = await self._consumer.info()
        gaps = processing_gaps(info.config or ConsumerConfig())
        if gaps:
            where = f"{self._consumer.stream_name}/{self._consumer.name}"
            raise UnsuitableSettings(where, "that each message is processed", tuple(gaps))
        stream = await self._jet.bind_stream(self._consumer.stream_name).info()
        self._input = InputStream(self._name, self._consumer.stream_name, stream.created)
        self._input.check()
        await self._results.open(self._input, stream.ts)
        self._consuming = self._new_consumption()
        buffer = buffer_of(self._consuming.messages)
        buffer.ends_by(buffer.drain, self._ended_by)
        if self._stopping.is_set():
            # `stop` or `drain` was called during the requests.
            await self._consuming.end_soon()
        await self._consuming.start()

    async def _work(self) -> None:
        await self._consuming.wait()

    async def _request_stop(self) -> None:
        await self._consuming.end_soon()

    def _is_within(self) -> bool:
        return super()._is_within() or self._consuming.is_handler()

    async def drain(self, *, timeout: Seconds = 30.0) -> None:
        """Stop pulling, and wait until the buffered messages are processed.

        Does nothing if the processing has ended, or was never started, which causes a
        `RuntimeWarning`. If a handler calls `drain`, the call does not wait.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds.
            Exception: The error that ended the processing, if no call has raised it before.
        """
        if self._is_parents:
            return
        if not self._is_started:
            self._warn_if_unstarted()
            return
        if self._consuming.is_running:
            await buffer_of(self._consuming.messages).drain()
        else:
            # A start is under way, and nothing is buffered.
            await self._end_soon()
        await self._await_end(timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- work

    async def _handle(self, message: Message) -> None:
        """Call the handler for a message, store its results, and then acknowledge the message.

        `Reject` terminates the message. After most errors, the message is returned with a delay.
        Errors that concern every message are raised and end the processing.
        """
        if self._input is None:
            raise BadArgument("the processing was not started")
        seq = message.metadata.stream_seq
        try:
            returned = await call(self._handler, message, may_yield=True)
            if message.is_acknowledged:
                raise BadArgument(
                    "the handler acknowledged the message: that happens after its results are"
                    " stored"
                )
            results = results_of(returned, self._input, seq, self._into)
            unknown = await self._results.store(message, results)
        except Reject as reason:
            await self._reject(message, reason)
        except (ConnectionClosed, OutcomeUnknown, UnsuitableSettings, WrongHandler):
            raise
        except Exception as error:
            await self._return_later(message, error)
        else:
            # If an outcome is unknown, do not acknowledge the message. When it is redelivered, the
            # outcome is determined.
            await (
                self._confirm(message) if unknown is None else self._return_later(message, unknown)
            )

    async def _return_later(self, message: Message, error: Exception) -> None:
        step = min(message.metadata.num_delivered, len(self._delays)) - 1
        delay = self._delays[step]
        if not message.is_acknowledged:
            try:
                await message.nak(delay)
            except NO_RESPONSE as trouble:
                # The server redelivers the message after the ack_wait of its consumer.
                self._report(message, trouble)
        self._report(message, error, delay=delay)

    async def _reject(self, message: Message, reason: Reject) -> None:
        try:
            await message.term(str(reason) or None)
        except NO_RESPONSE as trouble:
            # The server redelivers the message, and the handler rejects it again.
            self._report(message, trouble)
        else:
            self._report(message, reason, rejected=True)

    async def _confirm(self, message: Message) -> None:
        try:
            await message.double_ack(timeout=self._timeout)
        except NO_RESPONSE as error:
            # The server may redeliver the message. Its results are not stored a second time.
            self._report(message, error)
        else:
            async with self._counting:
                self.done += 1

    def _report(
        self, message: Message, error: Exception, *, rejected: bool = False, delay: float = 0.0
    ) -> None:
        """Report a failed message to the observers and to the caller's callback."""
        observers = api_of(self._jet).transport.observers
        if observers is not None:
            observers.note_failure(message, error)
        report = ProcessReport(
            subject=message.subject,
            seq=message.metadata.stream_seq,
            error=error,
            rejected=rejected,
            delay=delay,
            attempt=message.metadata.num_delivered,
        )
        self._reporter(report)
