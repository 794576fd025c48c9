"""The context of a trace in the headers of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context

from twinstream.core.wire.headers import header_pairs

__all__ = ["context_in", "span_in"]


def context_in(headers: Mapping[str, Any] | None) -> Context | None:
    """Return the context in the headers of a message, or None if they have none.

    The names of headers are compared without case: JetStream keeps the case of the publisher.
    """
    if not headers:
        return None
    carrier: dict[str, str] = {}
    for name, value in header_pairs(headers):
        carrier.setdefault(name.lower(), value)
    # An empty context: the current one is not that of the message.
    found = propagate.extract(carrier, context=Context())
    return found if span_in(found) is not None else None


def span_in(context: Context | None) -> trace.SpanContext | None:
    """Return the valid context of the span in a context, or None."""
    if context is None:
        return None
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None
