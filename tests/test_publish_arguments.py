"""The arguments of `publish` become a request by their places, so each must be at its own."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

import pytest

from js_async import _publish_calls as async_calls
from twinstream.core.publish.request import PublishRequest
from js_sync import _publish_calls as sync_calls

ARGUMENTS: dict[str, Any] = {name: object() for name in PublishRequest._fields}


def test_each_argument_is_its_own_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(_: object, request: PublishRequest, *__: object) -> PublishRequest:
        return request

    async def publish_later(_: object, request: PublishRequest, *__: object) -> PublishRequest:
        return request

    monkeypatch.setattr(sync_calls, "publish", publish)
    monkeypatch.setattr(async_calls, "publish", publish_later)
    blocking = sync_calls.PublishCalls(cast("Any", None)).publish(**ARGUMENTS)
    other = asyncio.run(async_calls.PublishCalls(cast("Any", None)).publish(**ARGUMENTS))
    assert blocking == other == PublishRequest(**ARGUMENTS)
    assert isinstance(blocking, PublishRequest)


def test_every_field_of_a_request_is_an_argument() -> None:
    names = inspect.signature(sync_calls.PublishCalls.publish).parameters
    assert set(PublishRequest._fields) <= set(names)
