"""The type of the payload that a handler's annotation names, for all kinds of handlers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, TypeVar

import attrs
import pytest

import js_async
import js_sync
from js_sync import Message
from js_sync.groups import GroupMessage
from twinstream.core.payloads.annotation import handled_payloads
from twinstream.errors import BadArgument

T = TypeVar("T")


@attrs.frozen
class Order:
    number: int


Orders = Message[Order]


def by_annotation(message: Message[Order]) -> None: ...


def by_alias(message: Orders) -> None: ...


def of_group(message: GroupMessage[Order]) -> None: ...


def quoted(message: Message["Order"]) -> None: ...  # noqa: UP037


def with_more(shop: str, message: Message[Order]) -> None: ...


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def inner(*given: Any) -> None:
        function(*given)

    return inner


class Handlers:
    def method(self, message: Message[Order]) -> None: ...

    @staticmethod
    def static(message: Message[Order]) -> None: ...

    @classmethod
    def of_class(cls, message: Message[Order]) -> None: ...

    def __call__(self, message: Message[Order]) -> None: ...


def enclosed() -> Callable[[Any], None]:
    @attrs.frozen
    class Local:
        number: int

    def handler(message: Message[Local]) -> None:
        Local(1)

    return handler


@pytest.mark.parametrize(
    "handler",
    [
        by_annotation,
        by_alias,
        of_group,
        quoted,
        decorated(by_annotation),
        partial(with_more, "shop"),
        partial(by_annotation),
        Handlers().method,
        Handlers.static,
        Handlers.of_class,
        Handlers(),
        enclosed(),
    ],
)
def test_the_type_is_found(handler: Any) -> None:
    payloads = handled_payloads(handler, Message)
    assert payloads is not None
    assert payloads.name in {"Order", "Local"}


def unannotated(message) -> None: ...  # type: ignore[no-untyped-def]


def bare(message: Message) -> None: ...


def of_bytes(message: Message[bytes]) -> None: ...


def of_any(message: Message[Any]) -> None: ...


def anything(message: Any) -> None: ...


def an_object(message: object) -> None: ...


@pytest.mark.parametrize(
    "handler",
    [unannotated, bare, of_bytes, of_any, anything, an_object, print, lambda message: None],
)
def test_other_handlers_get_bytes(handler: Any) -> None:
    assert handled_payloads(handler, Message) is None


def of_the_other_twin(message: js_async.Message[Order]) -> None: ...


def generic(message: Message[T]) -> None: ...


def unresolved(message: js_sync.Message[Missing]) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def optional(message: Message[Order] | None) -> None: ...


def annotated(message: Annotated[Message[Order], "a note"]) -> None: ...


def not_encodable(message: Message[complex]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (of_the_other_twin, r"names js_async\.\S+Message, but its messages are of js_sync\."),
        (generic, "names no type of a payload"),
        (unresolved, r"cannot be resolved \(name 'Missing' is not defined\): import or define"),
        (optional, "must be Message.* itself"),
        (annotated, "must be Message.* itself"),
        (not_encodable, "handler not_encodable: JsonCodec cannot encode complex"),
    ],
)
def test_an_annotation_without_a_codec_is_refused(handler: Any, text: str) -> None:
    with pytest.raises(BadArgument, match=text):
        handled_payloads(handler, Message)
