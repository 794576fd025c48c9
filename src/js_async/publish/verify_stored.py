"""Find out whether a message was stored by an attempt without a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Backoff, Deadline, monotonic
from twinstream.core.server_faults.final_reply import (
    SECOND_RESPONSE,
    FinalReply,
    refuses_unknown_id,
)
from twinstream.core.server_faults.table import PROBED_ID
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import JetStreamError, OutcomeUnknown, TwinstreamError
from twinstream.errors.transient import is_transient
from twinstream.models.error_codes import ROLLUP_NOT_PERMITTED
from twinstream.records.header_names import MSG_ID, ROLLUP
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from twinstream.models import PubAck

__all__ = ["prove"]

_BACKOFF: Final = Backoff(0.05, 1.0)


async def prove(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    """Return the acknowledgement of an attempt without a response, if it stored the message.

    The server refused the next attempt with the error `refusal`. The reason may be that the earlier
    attempt stored the message, so that the expectations of the next attempt are wrong.

    To find out, the function sends a probe: a message with the same id and an invalid rollup value.
    The server acknowledges a known id again, refuses an unknown id, and never stores the probe
    (server 2.12 to 2.15, single and in clusters).

    A server with the fault `PROBED_ID` gets no probe. Instead, the function reads the last message
    of the subject. If another message was stored later, it raises `OutcomeUnknown`.

    Raises:
        TwinstreamError: The given `refusal`; the message is not stored.
        OutcomeUnknown: Whether the message is stored could not be determined.
    """
    if request.msg_id is None:
        raise OutcomeUnknown(
            f"{request.subject}: an attempt had no answer and the next was refused, perhaps"
            " because the first was stored; with a msg_id this could be determined"
        ) from refusal
    may_probe = not PROBED_ID.affects(api.transport.server_info.version_numbers)
    pauses = iter(_BACKOFF)
    while True:
        try:
            if may_probe:
                return await _send_probe(api, request, deadline)
            return await _find_last(api, request, refusal, deadline)
        except OutcomeUnknown:
            raise
        except TwinstreamError as error:
            if isinstance(error, JetStreamError) and error.err_code == ROLLUP_NOT_PERMITTED:
                raise refusal from None
            pause = next(pauses)
            if not is_transient(error) or deadline.remaining() <= pause:
                raise _unknown(request.subject, error) from refusal
        # The probe stores nothing, so it is safe to repeat.
        await sleep(pause)


async def _send_probe(api: Api, request: PublishRequest, deadline: Deadline) -> PubAck:
    """Send the probe, and return the acknowledgement of the stored message.

    Raises the refusal of the probe if no acknowledgement follows it: one server of a cluster may
    refuse an id that another one acknowledges.
    """
    headers = encode_headers({MSG_ID: request.msg_id or "", ROLLUP: "none"})
    replies, subject = api.transport.replies, check_subject(request.subject)
    is_final = FinalReply(refuses_unknown_id if api.transport.server_info.cluster else None)
    answer = await replies.send(subject, headers, b"", deadline, is_final)
    try:
        while not answer.is_here() and is_final.refusal is None:
            if not await api.transport.wait(answer.signal, deadline):
                break
            answer.signal.clear()
            if not answer.is_here() and deadline.expired():
                break
        if is_final.refusal is not None:
            await replies.wait(answer, deadline.earlier(monotonic() + SECOND_RESPONSE))
    finally:
        replies.forget(answer)
    if is_final.refusal is not None and not answer.is_here():
        raise is_final.refusal
    return read_pub_ack(answer.take(request.subject), request.subject)


async def _find_last(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    """Search for a message by its id, as the last message of its subject.

    Raises `OutcomeUnknown` if the last message is another one.
    """
    from js_async.read.get_message import get_message

    target = api.subjects.streams("NAMES")
    names = await api.call(
        target, {"subject": request.subject}, twinstream.models.StreamNamesResponse, deadline
    )
    for name in names.streams or ():
        query = {"last_by_subj": request.subject}
        last = await get_message(api, name, query, direct=False, headers=True)
        if last.headers.get(MSG_ID) == request.msg_id:
            return twinstream.models.PubAck(stream=name, seq=last.seq, duplicate=True)
    raise OutcomeUnknown(
        f"{request.subject}: an attempt had no answer and the next was refused; the last message"
        " of the subject is another one, perhaps by a later writer"
    ) from refusal


def _unknown(subject: str, error: TwinstreamError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{subject}: an attempt had no answer and the next was refused; whether the first was"
        f" stored could not be determined: {error}"
    )
