"""Processing without duplicates: each result is stored once, then the input is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Self

from js_async.api.api import Api
from js_async.background.work import BackgroundWork
from js_async.consume.consume import Consuming, Order
from js_async.consume.message import Message
from js_async.consume.messages import buffer_of
from js_async.consumer import Consumer
from js_async.exactly_once.idempotent_writer import By
from js_async.exactly_once.result_store import ResultStore
from js_async.runtime.concurrency import Handler, Lock, call, check_handler
from js_async.subject_writes.subject_writes import SubjectWrites
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.consume.ack_wait import ack_wait_of
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
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    OutcomeUnknown,
    UnsuitableSettings,
    WrongHandler,
)
from twinstream.errors.transient import NO_RESPONSE
from twinstream.models import ConsumerConfig

if TYPE_CHECKING:
    from twinstream.core.consume.pull_request import Priority

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
    """A processing of a consumer's messages in the background. `JetStream.process` creates it.

    It calls a handler for each message, stores the results that the handler returns, and then
    acknowledges the message. Use it in a `with` block, or call `run`, or call `start`, and finally
    `stop` or `drain`.
    """

    # The consumption reports it.
    _reports_end = False

    def __init__(
        self,
        api: Api,
        writes: SubjectWrites,
        consumer: Consumer,
        handler: Handler[Message],
        into: str,
        by: By,
        *,
        name: str | None,
        concurrency: int,
        order: Order,
        priority: Priority | None,
        stop_after: int | None,
        retry: Seconds | Sequence[Seconds],
        timeout: Seconds,
        on_report: Callable[[ProcessReport | WorkEnded], None] | None,
    ) -> None:
        super().__init__()
        check_kind(consumer, Consumer, "consumer", "a Consumer, as `get_consumer` returns it")
        # A generator function yields its results.
        check_handler(handler, may_yield=True)
        self._api: Final = api
        self._consumer: Final = consumer
        self._handler: Final = handler
        self._into: Final = into
        self._name: Final = name or consumer.name
        self._timeout: Final = seconds(timeout)
        self._results: Final = ResultStore(api, writes, into, by, self._timeout)
        self._delays: Final = delays(retry)
        self._reporter: Final[Reporter[ProcessReport | WorkEnded]] = Reporter(
            on_report, stream=consumer.stream_name, consumer=consumer.name
        )
        self._consuming: Final = _Consumption(
            f"{consumer.name} of {consumer.stream_name}",
            consumer.messages(priority=priority, stop_after=stop_after),
            self._handle,
            concurrency,
            order,
            progress=True,
            on_end=on_report,
        )
        self._input: InputStream | None = None
        self._counting: Final = Lock()
        self.done = 0
        """The number of messages with stored results and a confirmed acknowledgement."""

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

    @property
    def consuming(self) -> Consuming:
        """The underlying consumption, which pulls the messages and runs the workers."""
        return self._consuming

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
        info = await self._consumer.info()
        gaps = processing_gaps(info.config or ConsumerConfig())
        if gaps:
            where = f"{self._consumer.stream_name}/{self._consumer.name}"
            raise UnsuitableSettings(where, "that each message is processed", tuple(gaps))
        stream = await self._api.stream_info(self._consumer.stream_name)
        self._input = InputStream(self._name, self._consumer.stream_name, stream.created)
        self._input.check()
        await self._results.open(self._input, stream.ts)
        ack_wait = ack_wait_of(info)
        if ack_wait is not None:
            # `Consumer.consume` used the cached ack_wait, which may be outdated or None.
            buffer_of(self._consuming.messages).set_ack_wait(ack_wait)
        await self._consuming.start()

    async def _work(self) -> None:
        await self._consuming.wait()

    async def _request_stop(self) -> None:
        await self._consuming.end_soon()

    def _is_within(self) -> bool:
        return super()._is_within() or self._consuming.is_handler()

    async def drain(self, *, timeout: Seconds = 30.0) -> None:
        """Stop pulling, and wait until the buffered messages are processed.

        Does nothing if the processing was never started or has ended. If a handler calls `drain`,
        the call does not wait.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds.
            Exception: The error that ended the processing, if no call has raised it before.
        """
        if self._is_parents:
            return
        if not self._is_started:
            return
        await buffer_of(self._consuming.messages).drain()
        await self._await_end(timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- work

    async def _handle(self, message: Message) -> None:
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
            await self._later(message, error)
        else:
            # If an outcome is unknown, do not acknowledge the message. When it is redelivered, the
            # outcome is determined.
            await (self._confirm(message) if unknown is None else self._later(message, unknown))

    async def _later(self, message: Message, error: Exception) -> None:
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
        if self._api.transport.observers is not None:
            self._api.transport.observers.note_failure(message, error)
        report = ProcessReport(
            subject=message.subject,
            seq=message.metadata.stream_seq,
            error=error,
            rejected=rejected,
            delay=delay,
            attempt=message.metadata.num_delivered,
        )
        self._reporter(report)
