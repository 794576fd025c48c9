# Generated from src/js_async/consumer.py by codegen/twin.py. Edit that file instead.
"""One consumer: its state, and pulling messages from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from attrs import evolve
from js_core.batch import Batch
from js_core.deadline import Seconds, seconds
from js_core.errors import BadArgument
from js_core.pull import Report
from js_core.pull_request import Wait, buffer_limits, fetch_limits
from js_models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerCreateResponse,
    ConsumerDeleteResponse,
    ConsumerInfo,
    ConsumerInfoResponse,
    encode,
)

from js_sync._api import Api
from js_sync._pulls import PullChannels
from js_sync.message import Message
from js_sync.messages import Messages

__all__ = ["Consumer"]

Action = Literal["", "create", "update"]


class Consumer:
    """A pull consumer on the server. `cached_info` is what the server said last, if asked."""

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo | None) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._name: Final = name
        self._channels: Final = PullChannels(api, stream, name)
        self.cached_info = info

    @classmethod
    def create(cls, api: Api, stream: str, config: ConsumerConfig, action: Action) -> Consumer:
        """Create or change a consumer; see `Stream.create_consumer`."""
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
        info = api.call(subject, body, ConsumerCreateResponse)
        return cls(api, stream, name, info)

    @classmethod
    def get(cls, api: Api, stream: str, name: str) -> Consumer:
        """Return a consumer that exists."""
        consumer = cls(api, stream, name, None)
        consumer.info()
        return consumer

    @property
    def name(self) -> str:
        """The consumer's name."""
        return self._name

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self._stream

    def __repr__(self) -> str:
        return f"<Consumer {self._stream}/{self._name}>"

    def info(self) -> ConsumerInfo:
        """Ask for configuration and state. Raises `ConsumerNotFound`."""
        subject = self._api.subjects.consumer("INFO", self._stream, self._name)
        self.cached_info = self._api.call(subject, None, ConsumerInfoResponse)
        return self.cached_info

    def delete(self) -> None:
        """Delete the consumer. Raises `ConsumerNotFound`."""
        subject = self._api.subjects.consumer("DELETE", self._stream, self._name)
        self._api.call(subject, None, ConsumerDeleteResponse)
        self._channels.close()

    def fetch(
        self,
        max_messages: int,
        *,
        timeout: Seconds = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
    ) -> Batch[Message]:
        """Fetch up to `max_messages`, and up to `max_bytes` as the server counts them.

        `wait` says when to end before that: "full" waits `timeout` seconds for all of them,
        "first" waits so long for some, "none" takes what is there now. The batch's `reason` says
        why it ended; an empty one is no error. Returns one second after `timeout` at the latest.

        Raises `PullRefused` beyond a limit of the consumer, `NoResponders` when there is no such
        consumer, `ConsumerDeleted`, `ConsumerIsPush`, `BadPull`, `PullError` when the first
        message alone is bigger than `max_bytes`.
        """
        limits = fetch_limits(max_messages, max_bytes, timeout, wait)
        channel = self._channels.take()
        clean = False
        try:
            fetch = channel.fetch(limits, seconds(timeout))
            clean = fetch.is_clean
        finally:
            # Cancelled in the middle: what arrived goes back to the server.
            self._channels.put(channel, clean=clean)
        if fetch.error is not None:
            raise fetch.error
        transport = self._api.transport
        messages = [Message(frame, transport) for frame in fetch.frames]
        if fetch.end is None:
            raise BadArgument("the fetch did not end")
        return Batch(messages, fetch.end, fetch.detail)

    def next(self, *, timeout: Seconds = 5.0) -> Message | None:
        """Return one message, or None when none came within `timeout` seconds.

        Asks for exactly one, when it is called; raises as `fetch` does.
        """
        batch = self.fetch(1, timeout=timeout)
        return batch[0] if batch else None

    def messages(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        on_report: Callable[[Report], None] | None = None,
    ) -> Messages:
        """Return an endless iteration with a buffer that refills itself (ADR-37).

        The buffer holds up to `max_messages` (500) or `max_bytes`, and is refilled at half of it
        or at the threshold given. `expires` (30 s) is the life of one request, `heartbeat` its
        idle heartbeats (half of that, 0.5 to 30 s). What is mended is told to `on_report`.
        """
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=threshold_messages,
            threshold_bytes=threshold_bytes,
        )
        return Messages(self._api, self._channels, limits, on_report, self._wants_acks())

    def _wants_acks(self) -> bool:
        info = self.cached_info
        config = info.config if info is not None else None
        return config is None or config.ack_policy != AckPolicy.NONE
