# Generated from src/js_async/exactly_once/processing.py by codegen/twin.py. Edit that file instead.
"""Processing without doubles: results are stored once, then the input is confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Self

from twinstream.core.deadline import Seconds, seconds
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    NoResponders,
    NotPromised,
    OutcomeUnknown,
    RequestTimeout,
    WrongHandler,
)
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.exactly_once.processing import (
    InputStream,
    ProcessReport,
    Reject,
    delays,
    processing_holes,
    results_of,
)
from twinstream.core.publish.request import PublishRequest
from twinstream.core.log.reporter import Reporter
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.models import ConsumerConfig
from js_sync.api.api import Api
from js_sync.consume.delivery import ack_wait_of
from js_sync.runtime.concurrency import BlockHint, Handler, Lock, call, check_handler
from js_sync.exactly_once.stored_results import KnownResults
from js_sync.exactly_once.idempotent_writer import By, OnceWriter, once_writer
from js_sync.client.owned import Owned
from js_sync.consumer import Consumer
from js_sync.consume.consume import Consuming, Order
from js_sync.consume.message import Message

if TYPE_CHECKING:
    from twinstream.core.consume.pull_request import Priority
    from js_sync.exactly_once.stream_guarantees import PromisedStreams
    from js_sync.jetstream import JetStream

__all__ = ["Processing"]

_UNCONFIRMED: Final = (ConnectionLost, RequestTimeout, NoResponders)


class Processing(Owned, BlockHint):
    """Calls a handler for each message and stores what it returns; made by `JetStream.process`.

    Use it in a `with` block, or call `start`, and `stop` or `drain` in the end.
    """

    def __init__(
        self,
        jet: JetStream,
        api: Api,
        streams: PromisedStreams,
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
        on_report: Callable[[ProcessReport], None] | None,
    ) -> None:
        super().__init__()
        check_kind(consumer, Consumer, "consumer", "a Consumer, as `get_consumer` returns it")
        check_handler(handler)
        self._jet: Final = jet
        self._api: Final = api
        self._consumer: Final = consumer
        self._handler: Final = handler
        self._into: Final = into
        self._name: Final = name or consumer.name
        self._timeout: Final = seconds(timeout)
        self._writer: Final[OnceWriter] = once_writer(jet, streams, into, by, self._timeout)
        self._looks_up: Final = by == "id"
        self._delays: Final = delays(retry)
        self._reporter: Final[Reporter[ProcessReport]] = Reporter(
            on_report, stream=consumer.stream, consumer=consumer.name
        )
        self._consuming: Final = consumer.consume(
            self._handle,
            concurrency=concurrency,
            order=order,
            progress=True,
            priority=priority,
            stop_after=stop_after,
        )
        self._input: InputStream | None = None
        self._known: KnownResults | None = None
        self._counting: Final = Lock()
        self.done = 0
        """Messages whose results are stored and whose acknowledgement is confirmed."""
        self.stored = 0
        """Results that were stored."""
        self.repeated = 0
        """Results that were found stored already."""

    def __repr__(self) -> str:
        return f"<Processing {self._consumer.stream}/{self._consumer.name}: {self.done} done>"

    # ---- life

    @property
    def consuming(self) -> Consuming:
        """The consumption underneath."""
        return self._consuming

    def start(self) -> None:
        """Check the settings, then start to work.

        Raises `NotPromised` where they let doubles or losses through, `StreamNotFound`,
        `ConsumerNotFound`.
        """
        self._consuming._note_begun()
        info = self._consumer.info()
        holes = processing_holes(info.config or ConsumerConfig())
        if holes:
            where = f"{self._consumer.stream}/{self._consumer.name}"
            raise NotPromised(where, "that each message is processed", tuple(holes))
        stream = (self._jet.get_stream(self._consumer.stream)).info()
        self._input = InputStream(self._name, self._consumer.stream, stream.created)
        self._input.check()
        if self._looks_up:
            self._known = KnownResults(
                self._jet, self._api, self._writer, self._input, stream.ts, self._timeout
            )
        self._writer.check()
        ack_wait = ack_wait_of(info)
        if ack_wait is not None:
            # A bound consumer did not know it, and another one perhaps not as it is now.
            self._consuming.messages._learn(ack_wait)
        self._consuming.start()

    def stop(self, timeout: Seconds = 30.0) -> None:
        """End at once: handlers that run may finish. Raises as `Consuming.stop` does."""
        self._consuming.stop(timeout)

    def drain(self, timeout: Seconds = 30.0) -> None:
        """Ask for no more, work on what is here, then end. Raises as `stop` does."""
        self._consuming.drain(timeout)

    def wait(self, timeout: Seconds | None = None) -> None:
        """Return when it has ended: by `stop` or `drain`, or by an error, which is raised here."""
        self._consuming.wait(timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.stop()

    # ---- work

    def _handle(self, message: Message) -> None:
        if self._input is None:
            raise BadArgument("the processing was not started")
        seq = message.metadata.stream_seq
        try:
            returned = call(self._handler, message)
            if message.is_acknowledged:
                raise BadArgument(
                    "the handler acknowledged the message: that is done when its results are stored"
                )
            results = results_of(returned, self._input, seq, self._into)
            doubt = self._store(message, results)
        except Reject as reason:
            self._reject(message, reason)
        except (ConnectionClosed, OutcomeUnknown, NotPromised, WrongHandler):
            raise
        except Exception as error:
            self._later(message, error)
        else:
            # What became of them is found out when the message comes again.
            (self._confirm(message) if doubt is None else self._later(message, doubt))

    def _later(self, message: Message, error: Exception) -> None:
        step = min(message.metadata.num_delivered, len(self._delays)) - 1
        delay = self._delays[step]
        if not message.is_acknowledged:
            try:
                message.nak(delay)
            except _UNCONFIRMED as trouble:
                # It comes again by itself, after the ack_wait of its consumer.
                self._report(message, trouble)
        self._report(message, error, delay=delay)

    def _reject(self, message: Message, reason: Reject) -> None:
        try:
            message.term(str(reason) or None)
        except _UNCONFIRMED as trouble:
            # It comes again, and is rejected then.
            self._report(message, trouble)
        else:
            self._report(message, reason, rejected=True)

    def _confirm(self, message: Message) -> None:
        try:
            message.double_ack(self._timeout)
        except _UNCONFIRMED as error:
            # It may come again; its results are known by then.
            self._report(message, error)
        else:
            with self._counting:
                self.done += 1

    def _store(self, message: Message, results: list[PublishRequest]) -> OutcomeUnknown | None:
        """Store what is not stored yet; return the doubt where an answer was lost."""
        known = () if self._known is None else self._known.of(message, results)
        missing = [result for result in results if result.msg_id not in known]
        outcomes = self._writer.write(missing) if missing else []
        failed = [outcome for outcome in outcomes if not isinstance(outcome, Stored)]
        fresh = sum(isinstance(each, Stored) and not each.repeated for each in outcomes)
        with self._counting:
            self.stored += fresh
            self.repeated += len(results) - fresh - len(failed)
        doubt = None
        for error in failed:
            if not isinstance(error, OutcomeUnknown):
                raise error
            doubt = error
        return doubt

    def _report(
        self, message: Message, error: Exception, *, rejected: bool = False, delay: float = 0.0
    ) -> None:
        report = ProcessReport(
            subject=message.subject,
            seq=message.metadata.stream_seq,
            error=error,
            rejected=rejected,
            delay=delay,
            attempt=message.metadata.num_delivered,
        )
        self._reporter(report)
