# Generated from src/js_async/_paging.py by codegen/twin.py. Edit that file instead.
"""Lists that the server answers in pages: ask again until `total` is reached."""

from __future__ import annotations

from typing import Any, TypeVar

from js_models import (
    ConsumerInfo,
    ConsumerListResponse,
    ConsumerNamesResponse,
    StreamInfo,
    StreamListResponse,
    StreamNamesResponse,
)
from js_sync._api import Api
from js_sync._io import Stream as Generated

__all__ = ["consumer_names", "consumers", "stream_names", "streams"]

T = TypeVar("T")


def _body(offset: int, subject: str | None) -> dict[str, Any] | None:
    # An empty body is what servers of every age take for "all from the start".
    body: dict[str, Any] = {"offset": offset} if offset else {}
    if subject is not None:
        body["subject"] = subject
    return body or None


def _more(page: list[T], offset: int, total: int | None) -> bool:
    return bool(page) and offset + len(page) < (total or 0)


def streams(api: Api, subject: str | None) -> Generated[StreamInfo]:
    """Iterate over stream infos, 256 a page."""
    offset, more = 0, True
    while more:
        body = _body(offset, subject)
        answer = api.call(api.subjects.streams("LIST"), body, StreamListResponse)
        page = list(answer.streams or ())
        for info in page:
            yield info
        more = _more(page, offset, answer.total)
        offset += len(page)


def stream_names(api: Api, subject: str | None) -> Generated[str]:
    """Iterate over stream names, 1,024 a page."""
    offset, more = 0, True
    while more:
        body = _body(offset, subject)
        answer = api.call(api.subjects.streams("NAMES"), body, StreamNamesResponse)
        page = list(answer.streams or ())
        for name in page:
            yield name
        more = _more(page, offset, answer.total)
        offset += len(page)


def consumers(api: Api, stream: str) -> Generated[ConsumerInfo]:
    """Iterate over the consumer infos of a stream, 256 a page."""
    subject = api.subjects.consumers("LIST", stream)
    offset, more = 0, True
    while more:
        answer = api.call(subject, _body(offset, None), ConsumerListResponse)
        page = list(answer.consumers or ())
        for info in page:
            yield info
        more = _more(page, offset, answer.total)
        offset += len(page)


def consumer_names(api: Api, stream: str) -> Generated[str]:
    """Iterate over the consumer names of a stream, 1,024 a page."""
    subject = api.subjects.consumers("NAMES", stream)
    offset, more = 0, True
    while more:
        answer = api.call(subject, _body(offset, None), ConsumerNamesResponse)
        page = list(answer.consumers or ())
        for name in page:
            yield name
        more = _more(page, offset, answer.total)
        offset += len(page)
