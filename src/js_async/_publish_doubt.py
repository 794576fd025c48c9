"""What to find out when a publish failed: why nobody took it, or whether it was stored after all.

Nothing of this is asked while all goes well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import js_models
from js_async._api import Api
from js_async.stream import Stream
from js_core.deadline import Deadline
from js_core.errors import (
    JetStreamError,
    JetStreamOff,
    NoLeader,
    NoResponders,
    NoStream,
    OutcomeUnknown,
    TwinstreamError,
)
from js_core.headers import encode_headers
from js_core.pub_ack import is_pub_ack, read_pub_ack
from js_core.publish import MSG_ID, ROLLUP, PublishRequest
from js_core.subjects import check_subject

if TYPE_CHECKING:
    from js_models import PubAck

__all__ = ["prove", "reason"]

# An answer that explains is worth so many seconds; the failure is certain without it.
_PATIENCE: Final = 1.0
_CLUSTER_WITHOUT_LEADER: Final = frozenset({10008, 10009})
_ROLLUP_NOT_PERMITTED: Final = 10111
_ASKS_WITHOUT_TRACE: Final = (2, 12, 0)


async def reason(
    api: Api, subject: str, deadline: Deadline, *, silent: bool = False
) -> NoResponders:
    """Return the error that tells why no stream takes messages on a subject.

    Where nobody said so, and the message had no answer, its words leave open what became of it.
    """
    nobody = f"{subject}: no stream {'answered' if silent else 'took the message'}"
    deadline = Deadline.after(min(deadline.remaining(), _PATIENCE))
    try:
        target = api.subjects.streams("NAMES")
        body = {"subject": subject}
        # That the cluster has no leader is an answer here, so it is asked once.
        names = await api.call(
            target, body, js_models.StreamNamesResponse, deadline, repeatable=False
        )
        if names.streams:
            return await _leaderless(api, subject, names.streams[0], deadline, silent=silent)
    except NoResponders as error:
        return _because(JetStreamOff(f"{nobody}; {error}"), error)
    except JetStreamError as error:
        if error.err_code in _CLUSTER_WITHOUT_LEADER:
            text = "JetStream's cluster has no leader now"
            return _because(NoLeader(f"{nobody}; {text}"), error)
        return _unexplained(nobody, error)
    except TwinstreamError as error:
        return _unexplained(nobody, error)
    return NoStream(f"{subject}: no stream has this subject; create one, or mend the subject")


async def _leaderless(
    api: Api, subject: str, name: str, deadline: Deadline, *, silent: bool
) -> NoLeader:
    try:
        target = api.subjects.stream("INFO", name)
        info = await api.call(
            target, None, js_models.StreamInfoResponse, deadline, repeatable=False
        )
        leader = info.cluster.leader if info.cluster is not None else ""
        now = f"its leader is {leader} by now" if leader else "it has no leader"
    except TwinstreamError as error:
        now = f"it does not answer ({error})"
    if silent:  # it may be stored, so nobody is told to publish it again
        return NoLeader(f"{subject}: stream {name} did not answer; {now}")
    return NoLeader(f"{subject}: stream {name} did not take the message; {now}. Publish it again")


def _unexplained(nobody: str, error: TwinstreamError) -> NoResponders:
    return _because(NoResponders(f"{nobody}; why is unknown, asking failed: {error}"), error)


def _because(error: NoResponders, cause: TwinstreamError) -> NoResponders:
    error.__cause__ = cause
    return error


async def prove(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    """Return the acknowledgement of an earlier attempt that had no answer, if it was stored.

    Raises the refusal when it was not, and `OutcomeUnknown` where neither is certain.

    A server outside of a cluster judges expectations before it looks for a known message id, so
    the earlier attempt may be what made it refuse. The question is a message with the same id and
    a rollup that does not exist: the server acknowledges a known id again and refuses another one,
    and never stores the question (server 2.12 to 2.15, alone and in clusters). Before 2.12 a
    cluster would from then on take the id for one that is being stored, so the subject's last
    message is read instead, which proves less.
    """
    if request.msg_id is None:
        raise OutcomeUnknown(
            f"{request.subject}: an attempt had no answer and the next was refused, perhaps"
            " because the first was stored; with a msg_id that could be told"
        ) from refusal
    try:
        if api.transport.server_info.version_numbers < _ASKS_WITHOUT_TRACE:
            return await _find(api, request, refusal, deadline)
        return await _ask(api, request, deadline)
    except JetStreamError as error:
        if error.err_code == _ROLLUP_NOT_PERMITTED:
            raise refusal from None
        raise _unknown(request.subject, error) from refusal
    except OutcomeUnknown:
        raise
    except TwinstreamError as error:
        raise _unknown(request.subject, error) from refusal


async def _ask(api: Api, request: PublishRequest, deadline: Deadline) -> PubAck:
    headers = encode_headers({MSG_ID: request.msg_id or "", ROLLUP: "none"})
    replies = api.transport.replies
    answer = await replies.start(check_subject(request.subject), headers, b"", deadline, is_pub_ack)
    try:
        await replies.wait(answer, deadline)
    finally:
        replies.forget(answer)
    return read_pub_ack(answer.take(request.subject), request.subject)


async def _find(
    api: Api, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
) -> PubAck:
    target = api.subjects.streams("NAMES")
    names = await api.call(
        target, {"subject": request.subject}, js_models.StreamNamesResponse, deadline
    )
    for name in names.streams or ():
        last = await Stream(api, name, None).get_last_message(request.subject)
        if last.headers.get(MSG_ID) == request.msg_id:
            return js_models.PubAck(stream=name, seq=last.seq, duplicate=True)
    raise OutcomeUnknown(
        f"{request.subject}: an attempt had no answer and the next was refused; the last message of"
        " the subject is another one, by a later writer perhaps"
    ) from refusal


def _unknown(subject: str, error: TwinstreamError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{subject}: an attempt had no answer and the next was refused; whether the first was"
        f" stored could not be found out: {error}"
    )
