"""The sources of messages for ``consume``, which survive reconnects."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from attrs import define, field

from twinstream.cli.failures import Failure
from twinstream.cli.message.reconnects import Patience
from twinstream.cli.screen import notes
from twinstream.models.error_codes import PULL_REQUIRES_ACK

if TYPE_CHECKING:
    from js_sync import Batch, Consumer, Message, OrderedMessages, Priority
    from twinstream.models import ConsumerConfig

_BATCH: Final = 200
_BATCH_BYTES: Final = 16 * 1024 * 1024
"""Far below the limit (64 MiB) at which a server disconnects a slow reader."""
_GLANCE: Final = 0.05
"""Maximum seconds for a batch.

If max_ack_pending is reached, for example because of other clients, the server leaves a partly
served request open, and its messages wait with it.
"""
_BEGINNING: Final = 1.0
"""Minimum seconds for the first wait of an ordered read, which first creates a consumer."""


class MessageSource(Protocol):
    """A source of a stream's messages."""

    @property
    def at_hand(self) -> int:
        """The number of messages that were delivered but not processed yet."""
        ...

    @property
    def trouble(self) -> BaseException | None:
        """The error of the last wait, or None if it could receive messages."""
        ...

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if none arrived within ``timeout`` seconds.

        At most ``most`` messages are still needed, including this one.
        """
        ...

    def done(self, message: Message) -> None:
        """Acknowledge a printed message, if the consumer requires it."""
        ...


@define
class Durable:
    """The messages of a durable consumer. Messages lost with a connection are redelivered.

    Stored messages are fetched in batches, which is ten times as fast as one by one.
    """

    consumer: Consumer
    acknowledge: bool
    patience: Patience
    priority: Priority | None = None
    _ready: deque[Message] = field(factory=deque["Message"], init=False)

    @property
    def at_hand(self) -> int:
        """The number of messages that were delivered but not processed yet."""
        return len(self._ready)

    @property
    def trouble(self) -> BaseException | None:
        """The error of the last wait, or None if it could receive messages."""
        return self.patience.trouble

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if none arrived within ``timeout`` seconds."""
        if not self._ready:
            with self.patience.tried():
                self._ready.extend(self._fetch(min(self._batch, most or _BATCH), timeout))
        while self._ready:
            # The message stays in the buffer until it is processed, so that it is returned if
            # printing fails.
            if not self._ready[0].is_late:
                return self._ready[0]
            # Reading the output took longer than ack_wait, so the server redelivers the message.
            self._ready.popleft()
        return None

    def _fetch(self, size: int, timeout: float) -> Batch[Message]:
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
            except ConsumerDeleted:
                raise
            except PullError:  # a single message exceeds the limit of bytes for a batch
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
            # A message that is returned unprinted is lost, or has used up one delivery.
            return 1
        # A request for more than max_ack_pending messages is never completed.
        bounds = (_BATCH, config.max_batch or 0, config.max_ack_pending or 0)
        return min(bound for bound in bounds if bound > 0)

    def give_back(self) -> None:
        """Return unprocessed messages to the server."""
        from twinstream.core.error_details.transient import LOST_RESPONSE

        with suppress(*LOST_RESPONSE):
            while self._ready:
                message = self._ready.popleft()
                # A late message was redelivered, so a nak would take it from another client.
                if not message.is_late:
                    message.nak()

    def done(self, message: Message) -> None:
        """Acknowledge the message, if required."""
        from twinstream.core.error_details.transient import LOST_RESPONSE

        self._ready.popleft()
        if not self.acknowledge:
            return
        try:
            message.ack()
        except LOST_RESPONSE:
            text = f"{message.metadata.stream_seq} was not acknowledged and will be redelivered"
            notes().print(text, style="yellow")


@define
class InOrder:
    """An ordered read, each message once, through temporary consumers."""

    messages: OrderedMessages
    stream: str
    trouble: BaseException | None = field(default=None, init=False)
    """The error of the last wait, or None if it could receive messages."""
    _begun: bool = field(default=False, init=False)

    @property
    def at_hand(self) -> int:
        """Always 0: messages are read ahead, and unused ones need no acknowledgement."""
        return 0

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None if none arrived within ``timeout`` seconds."""
        from twinstream.errors import JetStreamError, RequestTimeout

        self.trouble = None
        try:
            return self.messages.next(timeout if self._begun else max(timeout, _BEGINNING))
        except RequestTimeout as error:
            self.trouble = error.__cause__  # the consumer could not be created
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
        """Do nothing: these consumers need no acknowledgement."""
