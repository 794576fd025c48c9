"""Requests to the leader of a stream that may be new."""

from __future__ import annotations

from js_async.client.transport import Transport
from js_async.runtime.concurrency import sleep
from twinstream.core.api.idempotent_calls import SPREADING, SPREADING_PAUSES
from twinstream.core.deadline import Deadline
from twinstream.core.wire.protocol import Frame
from twinstream.errors import NoResponders

__all__ = ["ask_served"]


async def ask_served(
    transport: Transport,
    subject: str,
    headers: bytes,
    data: bytes,
    deadline: Deadline,
    spreading: float = SPREADING,
) -> Frame:
    """Send a request and return its response; repeat it while there are no responders.

    A stream that another client has just created has no responders for some milliseconds, see
    `idempotent_calls`. The repeats end `spreading` seconds after the call began, and the call then
    raises `NoResponders`. Raises other errors as `Transport.ask` does.
    """
    repeats = Deadline.after(spreading)
    for pause in SPREADING_PAUSES:
        try:
            return await transport.ask(subject, headers, data, deadline)
        except NoResponders:
            if repeats.earlier(deadline.at).remaining() <= pause:
                raise
        await sleep(pause)
    raise AssertionError("the pauses have no end")
