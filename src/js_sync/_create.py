# Generated from src/js_async/_create.py by codegen/twin.py. Edit that file instead.
"""Creating and changing consumers, and telling how an existing one differs."""

from __future__ import annotations

from typing import Any, Literal

from attrs import evolve

from js_core.deadline import Deadline
from js_core.difference import differences
from js_core.errors import ConsumerExists, JetStreamError, TwinstreamError
from js_models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerCreateResponse,
    ConsumerInfo,
    ConsumerInfoResponse,
    encode,
)
from js_sync._api import Api

__all__ = ["CreateAction", "create_consumer"]

CreateAction = Literal["", "create", "update"]


def create_consumer(
    api: Api,
    stream: str,
    config: ConsumerConfig,
    action: CreateAction,
    deadline: Deadline | None = None,
) -> ConsumerInfo:
    """Create or change a consumer; an empty action does whichever is due.

    Raises `ConsumerExists` with the differences, field by field.
    """
    if config.ack_policy is None:
        # The server's default is none, which nobody means who leaves it out.
        config = evolve(config, ack_policy=AckPolicy.EXPLICIT)
    name = config.durable_name or config.name
    if name is None:
        name = api.transport.tokens.name()
        config = evolve(config, name=name)
    filters = [config.filter_subject] if config.filter_subject else []
    subject = api.subjects.create_consumer(stream, name, filters)
    body: dict[str, Any] = {"stream_name": stream, "config": encode(config), "action": action}
    try:
        return api.call(subject, body, ConsumerCreateResponse, deadline)
    except ConsumerExists as error:
        raise _explained(api, stream, name, config, error) from None


def _explained(
    api: Api, stream: str, name: str, config: ConsumerConfig, error: ConsumerExists
) -> JetStreamError:
    try:
        subject = api.subjects.consumer("INFO", stream, name)
        actual = api.call(subject, None, ConsumerInfoResponse)
    except TwinstreamError:
        # The explanation is a courtesy; the refusal itself is what counts.
        return error
    if actual.config is None:
        return error
    return error.with_differences(differences(encode(config), encode(actual.config)))
