"""Requests to which each of several servers responds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from js_async.api.api import Api
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.wire.headers import parse_status

__all__ = ["answers"]


async def answers(api: Api, subject: str, body: Mapping[str, Any], timeout: Seconds) -> list[bytes]:
    """Send a request and return the payloads of all responses within `timeout` seconds.

    The number of responses is unknown. So the call waits until the timeout, unless the server
    reports that there are no responders. Raises `PermissionDenied` if the server refuses the
    request or the subscription to its responses.
    """
    transport = api.transport
    deadline = Deadline.after(timeout)
    await transport.ready(deadline)
    reply = transport.tokens.inbox().encode()
    box = await transport.open_mailbox(reply)
    box.asks = subject.encode()
    found: list[bytes] = []
    try:
        await transport.send(box.asks, reply, b"", json.dumps(body).encode())
        while not deadline.expired():
            await transport.wait(box.signal, deadline)
            for _, _, header_size, data in box.take_all():
                if header_size and parse_status(data)[0]:
                    return found
                found.append(data[header_size:-2])
            box.check()
    finally:
        await transport.close_mailbox(box)
    return found
