"""Confirmed acknowledgement of many messages at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from js_async.client.transport import Transport
from js_async.consume.message import check_open, confirm, frame_of
from js_async.runtime.concurrency import Signal
from twinstream.core.consume.acks import ACK
from twinstream.core.deadline import Deadline
from twinstream.errors import RequestTimeout

if TYPE_CHECKING:
    from js_async.client.requests import Answer
    from js_async.consume.message import Message

__all__ = ["double_ack"]


async def double_ack(
    transport: Transport, messages: Sequence[Message], deadline: Deadline
) -> list[Message]:
    """Acknowledge messages, and return those that the server may redeliver.

    It may redeliver a message if the confirmation is missing or arrived after ack_wait. Raises
    `RequestTimeout` if the client is not connected before the deadline.
    """
    for message in messages:
        check_open(message)
    observers = transport.observers
    if observers is None:
        return await _double_ack(transport, messages, deadline)
    operations = [observers.begin_of("ack", "double_ack", message) for message in messages]
    late: list[Message] = []
    error: BaseException | None = RequestTimeout("the acknowledgements were not sent")
    try:
        late = await _double_ack(transport, messages, deadline)
        error = None
    finally:
        for operation, message in zip(operations, messages, strict=True):
            is_late = any(message is each for each in late)
            operation.end(RequestTimeout("not confirmed within ack_wait") if is_late else error)
    return late


async def _double_ack(
    transport: Transport, messages: Sequence[Message], deadline: Deadline
) -> list[Message]:
    """Acknowledge all messages at once, and return those that the server did not confirm."""
    await transport.ready(deadline)
    replies, signal = transport.replies, Signal()
    answers: list[Answer] = []
    try:
        for message in messages:
            subject = frame_of(message)[1]
            answers.append(await replies.send(subject, b"", ACK, deadline, signal=signal))
        await _wait_for_all(transport, answers, signal, deadline)
    finally:
        for answer in answers:
            replies.forget(answer)
    return [
        message
        for message, answer in zip(messages, answers, strict=True)
        if not confirm(message, answer.frame)
    ]


async def _wait_for_all(
    transport: Transport, answers: list[Answer], signal: Signal, deadline: Deadline
) -> None:
    arrived = 0
    while True:
        # Clear the signal before checking the responses, so that no arrival is missed.
        signal.clear()
        while arrived < len(answers) and answers[arrived].is_here():
            arrived += 1
        if arrived == len(answers) or not await transport.wait(signal, deadline):
            return
