"""Find out whether a message was stored by an attempt without a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Backoff, Deadline, monotonic
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack, read_pub_ack
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import JetStreamError, OutcomeUnknown, TwinstreamError
from twinstream.errors.transient import is_transient
from twinstream.errors.wrong_sequence import SECOND_RESPONSE
from twinstream.models.error_codes import ROLLUP_NOT_PERMITTED
from twinstream.records.header_names import MSG_ID, ROLLUP
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from twinstream.models import PubAck

__all__ = ["prove"]

# The first server version on which a probe has no side effect; see `prove`.
_ASKS_WITHOUT_TRACE: Final = (2, 12, 0)
_BACKOFF: Final = Backoff(0.05, 1.0)
_UNKNOWN_ID: Final = b"%d" % ROLLUP_NOT_PERMITTED


async def prove(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    """Return the acknowledgement of an attempt without a response, if it stored the message.

    The server refused the next attempt with the error `refusal`. The reason may be that the earlier
    attempt stored the message: the expectations of the next attempt are then wrong, and a single
    server checks them before the message id.

    To find out, the function sends a probe: a message with the same id and an invalid rollup value.
    The server acknowledges a known id again, refuses an unknown id, and never stores the probe
    (server 2.12 to 2.15, single and in clusters).

    Before 2.12, a probe would make a cluster treat the id as one that is being stored. For these
    servers the function reads the last message of the subject instead. If another message was
    stored later, the function cannot find the message and raises `OutcomeUnknown`.

    Raises:
        TwinstreamError: The given `refusal`; the message is not stored.
        OutcomeUnknown: Whether the message is stored could not be determined.
    """
    if request.msg_id is None:
        raise OutcomeUnknown(
            f"{request.subject}: an attempt had no answer and the next was refused, perhaps"
            " because the first was stored; with a msg_id this could be determined"
        ) from refusal
    asks = api.transport.server_info.version_numbers >= _ASKS_WITHOUT_TRACE
    pauses = iter(_BACKOFF)
    while True:
        try:
            if asks:
                return await _ask(api, request, deadline)
            return await _find(api, request, refusal, deadline)
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


async def _ask(api: Api, request: PublishRequest, deadline: Deadline) -> PubAck:
    headers = encode_headers({MSG_ID: request.msg_id or "", ROLLUP: "none"})
    replies, subject = api.transport.replies, check_subject(request.subject)
    is_clustered = bool(api.transport.server_info.cluster)
    unknown: list[Frame] = []

    def is_final(frame: Frame) -> bool:
        # An acknowledgement may contain the number, too, in its sequence or stream name.
        if is_clustered and b'"error"' in frame[3] and _UNKNOWN_ID in frame[3]:
            # A former leader does not know the ids of the messages that it lacks.
            unknown.append(frame)
            return False
        return is_pub_ack(frame)

    answer = await replies.start(subject, headers, b"", deadline, is_final)
    try:
        while not answer.is_here() and not unknown:
            if not await api.transport.wait(answer.signal, deadline):
                break
            answer.signal.clear()
            if not answer.is_here() and deadline.expired():
                break
        if unknown:
            await replies.wait(answer, deadline.earlier(monotonic() + SECOND_RESPONSE))
    finally:
        replies.forget(answer)
    frame = unknown[0] if unknown and not answer.is_here() else answer.take(request.subject)
    return read_pub_ack(frame, request.subject)


async def _find(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    from js_async.read.get_message import get_message

    target = api.subjects.streams("NAMES")
    names = await api.call(
        target, {"subject": request.subject}, twinstream.models.StreamNamesResponse, deadline
    )
    for name in names.streams or ():
        wanted = {"last_by_subj": request.subject}
        last = await get_message(api, name, wanted, direct=False, headers=True)
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
