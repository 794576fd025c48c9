# Generated from src/js_async/consumer.py by codegen/twin.py. Edit that file instead.
"""One consumer: its state, and pulling messages from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import repeat
from typing import TYPE_CHECKING, Final

import js_models
from js_core.batch import Batch, BatchEnd
from js_core.deadline import Seconds, finite_seconds, seconds
from js_core.errors import AlreadyAcknowledged, BadArgument, TwinstreamError
from js_core.fetch import Fetch
from js_core.given import check_kind
from js_core.nats_py_names import hint_keywords
from js_core.pin import pin_of
from js_core.pull_error import of_consumer
from js_core.pull_request import Priority, PullLimits, Wait, buffer_limits, fetch_limits
from js_core.reports import PullReport
from js_sync import _control
from js_sync._api import Api
from js_sync._create import CreateAction, create_consumer
from js_sync._delivery import Delivery, ack_wait_of, is_for_nobody_else, pull_bounds
from js_sync._io import Handler, Opening, opening
from js_sync._missing import Missing, OnDeleted
from js_sync._pulls import PullChannels
from js_sync.message import Message, message_of, messages_of
from js_sync.messages import Messages

if TYPE_CHECKING:
    from js_models import ConsumerConfig, ConsumerInfo, ConsumerPauseResponse
    from js_sync.consuming import Consuming, Order
    from js_sync.events import Events

__all__ = ["Consumer"]


class Consumer:
    """A pull consumer on the server. `cached_info` is what the server said last, if asked."""

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo | None) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._name: Final = name
        self._channels: Final = PullChannels(api, stream, name)
        self.cached_info = info

    @classmethod
    def create(
        cls,
        api: Api,
        stream: str,
        config: ConsumerConfig,
        action: CreateAction,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Create or change a consumer; see `Stream.create_consumer`."""
        deadline = api.deadline(timeout)
        info = create_consumer(api, stream, config, action, deadline, pedantic=pedantic)
        return cls(api, stream, info.name, info)

    @classmethod
    def get(cls, api: Api, stream: str, name: str, timeout: Seconds | None = None) -> Consumer:
        """Return a consumer that exists."""
        consumer = cls(api, stream, name, None)
        consumer.info(timeout=timeout)
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

    # ---- the consumer on the server

    def info(self, *, timeout: Seconds | None = None) -> ConsumerInfo:
        """Ask for configuration and state. Raises `ConsumerNotFound`."""
        self.cached_info = _control.info(
            self._api, self._stream, self._name, self._api.deadline(timeout)
        )
        return self.cached_info

    def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the consumer. Raises `ConsumerNotFound`."""
        deadline = self._api.deadline(timeout)
        _control.delete(self._api, self._stream, self._name, deadline)

    def pause(
        self,
        duration: Seconds | None = None,
        *,
        until: datetime | None = None,
        timeout: Seconds | None = None,
    ) -> ConsumerPauseResponse:
        """Deliver nothing for `duration` seconds, or up to a moment (server 2.11).

        Pulls wait meanwhile. The server's clock counts: a duration is added to the local one.
        Raises `BadArgument` when the pause is over by the server's clock already.
        """
        length = None if duration is None else finite_seconds(duration, "duration")
        end = _control.pause_end(length, until)
        deadline = self._api.deadline(timeout)
        return _control.pause(self._api, self._stream, self._name, end, deadline)

    def resume(self, *, timeout: Seconds | None = None) -> None:
        """End a pause (server 2.11)."""
        deadline = self._api.deadline(timeout)
        _control.pause(self._api, self._stream, self._name, None, deadline)

    def reset(self, seq: int | None = None, *, timeout: Seconds | None = None) -> ConsumerInfo:
        """Start again from a stream sequence, or just above the acknowledgement floor (2.14).

        What is pending and how often it was delivered is forgotten.
        """
        deadline = self._api.deadline(timeout)
        self.cached_info = _control.reset(self._api, self._stream, self._name, seq, deadline)
        return self.cached_info

    def unpin(self, group: str, *, timeout: Seconds | None = None) -> None:
        """Take the pin of a priority group from its client, so that another gets it (2.11)."""
        deadline = self._api.deadline(timeout)
        _control.unpin(self._api, self._stream, self._name, group, deadline)

    def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Hand the consumer's leadership over, as `Replicas.step_down` does a stream's."""
        deadline = self._api.deadline(timeout)
        _control.step_down(self._api, self._stream, self._name, preferred, cluster, tags, deadline)

    def ack_samples(self, *, max_pending: int = 65_536) -> Opening[Events]:
        """Iterate over sampled acknowledgements from now on, as `js_models.ConsumerAck` records.

        Raises `BadArgument` when it is known that the consumer has no `sample_freq`.
        """
        config = self.cached_info.config if self.cached_info is not None else None
        if config is not None and not config.sample_freq:
            raise BadArgument(
                f'{self._stream}/{self._name} samples nothing: set sample_freq, "100%" for all'
            )
        from js_core.advisories import event_subjects
        from js_sync.events import listen

        subjects = event_subjects(self._stream, self._name, ["consumer_ack"])
        return opening(listen(self._api.transport, subjects, max_pending))

    # ---- pulling

    @hint_keywords
    def fetch(
        self,
        max_messages: int | None = None,
        *,
        timeout: Seconds = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
        two_step: bool = False,
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
    ) -> Batch[Message]:
        """Fetch up to `max_messages`, or up to `max_bytes` as the server counts them, or both.

        `wait` says when to end before that: "full" waits `timeout` seconds for all of them,
        "first" waits so long for some, "none" takes what is there now. The batch's `reason` says
        why it ended; an empty one is no error. Returns one second after `timeout` at the latest.
        `two_step` asks for what is there first, and waits only when that is nothing (ADR-13). A
        server that may not deliver now, as `max_ack_pending` is reached, does not answer before.
        `heartbeat` is the interval of idle heartbeats (0.5 to 30 s; 5 s from a `timeout` of 10 s
        on, none below): the fetch ends when two are missing.

        With "full" the first message waits for the last one: keep `timeout` below the consumer's
        `ack_wait`, or the server delivers it anew meanwhile (`Message.is_late`).

        Raises `PullRefused` beyond a limit of the consumer, `NoResponders` when there is no such
        consumer, `ConsumerDeleted`, `ConsumerIsPush`, `BadPull`, `PullError` when the first
        message alone is bigger than `max_bytes`, `RequestTimeout` when there was no link,
        `PermissionDenied`.
        """
        limits = fetch_limits(
            self._most(max_messages, max_bytes), max_bytes, timeout, wait, priority, heartbeat
        )
        if two_step and not limits.no_wait:
            now = fetch_limits(limits.max_messages, max_bytes, timeout, "none", priority)
            batch = self._batch(self._fetch(now, 0.0))
            if batch:
                return batch
        return self._batch(self._fetch(limits, seconds(timeout)))

    def _most(self, max_messages: int | None, max_bytes: int | None) -> int | None:
        """Return the most messages of a fetch: by bytes alone, as many as the consumer allows."""
        if max_messages is not None or max_bytes is None:
            return max_messages
        return pull_bounds(self.cached_info).max_batch

    def next(
        self,
        *,
        timeout: Seconds = 5.0,
        priority: Priority | None = None,
        heartbeat: Seconds | None = None,
    ) -> Message | None:
        """Return one message, or None when none came within `timeout` seconds.

        Asks for exactly one, when it is called; takes and raises what `fetch` does.
        """
        limits = fetch_limits(1, None, timeout, "full", priority, heartbeat)
        return self._first(self._fetch(limits, limits.expires or 0.0))

    def ack_next(
        self, message: Message, *, timeout: Seconds = 5.0, priority: Priority | None = None
    ) -> Message | None:
        """Acknowledge a message and ask for the next one in one word (+NXT).

        Returns None when none came within `timeout` seconds. Raises `AlreadyAcknowledged`, and
        what `fetch` raises.
        """
        return self._first(self._ack_fetch(message, 1, timeout, "full", priority))

    def ack_fetch(
        self,
        message: Message,
        max_messages: int,
        *,
        timeout: Seconds = 5.0,
        wait: Wait = "full",
        priority: Priority | None = None,
    ) -> Batch[Message]:
        """Acknowledge a message and fetch the next ones in one word; the rest is as in `fetch`.

        Raises `AlreadyAcknowledged`, and what `fetch` raises.
        """
        return self._batch(self._ack_fetch(message, max_messages, timeout, wait, priority))

    def _ack_fetch(
        self,
        message: Message,
        max_messages: int,
        timeout: Seconds,
        wait: Wait,
        priority: Priority | None,
    ) -> Fetch:
        check_kind(message, Message, "message", "a Message of this consumer")
        if message.is_acknowledged:
            raise AlreadyAcknowledged(f"{message.subject}: acknowledged already")
        limits = fetch_limits(max_messages, None, timeout, wait, priority)
        fetch = self._fetch(limits, limits.expires or 0.0, message.reply_bytes)
        message.finished()
        return fetch

    def double_ack(
        self, messages: Iterable[Message], *, timeout: Seconds | None = None
    ) -> list[Message]:
        """Acknowledge many messages, such as a batch, and return those that are not sure to count.

        All are sent at once; it returns when the server has confirmed each, or after `timeout`
        seconds. A message that is returned may come again: its confirmation is missing, and it may
        be acknowledged anew, or came so late that it was delivered again before.

        Raises `AlreadyAcknowledged` before anything is sent, `RequestTimeout` when there was no
        link.
        """
        from js_sync._double_acks import double_ack

        given = list(messages)
        for message in given:
            check_kind(message, Message, "message", "a Message of this consumer")
        return double_ack(self._api.transport, given, self._api.deadline(timeout))

    def _fetch(self, limits: PullLimits, patience: float, instead: bytes | None = None) -> Fetch:
        channel = self._channels.take_idle() or self._channels.take()
        clean = False
        try:
            fetch = channel.fetch(limits, patience, instead)
            clean = fetch.is_clean
        finally:
            if clean:
                self._channels.put(channel)
            else:
                # Cut short in the middle: what arrived goes back to the server.
                self._channels.end(channel)
        if limits.priority is not None and limits.priority.may_pin:
            self._note_pin(limits.priority.group, fetch)
        if fetch.error is not None:
            raise of_consumer(fetch.error, self._stream, self._name)
        return fetch

    def _batch(self, fetch: Fetch) -> Batch[Message]:
        if fetch.end is None:
            raise TwinstreamError("the fetch has no end: please report this")
        return Batch(self._messages_of(fetch), fetch.end, fetch.detail)

    def _messages_of(self, fetch: Fetch) -> list[Message]:
        """Return the messages of a fetch; each knows when it arrived, which may be long ago."""
        transport, ack_wait = self._api.transport, ack_wait_of(self.cached_info)
        messages: list[Message] = []
        for count, at in fetch.arrivals:
            delivery = Delivery(transport, at, ack_wait, self._api.timeout)
            frames = fetch.frames[len(messages) : count]
            messages += messages_of(frames, repeat(delivery))
        return messages

    def _first(self, fetch: Fetch) -> Message | None:
        if not fetch.frames:
            return None
        at = fetch.arrivals[0][1]
        api = self._api
        delivery = Delivery(api.transport, at, ack_wait_of(self.cached_info), api.timeout)
        return message_of(fetch.frames[0], delivery)

    def _note_pin(self, group: str, fetch: Fetch) -> None:
        if fetch.end is BatchEnd.UNPINNED:
            self._channels.pins.drop(group)
        pin = pin_of(fetch.frames[-1]) if fetch.frames else None
        if pin is not None:
            self._channels.pins.note(group, pin)

    def messages(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        priority: Priority | None = None,
        stop_after: int | None = None,
        on_deleted: OnDeleted = "raise",
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Messages:
        """Return an endless iteration with a buffer that refills itself (ADR-37).

        The buffer holds up to `max_messages` (500, or fewer that are long: some 16 MiB), or up to
        `max_bytes`, and is refilled when half of it is gone, or at the threshold given. Where the
        consumer's ack_wait is known (after `info` or `create`), no more is asked for than the
        program can take, at its pace, within half of that time, and what is buffered is kept
        alive, unless nothing is taken for five times the ack_wait: others may have it then, and
        the next pull comes with the next message that is wanted. `expires` (30 s) is the life of
        one request, `heartbeat` the interval of its idle heartbeats (0.5 to 30 s; 5 s, or half of
        `expires` if that is less): when two are missing, it pulls anew. Requests keep to the
        consumer's own `max_batch`, and `expires` by default to its `max_expires`, where they are
        known. A pinned client pulls often enough to keep its pin, as long as a message is taken
        within half of the consumer's `priority_timeout`.

        The iteration ends after `stop_after` messages, if given, and asks for no more than those.
        `on_deleted` says what to do when the consumer is gone. `on_report` is told what is mended,
        and of a pin that is won or lost.
        """
        ack_wait = ack_wait_of(self.cached_info)
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=threshold_messages,
            threshold_bytes=threshold_bytes,
            priority=priority,
            bounds=pull_bounds(self.cached_info),
            stop_after=stop_after,
        )
        missing = Missing(
            self._api, self._channels, self._stream, self._name, self.cached_info, on_deleted
        )
        messages = Messages(missing, limits, ack_wait, on_report, self._wants_acks())
        messages.held.keep_all = is_for_nobody_else(self.cached_info)
        return messages

    def consume(
        self,
        handler: Handler[Message],
        *,
        concurrency: int = 1,
        order: Order = "none",
        progress: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        priority: Priority | None = None,
        stop_after: int | None = None,
        on_deleted: OnDeleted = "raise",
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Consuming:
        """Call a handler for each message, up to `concurrency` at once (ADR-37).

        `order` is "none", "subject" (messages of one subject one after the other) or "total".
        The handler acknowledges. With `progress` the server is told that work goes on while it
        runs, which takes a known ack_wait, too. An error out of the handler ends the consumption
        and comes out of `Consuming.wait`. The rest is as in `messages`.
        """
        from js_sync.consuming import Consuming

        messages = self.messages(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=threshold_messages,
            threshold_bytes=threshold_bytes,
            priority=priority,
            stop_after=stop_after,
            on_deleted=on_deleted,
            on_report=on_report,
        )
        where = f"{self._stream}/{self._name}"
        return Consuming(where, messages, handler, concurrency, order, progress)

    def _wants_acks(self) -> bool:
        config = self.cached_info.config if self.cached_info is not None else None
        return config is None or config.ack_policy not in {js_models.AckPolicy.NONE, None}
