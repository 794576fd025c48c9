"""One attempt to write a message into a stream that is known by name."""

from __future__ import annotations

from js_async.api.api import Api
from twinstream.core.deadline import Deadline
from twinstream.core.publish.request import publish_headers
from twinstream.models import PubAck
from twinstream.records.publish_request import PublishRequest

__all__ = ["write"]


async def write(
    api: Api, request: PublishRequest, stream: str, domain: str | None, deadline: Deadline
) -> PubAck:
    """Publish a message, and return the acknowledgement of the stream `stream` in `domain`.

    Acknowledgements of other streams are skipped, and so are those of streams of the same name in
    other domains. If `domain` is None, the domain of an acknowledgement is not checked.
    """
    headers, observers = publish_headers(request), api.transport.call_observers
    if observers is None:
        return await _attempt(api, request, headers, stream, domain, deadline)
    from twinstream.core.observe.publish_context import begin_publish

    request, operation = begin_publish(observers, request, "publish", stream)
    with operation:
        headers = publish_headers(request)
        operation.size = len(headers) + len(request.data)
        ack = await _attempt(api, request, headers, stream, domain, deadline)
        operation.seq = ack.seq
        return ack


async def _attempt(
    api: Api,
    request: PublishRequest,
    headers: bytes,
    stream: str,
    domain: str | None,
    deadline: Deadline,
) -> PubAck:
    acks = api.acks
    frame = await api.transport.ask(
        request.subject,
        headers,
        request.data,
        deadline,
        fits=lambda frame: not acks.is_strange(frame, stream, domain),
    )
    return acks.read(frame, request.subject)
