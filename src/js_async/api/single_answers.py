"""Send probes that show whether several responses to a request arrive."""

from __future__ import annotations

import json
from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.wire.single_answers import (
    PROBE_EXPIRES,
    PROBE_HEARTBEAT,
    PROBE_MESSAGES,
    LoneAnswer,
    SingleAnswers,
    Verdict,
)
from twinstream.core.wire.status import is_status, read_status
from twinstream.errors.transient import FAILED_REQUEST

__all__ = ["check_several"]

_DIRECT: Final = b".DIRECT.GET."
# The server ends a direct get for one message with a status, if the stream has a message.
_ONE_MESSAGE: Final = {"seq": 1, "batch": 1}
_FEW_MESSAGES: Final = {
    "batch": PROBE_MESSAGES,
    "expires": round(PROBE_EXPIRES * 1e9),
    "idle_heartbeat": round(PROBE_HEARTBEAT * 1e9),
}


async def check_several(api: Api, subject: bytes) -> None:
    """Raise `SingleAnswers` if only the first response to each request to `subject` arrives.

    `subject` is that of direct gets from a stream, or of pulls from a consumer of the caller.
    Returns at once if several responses to an earlier probe arrived, and without an error if the
    responses show nothing.
    """
    transport = api.transport
    is_direct = _DIRECT in subject
    key = f"{api.subjects.prefix}.{'DIRECT.GET' if is_direct else 'CONSUMER.MSG.NEXT'}"
    if key in transport.replies.several:
        return
    body = json.dumps(_ONE_MESSAGE if is_direct else _FEW_MESSAGES).encode()
    prefix = transport.tokens.inbox()
    box = await transport.open_mailbox(f"{prefix}.*".encode())
    try:
        verdict = await _probe_until_known(api, box, prefix, subject, body)
    except FAILED_REQUEST:
        return
    finally:
        await transport.close_mailbox(box)
    if verdict is Verdict.SEVERAL:
        transport.replies.several.add(key)
    elif verdict is Verdict.SINGLE:
        raise SingleAnswers.of(subject.decode(), api.subjects.prefix)


async def _probe_until_known(
    api: Api, box: Box, prefix: str, subject: bytes, body: bytes
) -> Verdict:
    """Send probes until they show whether several responses to one request arrive.

    Returns `Verdict.UNKNOWN` if the connection is lost, because responses may be lost with it.
    """
    transport, probes = api.transport, LoneAnswer()
    epoch, heard_at = transport.epoch, monotonic()
    # The number of responses, less the number of probes.
    surplus = 0
    verdict: Verdict | None = Verdict.AGAIN
    while True:
        if verdict is Verdict.AGAIN:
            surplus -= 1
            probes.sent(surplus, monotonic())
            reply = f"{prefix}.{transport.tokens.next()}".encode()
            await transport.send(subject, reply, b"", body, True)
        elif verdict is not None:
            return verdict
        await transport.wait(box.signal, Deadline(probes.due_at(surplus, heard_at)))
        box.check()
        if transport.epoch != epoch or not transport.is_connected:
            return Verdict.UNKNOWN
        for frame in box.take_all():
            surplus, heard_at = surplus + 1, monotonic()
            if is_status(frame) and read_status(frame).ends:
                probes.refused(surplus)
        if probes.is_over:
            return Verdict.UNKNOWN
        verdict = probes.judge(surplus, heard_at, monotonic())
