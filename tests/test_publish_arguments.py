"""The arguments of `publish` become a request by their places, so each must be at its own."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

import pytest

import js_async.publishing
import js_sync.publishing
from js_core.publish import PublishRequest

ARGUMENTS: dict[str, Any] = {name: object() for name in PublishRequest._fields}


def test_each_argument_is_its_own_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(_: object, request: PublishRequest, *__: object) -> PublishRequest:
        return request

    async def publish_later(_: object, request: PublishRequest, *__: object) -> PublishRequest:
        return request

    monkeypatch.setattr(js_sync.publishing, "publish", publish)
    monkeypatch.setattr(js_async.publishing, "publish", publish_later)
    blocking = js_sync.publishing.Publishing(cast("Any", None)).publish(**ARGUMENTS)
    other = asyncio.run(js_async.publishing.Publishing(cast("Any", None)).publish(**ARGUMENTS))
    assert blocking == other == PublishRequest(**ARGUMENTS)
    assert isinstance(blocking, PublishRequest)


def test_every_field_of_a_request_is_an_argument() -> None:
    names = inspect.signature(js_sync.JetStream.publish).parameters
    assert set(PublishRequest._fields) <= set(names)
