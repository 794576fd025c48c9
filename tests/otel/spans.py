"""Spans and metrics in a form that is compared whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

__all__ = ["Asked", "Collected", "tree"]

# What differs between runs.
_VARYING = {"server.address": "HOST", "server.port": 0}


class Collected:
    """Providers whose spans and metrics are kept in memory."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(sampler)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.tracer = self.tracers.get_tracer("test")

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Telemetry` that select the providers."""
        return {"tracer_provider": self.tracers, "meter_provider": self.meters}

    def spans(self) -> list[ReadableSpan]:
        """Return the ended spans in the order of their beginning."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """Return the points of each metric: their attributes, and their value or count."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for resource in [] if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        value = getattr(point, "count", getattr(point, "value", None))
                        shown = steady(dict(point.attributes or {}))
                        found.setdefault(metric.name, []).append((shown, value))
        return found


class Asked(Sampler):
    """Samples all spans, and records the attributes on which it could have decided."""

    def __init__(self) -> None:
        self.attributes: list[dict[str, Any]] = []

    def should_sample(self, *given: Any, **named: Any) -> SamplingResult:
        found = named.get("attributes", given[4] if len(given) > 4 else None)
        self.attributes.append(steady(dict(found or {})))
        return ALWAYS_ON.should_sample(*given, **named)

    def get_description(self) -> str:
        return "Asked"


def steady(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with the same value in each run."""
    return {key: _VARYING.get(key, value) for key, value in attributes.items()}


def tree(spans: Sequence[ReadableSpan]) -> list[dict[str, Any]]:
    """Return all of each span, with numbers in place of ids."""
    numbers = {span.context.span_id: number for number, span in enumerate(spans) if span.context}
    traces: dict[int, int] = {}
    found = []
    for span in spans:
        assert span.context is not None
        found.append(
            {
                "name": span.name,
                "kind": span.kind.name,
                "trace": traces.setdefault(span.context.trace_id, len(traces)),
                "parent": None if span.parent is None else numbers.get(span.parent.span_id, "?"),
                "links": [numbers.get(each.context.span_id, "?") for each in span.links],
                "status": span.status.status_code.name,
                "attributes": steady(dict(span.attributes or {})),
            }
        )
    return found
