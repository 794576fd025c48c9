# Generated from src/js_async/consume/double_ack.py by codegen/twin.py. Edit that file instead.
"""Confirmed acknowledgements of many messages, all under way at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.core.consume.acks import ACK
from twinstream.core.deadline import Deadline
from js_sync.runtime.concurrency import Signal
from js_sync.client.transport import Transport

if TYPE_CHECKING:
    from js_sync.client.requests import Answer
    from js_sync.consume.message import Message

__all__ = ["double_ack"]


def double_ack(
    transport: Transport, messages: Sequence[Message], deadline: Deadline
) -> list[Message]:
    """Acknowledge messages; return those for which that is not sure to count."""
    for message in messages:
        message._check_open()
    transport.ready(deadline)
    replies, signal = transport.replies, Signal()
    answers: list[Answer] = []
    try:
        for message in messages:
            answers.append(replies.send(message._reply_bytes, b"", ACK, signal))
        _all_here(transport, answers, signal, deadline)
    finally:
        for answer in answers:
            replies.forget(answer)
    return [
        message
        for message, answer in zip(messages, answers, strict=True)
        if not message._confirmed(answer.frame)
    ]


def _all_here(
    transport: Transport, answers: list[Answer], signal: Signal, deadline: Deadline
) -> None:
    here = 0
    while True:
        # The flag goes down before the answers are looked at: nothing is missed.
        signal.clear()
        while here < len(answers) and answers[here].is_here():
            here += 1
        if here == len(answers) or not transport.wait(signal, deadline):
            return
