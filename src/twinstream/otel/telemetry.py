"""`Telemetry`: an observer that emits spans and metrics by the conventions for messaging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import Any, Final, TypedDict

from opentelemetry import context as current
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider

from twinstream.core.deadline import Seconds, seconds
from twinstream.core.log.report import Report
from twinstream.core.observe.events import Received
from twinstream.core.observe.gauge import Gauge
from twinstream.core.observe.observer import Observer
from twinstream.core.observe.operation import Operation
from twinstream.errors import BadArgument, NotAcknowledgeable
from twinstream.otel.conventions import CONVENTIONS, Conventions, Version
from twinstream.otel.metrics import Metrics
from twinstream.otel.propagation import context_in, span_in

__all__ = ["Settings", "Telemetry"]

_LINK_AFTER: Final = 3600.0
# The type of each kind of operation. Others have no span and no metric.
_TYPES: Final = {
    "create": "create",
    "publish": "send",
    "receive": "receive",
    "handle": "process",
    "ack": "settle",
    "nak": "settle",
    "term": "settle",
    "progress": "settle",
}
# The names of operations, where they are not that of the call.
_NAMES: Final = {
    "outbox": "create",
    "fast_ingest": "create",
    "publish_many": "publish",
    "publisher": "publish",
    "put_many": "publish",
    "exactly_once": "publish",
    "atomic_batch": "publish_batch",
    "core_publish": "publish",
    "core_request": "request",
    "worker": "process",
    "consume": "process",
    "double_ack": "ack",
}
# Calls that send many messages, so that their messages have a span only if that is asked for.
_BULK: Final = {"publish_many", "publisher", "put_many", "atomic_batch", "fast_ingest"}
_SENT: Final = ("publish", "create", "request")


class Settings(TypedDict, total=False):
    """The arguments of `Telemetry`."""

    tracer_provider: TracerProvider | None
    meter_provider: MeterProvider | None
    conventions: Version
    destination: Callable[[str], str | None] | None
    each_message: bool
    settle_spans: bool
    link_after: Seconds


class _Begun:
    """What `begin` passes to `end`: the span, if there is one, and what was attached."""

    __slots__ = ("attached", "metered", "span")

    def __init__(self, metered: dict[str, Any], span: trace.Span | None, attached: Any) -> None:
        self.metered = metered
        self.span = span
        self.attached = attached


class Telemetry(Observer):
    """An observer that emits spans and metrics of publishing, receiving, handling and settling.

    The context of a trace is added to messages that are published, and the handlers of messages
    continue it. Payloads and values of headers are never recorded.

    Args:
        tracer_provider: Source of the tracer; the default is the global one.
        meter_provider: Source of the meter; the default is the global one.
        conventions: Version of the semantic conventions: "1.45", or "1.43", whose names are those
            of the Java agent for NATS.
        destination: Function that returns a template of low cardinality for a subject, such as
            `orders.{id}`, or None. It names spans, and is an attribute of spans and metrics. By
            default, received messages have the name of their stream.
        each_message: Whether each message of `publish_many`, `publisher`, batches and `FastIngest`
            has a span. Without it, these messages carry the context of the caller.
        settle_spans: Whether acknowledgements have spans.
        link_after: Seconds after which a stored message is too old for its handler to be a child of
            its publisher's span. The handler then begins a trace, with a link to that span.

    Raises:
        BadArgument: An argument is invalid.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        conventions: Version = "1.45",
        destination: Callable[[str], str | None] | None = None,
        each_message: bool = False,
        settle_spans: bool = True,
        link_after: Seconds = _LINK_AFTER,
    ) -> None:
        if conventions not in CONVENTIONS:
            known = " or ".join(map(repr, CONVENTIONS))
            raise BadArgument(f"conventions must be {known}, got {conventions!r}")
        if destination is not None and not callable(destination):
            raise BadArgument(
                f"destination must be a function of a subject or None, got {destination!r}"
            )
        names = CONVENTIONS[conventions]
        self._names: Final[Conventions] = names
        self._destination: Final = destination
        self._each_message: Final = each_message
        self._settle_spans: Final = settle_spans
        self._link_after: Final = seconds(link_after, "link_after")
        self._tracer: Final = trace.get_tracer(
            "twinstream", None, tracer_provider, names.schema_url
        )
        meter = get_meter("twinstream", "", meter_provider, names.schema_url)
        self._metrics: Final = Metrics(meter, names)

    # ---- what connections call

    def opened(self, gauges: Callable[[], list[Gauge]]) -> None:
        """Export the gauges of a connection.

        Args:
            gauges: Returns the present values.
        """
        self._metrics.watch(gauges)

    def begin(self, operation: Operation) -> _Begun | None:
        """Start the span of an operation, and add its context to a message that is sent.

        Args:
            operation: The operation.
        """
        kind = _TYPES.get(operation.kind)
        if operation.name == "core_request":
            kind = "send"
        if kind is None or not is_instrumentation_enabled():
            return None
        metered = self._metered(operation, kind)
        if operation.kind in _SENT:
            return self._send(operation, kind, metered)
        if kind == "process":
            return self._process(operation, metered)
        if kind == "settle":
            return self._settle(operation, metered)
        return self._receive(operation, metered)

    def end(self, operation: Operation, token: object) -> None:
        """End the span of an operation, and record its metrics.

        Args:
            operation: The operation.
            token: What `begin` returned.
        """
        if not isinstance(token, _Begun):
            return
        if token.attached is not None:
            current.detach(token.attached)
        metered, error = token.metered, operation.error
        if error is not None:
            metered = metered | {self._names.error_type: type(error).__qualname__}
        if token.span is not None:
            self._end_span(operation, token.span, error)
        match operation.kind:
            case "publish" | "request":
                count = operation.count if operation.count is not None else 1
                self._metrics.operation(operation.seconds, metered, sent=count)
            case "receive":
                count = len(operation.messages)
                self._metrics.operation(operation.seconds, metered, consumed=count)
            case "handle":
                self._metrics.processed(operation.seconds, metered)
            case "create":
                pass
            case _:
                self._metrics.operation(operation.seconds, metered)

    def note(self, event: Report) -> None:
        """Count a message that an iteration returned.

        Args:
            event: What happened.
        """
        if isinstance(event, Received):
            names = self._names
            template = self._template(event.subject) or event.stream_name
            self._metrics.consumed(
                {
                    names.system: "nats",
                    names.operation_name: "receive",
                    names.operation_type: "receive",
                    names.template: template,
                    names.group: event.consumer_name,
                }
            )

    # ---- spans

    def _send(self, operation: Operation, kind: str, metered: dict[str, Any]) -> _Begun:
        """Start the span of a message that is sent, and add its context.

        A context that the program gave stays, and the span is linked to it. The span then is its
        child if no span is current.
        """
        given = context_in(operation.headers)
        is_single = operation.name not in _BULK or (
            operation.name == "atomic_batch" and operation.kind == "publish"
        )
        # A message with a context of its own, such as an event of an outbox, has a span.
        if not (is_single or self._each_message or given is not None):
            propagate.inject(operation.added)
            return _Begun(metered, None, None)
        ambient = span_in(current.get_current())
        span = self._start(
            operation,
            kind,
            metered,
            SpanKind.PRODUCER if given is None else SpanKind.CLIENT,
            current.get_current() if ambient is not None or given is None else given,
            [given],
        )
        if given is None:
            propagate.inject(operation.added, context=trace.set_span_in_context(span))
        return _Begun(metered, span, None)

    def _process(self, operation: Operation, metered: dict[str, Any]) -> _Begun:
        """Start the span of a handler, and make it the current one.

        The handler runs in the background, so the current span there is not its parent.
        """
        creation = context_in(operation.message.headers)
        is_fresh = creation is not None and self._age(operation.message) <= self._link_after
        parent = creation if creation is not None and is_fresh else Context()
        span = self._start(operation, "process", metered, SpanKind.CONSUMER, parent, [creation])
        return _Begun(metered, span, current.attach(trace.set_span_in_context(span, parent)))

    def _settle(self, operation: Operation, metered: dict[str, Any]) -> _Begun:
        """Begin an acknowledgement, with a span if `settle_spans` is set."""
        if not self._settle_spans:
            return _Begun(metered, None, None)
        parent = current.get_current()
        if span_in(parent) is None:
            # An acknowledgement outside of a handler belongs to the trace of its message.
            parent = context_in(operation.message.headers) or parent
        span = self._start(operation, "settle", metered, SpanKind.CLIENT, parent, [])
        return _Begun(metered, span, None)

    def _receive(self, operation: Operation, metered: dict[str, Any]) -> _Begun:
        parent = current.get_current()
        span = self._start(operation, "receive", metered, SpanKind.CLIENT, parent, [])
        return _Begun(metered, span, None)

    def _start(
        self,
        operation: Operation,
        kind: str,
        metered: dict[str, Any],
        span_kind: SpanKind,
        parent: Context,
        linked: Sequence[Context | None],
    ) -> trace.Span:
        """Start a span, with all attributes that are known, because samplers may need them."""
        names, name = self._names, metered[self._names.operation_name]
        attributes: dict[str, Any] = metered | self._of_message(operation, kind)
        target = metered.get(names.template)
        if kind == "settle" and names.settled_destination is not None:
            attributes[names.destination] = target = names.settled_destination
        elif operation.subject:
            attributes[names.destination] = operation.subject
            target = operation.subject if names.names_subjects else target
        found = [span for each in linked if (span := span_in(each)) is not None]
        return self._tracer.start_span(
            f"{name} {target}" if target else name,
            parent,
            span_kind,
            {key: value for key, value in attributes.items() if value is not None},
            [Link(each) for each in found],
        )

    def _end_span(
        self, operation: Operation, span: trace.Span, error: BaseException | None
    ) -> None:
        """Add the results of an operation to its span, and end the span."""
        names = self._names
        if operation.kind in _SENT and operation.seq is not None:
            span.set_attributes({names.message_id: str(operation.seq)})
            span.set_attributes(
                {names.sequence: operation.seq, names.stream: operation.stream_name or ""}
            )
        if operation.kind == "receive":
            for message in operation.messages:
                # Link to the span in which the message was published, if its headers name one.
                creation = span_in(context_in(message.headers))
                if creation is not None:
                    span.add_link(creation, {names.message_id: str(_sequence(message))})
            if operation.count is not None:
                span.set_attribute(names.message_count, operation.count)
        if operation.outcome is not None:
            span.set_attribute(names.outcome, operation.outcome)
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, str(error)))
            span.set_attribute(names.error_type, type(error).__qualname__)
        span.end()

    # ---- attributes

    def _metered(self, operation: Operation, kind: str) -> dict[str, Any]:
        """Return the attributes of low cardinality, which metrics have as well."""
        names = self._names
        name = _NAMES.get(operation.name, operation.name)
        if operation.kind == "create":
            name = "create"
        template = self._template(operation.subject) if operation.subject else None
        if operation.consumer_name is not None and template is None:
            template = operation.stream_name
        found: dict[str, Any] = {
            names.system: "nats",
            names.operation_name: name,
            names.operation_type: kind,
        }
        if template is not None:
            found[names.template] = template
        if operation.consumer_name is not None:
            found[names.group] = operation.consumer_name
        if operation.server is not None:
            found[names.server_address], found[names.server_port] = operation.server
        return found

    def _of_message(self, operation: Operation, kind: str) -> dict[str, Any]:
        """Return the attributes of spans alone."""
        names = self._names
        found: dict[str, Any] = {names.client_id: operation.client_name}
        if operation.stream_name is not None:
            found[names.stream] = operation.stream_name
        sequence = None if operation.message is None else _sequence(operation.message)
        if sequence is not None:
            found[names.sequence], found[names.message_id] = sequence, str(sequence)
        if kind == "process":
            found[names.attempt] = operation.attempts
        if operation.kind == "publish" and operation.count is not None:
            found[names.message_count] = operation.count
        if names.records_body_size and operation.data_size is not None:
            found[names.body_size] = operation.data_size
        return found

    def _template(self, subject: str) -> str | None:
        return None if self._destination is None else self._destination(subject)

    @staticmethod
    def _age(message: Any) -> float:
        """Return the seconds since the stream stored a message; 0 if that is unknown."""
        try:
            return time() - float(message.metadata.timestamp_ns) / 1e9
        except NotAcknowledgeable:
            return 0.0


def _sequence(message: Any) -> int | None:
    try:
        found: int = message.metadata.stream_seq
        return found
    except NotAcknowledgeable:
        return None
