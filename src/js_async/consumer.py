"""One consumer: its state, and pulling messages from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import twinstream.models
from js_async.api import consumer_admin as _control
from js_async.api.api import Api
from js_async.api.create_update import CreateAction, create_consumer
from js_async.consume.delivery import ack_wait_of, is_for_nobody_else, pull_bounds
from js_async.consume.fetch_calls import FetchCalls
from js_async.runtime.concurrency import Handler
from js_async.consume.consumer_recovery import Missing, OnDeleted
from js_async.runtime.opening import Opening, opening
from js_async.consume.message import Message
from js_async.consume.messages import Messages
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument
from twinstream.core.consume.pull_request import OnRefused, Priority, buffer_limits
from twinstream.core.consume.reports import PullReport

if TYPE_CHECKING:
    from js_async.consume.consume import Consuming, Order
    from js_async.consume.advisories import Events
    from twinstream.models import ConsumerConfig, ConsumerInfo, ConsumerPauseResponse

__all__ = ["Consumer"]


class Consumer(FetchCalls):
    """A pull consumer on the server. `cached_info` is what the server said last, if asked."""

    @classmethod
    async def create(
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
        info = await create_consumer(api, stream, config, action, deadline, pedantic=pedantic)
        return cls(api, stream, info.name, info)

    @classmethod
    async def get(
        cls, api: Api, stream: str, name: str, timeout: Seconds | None = None
    ) -> Consumer:
        """Return a consumer that exists."""
        consumer = cls(api, stream, name, None)
        await consumer.info(timeout=timeout)
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

    async def info(self, *, timeout: Seconds | None = None) -> ConsumerInfo:
        """Ask for configuration and state. Raises `ConsumerNotFound`."""
        self.cached_info = await _control.info(
            self._api, self._stream, self._name, self._api.deadline(timeout)
        )
        return self.cached_info

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the consumer. Raises `ConsumerNotFound`."""
        deadline = self._api.deadline(timeout)
        await _control.delete(self._api, self._stream, self._name, deadline)

    async def pause(
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
        return await _control.pause(self._api, self._stream, self._name, end, deadline)

    async def resume(self, *, timeout: Seconds | None = None) -> None:
        """End a pause (server 2.11)."""
        deadline = self._api.deadline(timeout)
        await _control.pause(self._api, self._stream, self._name, None, deadline)

    async def reset(
        self, seq: int | None = None, *, timeout: Seconds | None = None
    ) -> ConsumerInfo:
        """Start again from a stream sequence, or just above the acknowledgement floor (2.14).

        What is pending and how often it was delivered is forgotten.
        """
        deadline = self._api.deadline(timeout)
        self.cached_info = await _control.reset(self._api, self._stream, self._name, seq, deadline)
        return self.cached_info

    async def unpin(self, group: str, *, timeout: Seconds | None = None) -> None:
        """Take the pin of a priority group from its client, so that another gets it (2.11)."""
        deadline = self._api.deadline(timeout)
        await _control.unpin(self._api, self._stream, self._name, group, deadline)

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        timeout: Seconds | None = None,
    ) -> None:
        """Hand the consumer's leadership over, as `Replicas.step_down` does a stream's."""
        deadline = self._api.deadline(timeout)
        await _control.step_down(
            self._api, self._stream, self._name, preferred, cluster, tags, deadline
        )

    def ack_samples(self, *, max_pending: int = 65_536) -> Opening[Events]:
        """Iterate over sampled acknowledgements from now on, as `twinstream.models.ConsumerAck` records.

        Raises `BadArgument` when it is known that the consumer has no `sample_freq`.
        """
        config = self.cached_info.config if self.cached_info is not None else None
        if config is not None and not config.sample_freq:
            raise BadArgument(
                f'{self._stream}/{self._name} samples nothing: set sample_freq, "100%" for all'
            )
        from js_async.consume.advisories import listen
        from twinstream.core.api.advisories import event_subjects

        subjects = event_subjects(self._stream, self._name, ["consumer_ack"])
        return opening(listen(self._api.transport, subjects, max_pending))

    # ---- iterating

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
        on_refused: OnRefused = "raise",
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Messages:
        """Return an endless iteration with a buffer that refills itself (ADR-37).

        The buffer holds up to `max_messages` (500, or fewer that are long: some 16 MiB), up to
        `max_bytes` as the server counts them, or up to both, and is refilled when half of it is
        gone, or at the threshold given. Where the consumer's ack_wait is known (after `info` or
        `create`), no more is asked for than the program can take, at its pace, within half of that
        time, and what is buffered is kept alive, unless nothing is taken for five times the
        ack_wait: others may have it then, and the next pull comes with the next message that is
        wanted. `expires` (30 s) is the life of one request, `heartbeat` the interval of its idle
        heartbeats (0.5 to 30 s; 5 s, or half of `expires` if that is less): when two are missing,
        it pulls again. Requests keep to the consumer's own `max_batch`, and `expires` by default to
        its `max_expires`, where they are known. A pinned client pulls often enough to keep its pin,
        as long as a message is taken within half of the consumer's `priority_timeout`.

        The iteration ends after `stop_after` messages, if given, and asks for no more than those.
        `on_deleted` says what to do when the consumer is gone. `on_refused` is for a first request
        that a limit of the consumer refuses: "raise" raises `PullRefused`, "retry" reports it and
        asks again with growing pauses, until the consumer is changed. `on_report` receives what was
        recovered, and a pin that is won or lost. Raises `BadArgument` without a `priority` where
        the consumer is known to have groups.
        """
        self._check_group(priority)
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
            on_refused=on_refused,
        )
        missing = Missing(
            self._api, self._channels, self._stream, self._name, self.cached_info, on_deleted
        )
        messages = Messages(missing, limits, ack_wait, on_report, self._wants_acks())
        messages._held.keep_all = is_for_nobody_else(self.cached_info)
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
        on_refused: OnRefused = "raise",
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Consuming:
        """Call a handler for each message, up to `concurrency` at once (ADR-37).

        `order` is "none", "subject" (messages of one subject one after the other) or "total".
        The handler acknowledges. With `progress` the server is told that work goes on while it
        runs, which takes a known ack_wait, too. An error out of the handler ends the consumption
        and comes out of `Consuming.wait`. The rest is as in `messages`.
        """
        from js_async.consume.consume import Consuming

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
            on_refused=on_refused,
            on_report=on_report,
        )
        where = f"{self._stream}/{self._name}"
        return Consuming(where, messages, handler, concurrency, order, progress)

    def _check_group(self, priority: Priority | None) -> None:
        """Refuse pulls without a group of the consumer, where its groups are known."""
        config = self.cached_info.config if self.cached_info is not None else None
        groups = config.priority_groups if config is not None else None
        if not groups or (priority is not None and priority.group in groups):
            return
        given = "no priority is given" if priority is None else f"there is no {priority.group!r}"
        raise BadArgument(
            f"{self._stream}/{self._name}: {given}, each pull has to name one of the priority"
            f" groups {', '.join(groups)}: pass priority=Priority(group={groups[0]!r})"
        )

    def _wants_acks(self) -> bool:
        config = self.cached_info.config if self.cached_info is not None else None
        return config is None or config.ack_policy not in {twinstream.models.AckPolicy.NONE, None}
