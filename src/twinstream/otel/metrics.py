"""The standard metrics of messaging clients, and the gauges of connections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from weakref import WeakMethod

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from twinstream.core.observe.gauge import Gauge
from twinstream.otel.conventions import DURATION_BUCKETS, Conventions

__all__ = ["Metrics"]

_GAUGES: Final = {
    "buffered_messages": ("{message}", "Messages that have arrived and were not taken."),
    "in_flight": ("{message}", "Published messages without an acknowledgement yet."),
    "pending_acks": ("{message}", "Messages with a handler that are not settled yet."),
    "seconds_since_message": ("s", "Time since the program last received a message."),
    "open_requests": ("{request}", "Requests without a response yet."),
}


class Metrics:
    """The instruments of one meter."""

    def __init__(self, meter: Meter, names: Conventions) -> None:
        self._names: Final = names
        self._operation: Final = meter.create_histogram(
            names.operation_duration,
            unit="s",
            description="Duration of sending, receiving and settling messages.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._process: Final = meter.create_histogram(
            names.process_duration,
            unit="s",
            description="Duration of the handler of a message.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._sent: Final = meter.create_counter(
            names.sent_messages, unit="{message}", description="Messages that were sent."
        )
        self._consumed: Final = meter.create_counter(
            names.consumed_messages, unit="{message}", description="Messages that were received."
        )
        # Weak references, because the telemetry may outlive the connections.
        self._connections: list[WeakMethod[Any]] = []
        for name, (unit, text) in _GAUGES.items():
            meter.create_observable_gauge(
                f"twinstream.client.{name}",
                [partial(self._observe, name)],
                unit=unit,
                description=text,
            )

    def watch(self, gauges: Callable[[], list[Gauge]]) -> None:
        """Include the gauges of a connection, as long as it exists."""
        alive = [each for each in self._connections if each() is not None]
        self._connections = [*alive, WeakMethod(gauges)]

    def operation(
        self, seconds: float, attributes: dict[str, Any], *, sent: int = 0, consumed: int = 0
    ) -> None:
        """Record a send, receive or settle, with the number of its messages."""
        self._operation.record(seconds, attributes)
        if sent:
            self._sent.add(sent, attributes)
        if consumed:
            self._consumed.add(consumed, attributes)

    def processed(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Record the handling of a message that no `receive` has counted."""
        self._process.record(seconds, attributes)
        self._consumed.add(1, attributes)

    def consumed(self, attributes: dict[str, Any]) -> None:
        """Count a message that an iteration returned."""
        self._consumed.add(1, attributes)

    def _observe(self, name: str, _: CallbackOptions) -> Iterable[Observation]:
        """Yield the current values of the gauge `name`, one for each consumer."""
        values: dict[tuple[str | None, str | None], list[float]] = defaultdict(list)
        for weak in self._connections:
            gauges: Callable[[], list[Gauge]] | None = weak()
            for gauge in gauges() if gauges is not None else ():
                if gauge.name == name:
                    values[gauge.stream_name, gauge.consumer_name].append(gauge.value)
        # Several buffers of a consumer are one value: their sum, or the time of the last message.
        merge = min if name == "seconds_since_message" else sum
        for (stream, consumer), found in values.items():
            attributes = {self._names.stream: stream, self._names.group: consumer}
            given = {key: value for key, value in attributes.items() if value is not None}
            yield Observation(merge(found), given)
