"""Publishing values of one type. `JetStream.typed` returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypedDict, TypeVar

from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from typing import Unpack

    from twinstream.core.deadline import Seconds
    from twinstream.core.payloads.payloads import Payloads
    from twinstream.models import PubAck
    from twinstream.records.headers import HeaderValues
    from twinstream.records.publish_request import Rollup, Ttl

__all__ = ["TypedPublish"]

T = TypeVar("T")


class RequestOptions(TypedDict, total=False):
    """The members of `PublishRequest` that a codec does not set."""

    msg_id: str | None
    expected_stream: str | None
    expected_last_seq: int | None
    expected_last_msg_id: str | None
    expected_last_subject_seq: int | None
    expected_last_subject_seq_subject: str | None
    rollup: Rollup | None
    ttl: Ttl | None


class PublishOptions(RequestOptions, total=False):
    """The further arguments of `JetStream.publish`."""

    timeout: Seconds | None
    retries: int | None
    retry_wait: Seconds


class Publish(Protocol):
    """The method `JetStream.publish`."""

    async def __call__(self, *args: Any, **options: Any) -> PubAck:
        """Store a message."""
        ...


class TypedPublish(Generic[T]):
    """A JetStream context that publishes values of one type. `JetStream.typed` returns it."""

    def __init__(self, publish: Publish, payloads: Payloads[T]) -> None:
        self._publish: Final = publish
        self._payloads: Final = payloads

    def __repr__(self) -> str:
        return f"<TypedPublish of {self._payloads.name}>"

    async def publish(
        self,
        subject: str,
        value: T,
        *,
        headers: HeaderValues | None = None,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Store the message of a value; see `JetStream.publish`.

        Args:
            subject: Subject of the message.
            value: The value, which the codec encodes.
            headers: Headers of the message. The codec adds `Content-Type`, unless it is given.
            options: The further arguments of `JetStream.publish`.

        Raises:
            BadArgument: The value cannot be encoded; nothing was sent.
        """
        data, merged = self._payloads.encode(value, headers, subject)
        return await self._publish(subject, data, headers=merged, **options)

    def request(
        self,
        subject: str,
        value: T,
        *,
        headers: HeaderValues | None = None,
        **options: Unpack[RequestOptions],
    ) -> PublishRequest:
        """Return the request for the message of a value, without sending it.

        `publish_many`, `publisher().send`, an atomic batch, `FastIngest` and the handlers of
        `Processing` take it.

        Args:
            subject: Subject of the message.
            value: The value, which the codec encodes.
            headers: Headers of the message.
            options: The further members of `PublishRequest`.

        Raises:
            BadArgument: The value cannot be encoded.
        """
        data, merged = self._payloads.encode(value, headers, subject)
        return PublishRequest(subject, data, merged, **options)
