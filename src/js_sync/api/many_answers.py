# Generated from src/js_async/api/many_answers.py by codegen/twin.py. Edit that file instead.
"""Requests that several servers answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.wire.headers import parse_status
from js_sync.api.api import Api

__all__ = ["answers"]


def answers(api: Api, subject: str, body: Mapping[str, Any], timeout: Seconds) -> list[bytes]:
    """Send a request and return every answer that comes within `timeout` seconds.

    Nobody knows how many there will be, so this takes the whole time, unless there is none.
    """
    transport = api.transport
    deadline = Deadline.after(timeout)
    transport.ready(deadline)
    reply = transport.tokens.inbox().encode()
    box = transport.open_mailbox(reply)
    box.asks = subject.encode()
    found: list[bytes] = []
    try:
        transport.send(box.asks, reply, b"", json.dumps(body).encode())
        while not deadline.expired():
            transport.wait(box.signal, deadline)
            for _, _, header_size, data in box.take_all():
                if header_size and parse_status(data)[0]:
                    return found
                found.append(data[header_size:-2])
            if box.error is not None:
                raise box.error
    finally:
        transport.close_mailbox(box)
    return found
