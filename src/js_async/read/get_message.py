"""Read single messages of a stream, from its leader or by direct get from any replica."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from js_async.api.api import Api
from js_async.api.leader_info import confirmed_info
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.read.direct_get import (
    EVERYTHING,
    described,
    from_direct,
    from_leader,
    next_request,
    payload_of,
)
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.server_faults.table import START_TIMES
from twinstream.errors import (
    InvalidResponse,
    MessageNotFound,
    NoResponders,
    UnsuitableSettings,
)
from twinstream.models import StreamMessageGetResponse
from twinstream.models.numbers import HIDDEN_FROM
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = ["check_not_hidden", "first_seq_at", "get_message", "next_seq", "seq_of"]

_NO_HDR_SINCE: Final = (2, 12, 0)
_START_TIME_SINCE: Final = (2, 11, 0)


async def get_message(
    api: Api,
    stream: str,
    request: dict[str, Any],
    *,
    direct: bool,
    headers: bool,
    timeout: Seconds | None = None,
) -> StreamMessage:
    """Return the message that a request selects.

    With `direct`, any replica may answer the request. If the stream allows no direct gets, the
    leader answers instead. Without `headers`, the result has no headers. `timeout` is in seconds;
    its default is that of `api`.

    Raises `MessageNotFound`, `StreamNotFound`, `Unsupported` or another error of `Api.call`.
    """
    if "start_time" in request:
        api.require(_START_TIME_SINCE, "reading by start_time")
    deadline = api.deadline(timeout)
    try:
        if direct:
            try:
                return await _direct(api, stream, request, headers, deadline)
            except NoResponders:
                pass  # the stream allows no direct gets or does not exist: ask the leader
        return await _leader(api, stream, request, headers, deadline)
    except MessageNotFound as error:
        error.args = (f"{error}: {described(request)}",)
        raise


async def first_seq_at(api: Api, stream: str, time: datetime, behind: int) -> int:
    """Return the sequence of the first message that was stored at or after `time`.

    Return `behind` if there is no such message.
    """
    if START_TIMES.affects(api.transport.server_info.version_numbers):
        return await _searched_seq(api, stream, time, behind)
    seq = await _proven(api, stream, [next_request(EVERYTHING, start_time=time)])
    return behind if seq is None else seq


async def _searched_seq(api: Api, stream: str, time: datetime, behind: int) -> int:
    """Return what `first_seq_at` does, by about 20 requests for a million messages."""
    api.require(_START_TIME_SINCE, "reading by start_time")
    low, high, seq = 1, behind, behind
    while low < high:
        middle = (low + high) // 2
        request = next_request(EVERYTHING, middle)
        try:
            found = await get_message(api, stream, request, direct=False, headers=False)
        except MessageNotFound:
            high, seq = middle, behind
            continue
        if found.time >= time:
            high, seq = middle, found.seq
        else:
            low = found.seq + 1
    return min(seq, behind)


async def next_seq(api: Api, stream: str, subjects: Sequence[str], seq: int) -> int | None:
    """Return the sequence of the first message from `seq` on that matches one of `subjects`.

    Return None if there is no such message.
    """
    return await _proven(api, stream, [next_request(subject, seq) for subject in subjects])


async def _proven(api: Api, stream: str, requests: Sequence[dict[str, Any]]) -> int | None:
    """Return the lowest sequence that the requests select, or None if there certainly is none."""
    found = [await seq_of(api, stream, request) for request in requests]
    if None in found:
        # That there is no message is not final. Repeat the requests when the leader is confirmed.
        info = await confirmed_info(api, stream)
        if info.cluster is not None:
            found = [await seq_of(api, stream, request) for request in requests]
    return min((each for each in found if each is not None), default=None)


async def check_not_hidden(api: Api, stream: str) -> None:
    """Raise `UnsuitableSettings` if the server may not return all messages of the stream."""
    info = await confirmed_info(api, stream)
    if info.config.storage == "memory" or info.state.last_seq < HIDDEN_FROM:
        return
    if info.state.messages and await next_seq(api, stream, (EVERYTHING,), HIDDEN_FROM) is None:
        because = "the server does not return what it stored from sequence 2**62 on"
        instead = "end the read at 2**62; later messages need a stream with a lower first_seq"
        gap = GuaranteeGap("storage", "file", because, instead)
        raise UnsuitableSettings(stream, "a complete read", (gap,))


async def seq_of(api: Api, stream: str, request: dict[str, Any]) -> int | None:
    """Return the sequence of the message that a request selects, or None if there is none.

    The leader answers the request.
    """
    try:
        found = await get_message(api, stream, request, direct=False, headers=False)
    except MessageNotFound:
        return None
    return found.seq


async def _direct(
    api: Api, stream: str, request: dict[str, Any], headers: bool, deadline: Deadline
) -> StreamMessage:
    """Read a message by direct get, which any replica of the stream may answer."""
    subject, payload = None, b""
    last: str = request.get("last_by_subj", "")
    if last and "*" not in last and ">" not in last:
        # This form has the subject in the request subject, so permissions can be granted by
        # subject.
        subject = api.subjects.direct_last(stream, last)
    if subject is None:
        subject, payload = api.subjects.direct_get(stream), payload_of(request)
    # `no_hdr` is not used: it would also remove the headers with sequence, subject and time.
    with api.instrumented("direct_get", subject, len(payload), stream):
        frame = await api.transport.ask(subject, b"", payload, deadline)
        return from_direct(frame, subject, headers=headers)


async def _leader(
    api: Api, stream: str, request: dict[str, Any], headers: bool, deadline: Deadline
) -> StreamMessage:
    if not headers and api.transport.server_info.version_numbers >= _NO_HDR_SINCE:
        request = {**request, "no_hdr": True}
    target = api.subjects.message("GET", stream)
    answer = await api.call(target, request, StreamMessageGetResponse, deadline)
    if answer.message is None:
        raise InvalidResponse(f"{target}: the response contains no message")
    return from_leader(answer.message, stream, headers=headers)
