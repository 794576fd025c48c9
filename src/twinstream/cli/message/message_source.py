"""The sources of messages for `consume`. They continue after reconnects."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from attrs import define, field

from twinstream.cli.failures import Failure
from twinstream.cli.message.reconnects import Patience
from twinstream.cli.screen import alerts
from twinstream.models.error_codes import PULL_REQUIRES_ACK

if TYPE_CHECKING:
    from js_sync import Batch, Consumer, Message, OrderedMessages, Priority
    from twinstream.models import ConsumerConfig

_BATCH: Final = 200
# The maximum bytes of a batch.
# The server disconnects a client that leaves 64 MiB of data unread, so a batch must be far smaller.
_BATCH_BYTES: Final = 16 * 1024 * 1024
# The maximum seconds of a request for a batch.
# Received messages are processed only when the request ends. If `max_ack_pending` is reached, for
# example because of other clients, the server sends no more messages, and only this timeout ends
# the request.
_GLANCE: Final = 0.05
# The minimum seconds for the first wait of an ordered read, which also creates a consumer.
_BEGINNING: Final = 1.0


class MessageSource(Protocol):
    """A source of the messages of a stream."""

    @property
    def at_hand(self) -> int:
        """The number of messages that were delivered but not printed yet."""
        ...

    @property
    def last_error(self) -> BaseException | None:
        """The error of the last wait; None if the wait ended without an error."""
        ...

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if no message arrived within `timeout` seconds.

        `most` is the number of messages that the command still needs, including this one; None
        means no limit.
        """
        ...

    def done(self, message: Message) -> None:
        """Acknowledge a printed message, if the consumer requires it."""
        ...


@define
class Durable:
    """The messages of a durable consumer.

    After a lost connection, the server redelivers the messages that were not acknowledged. Messages
    are fetched in batches where possible, which is ten times as fast as single messages.
    """

    consumer: Consumer
    acknowledge: bool
    patience: Patience
    priority: Priority | None = None
    _ready: deque[Message] = field(factory=deque["Message"], init=False)

    @property
    def at_hand(self) -> int:
        """The number of messages that were delivered but not printed yet."""
        return len(self._ready)

    @property
    def last_error(self) -> BaseException | None:
        """The error of the last wait; None if the wait ended without an error."""
        return self.patience.last_error

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if no message arrived within `timeout` seconds."""
        if not self._ready:
            with self.patience.tried():
                self._ready.extend(self._fetch(min(self._batch, most or _BATCH), timeout))
        while self._ready:
            # The message stays in the buffer until `done`. If it cannot be printed, `give_back`
            # returns it to the server.
            if not self._ready[0].is_late:
                return self._ready[0]
            # The message was buffered for longer than ack_wait, so the server redelivers it.
            self._ready.popleft()
        return None

    def _fetch(self, size: int, timeout: float) -> Batch[Message]:
        """Fetch up to `size` messages, or wait up to `timeout` seconds for one.

        A request for several messages ends early. Without a message, a request for one waits
        longer.
        """
        from twinstream.errors import ConsumerDeleted, PullError

        group = self.priority
        if size > 1:
            most = self._config.max_bytes if self._config is not None else None
            most = min(_BATCH_BYTES, most or _BATCH_BYTES)
            try:
                several = self.consumer.fetch(
                    size, timeout=_GLANCE, max_bytes=most, wait="first", priority=group
                )
                if several:
                    return several
            except ConsumerDeleted:  # a `PullError`, but a request for one message would fail, too
                raise
            except PullError:  # the next message alone exceeds max_bytes
                pass
        return self.consumer.fetch(1, timeout=timeout, priority=group)

    @property
    def _config(self) -> ConsumerConfig | None:
        info = self.consumer.cached_info
        return info.config if info is not None else None

    @property
    def _batch(self) -> int:
        config = self._config
        if config is None or config.ack_policy == "none" or (config.max_deliver or 0) > 0:
            # Do not buffer messages, because `give_back` could not return them without harm. With
            # ack_policy none, they would be lost. With max_deliver, each of them would have used up
            # one of its deliveries. An unknown config may have these settings.
            return 1
        # The server never completes a request for more than max_ack_pending messages.
        bounds = (_BATCH, config.max_batch or 0, config.max_ack_pending or 0)
        return min(bound for bound in bounds if bound > 0)

    def give_back(self) -> None:
        """Return the buffered messages to the server with naks, unless the connection is lost."""
        from twinstream.errors.transient import LOST_RESPONSE

        with suppress(*LOST_RESPONSE):
            while self._ready:
                message = self._ready.popleft()
                # The server may have redelivered a late message to another client, and a nak would
                # affect that delivery.
                if not message.is_late:
                    message.nak()

    def done(self, message: Message) -> None:
        """Remove a printed message from the buffer, and acknowledge it if `acknowledge` is set."""
        from twinstream.errors.transient import LOST_RESPONSE

        self._ready.popleft()
        if not self.acknowledge:
            return
        try:
            message.ack()
        except LOST_RESPONSE:
            text = f"{message.metadata.stream_seq} was not acknowledged and will be redelivered"
            alerts().print(text, style="yellow")


@define
class InOrder:
    """The messages of a stream in order, each once, read through temporary consumers."""

    messages: OrderedMessages
    stream: str
    last_error: BaseException | None = field(default=None, init=False)
    """The error of the last wait; None if the wait ended without an error."""
    _begun: bool = field(default=False, init=False)

    @property
    def at_hand(self) -> int:
        """Always 0, because buffered messages of an ordered read need no acknowledgement."""
        return 0

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if no message arrived within `timeout` seconds."""
        from twinstream.errors import JetStreamError, RequestTimeout

        self.last_error = None
        try:
            return self.messages.next(timeout=timeout if self._begun else max(timeout, _BEGINNING))
        except RequestTimeout as error:
            # The reason why no consumer could be created, or None.
            self.last_error = error.__cause__
            return None
        except JetStreamError as error:
            if error.err_code != PULL_REQUIRES_ACK:
                raise
            raise Failure(
                f"stream {self.stream} is a work queue, which can only be read through a consumer"
                f" that acknowledges: give its name (`twinstream consumer ls {self.stream}`"
                " lists consumers), or create one with --create"
            ) from error
        finally:
            self._begun = True

    def done(self, message: Message) -> None:
        """Do nothing, because an ordered read needs no acknowledgements."""
