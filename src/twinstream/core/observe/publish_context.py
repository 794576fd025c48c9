"""The beginning of the operations that send a message, and the headers that observers add."""

from __future__ import annotations

from twinstream.core.observe.observers import Observers
from twinstream.core.observe.operation import Operation, OperationKind
from twinstream.core.wire.headers import header_pairs
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.publish_request import PublishRequest

__all__ = ["begin_core", "begin_publish", "with_added", "with_context"]


def begin_publish(
    observers: Observers, request: PublishRequest, name: str, stream: str | None = None
) -> tuple[PublishRequest, Operation]:
    """Begin the `publish` of a valid message; return the message with the added headers."""
    operation = observers.begin(
        "publish",
        name,
        request.subject,
        stream=stream or request.expected_stream,
        headers=request.headers,
        data_size=len(request.data),
    )
    return _with(request, operation), operation


def begin_core(
    observers: Observers,
    kind: OperationKind,
    subject: str,
    data: bytes,
    headers: HeaderValues | None,
) -> Operation:
    """Begin the operation of a message of core NATS. Its `headers` include the added ones."""
    operation = observers.begin(
        kind,
        f"core_{kind}",
        subject,
        headers=headers,
        size=len(data),
        data_size=len(data),
    )
    operation.headers = with_added(headers, operation.added)
    return operation


def with_context(observers: Observers, request: PublishRequest, name: str) -> PublishRequest:
    """Return a message of a batch with the headers that observers add."""
    with observers.begin(
        "create",
        name,
        request.subject,
        stream=request.expected_stream,
        headers=request.headers,
        data_size=len(request.data),
    ) as operation:
        return _with(request, operation)


def _with(request: PublishRequest, operation: Operation) -> PublishRequest:
    headers = with_added(request.headers, operation.added)
    return request if headers is request.headers else request._replace(headers=headers)


def with_added(given: HeaderValues | None, added: dict[str, str]) -> HeaderValues | None:
    """Return headers with added ones. Headers that the program gave are not replaced."""
    pairs = list(header_pairs(given or {}))
    names = {name.lower() for name, _ in pairs}
    missing = [(name, value) for name, value in added.items() if name.lower() not in names]
    return Headers([*pairs, *missing]) if missing else given
