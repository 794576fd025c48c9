"""The sources of messages of ``consume``, which survive reconnects."""

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
"""Well below the limit (64 MiB) at which a server disconnects a slow reader."""
_GLANCE: Final = 0.05
"""Seconds that a batch may take. While max_ack_pending is reached, by other clients perhaps, the
server lets a request wait that it served in part, and what it delivered waits as long."""
_BEGINNING: Final = 1.0
"""Seconds that the first wait of an ordered read has at least: it makes a consumer first."""


class MessageSource(Protocol):
    """Messages of a stream, one after the other."""

    @property
    def at_hand(self) -> int:
        """How many messages were delivered and not done yet."""
        ...

    @property
    def trouble(self) -> BaseException | None:
        """Why the last wait could not hear of messages; None if it could."""
        ...

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds.

        No more than ``most`` will be taken from now on.
        """
        ...

    def done(self, message: Message) -> None:
        """Acknowledge a printed message, if the consumer requires it."""
        ...


@define
class Durable:
    """The messages of a durable consumer; messages lost with a connection are redelivered.

    What is there comes in batches, ten times as fast as one by one.
    """

    consumer: Consumer
    acknowledge: bool
    patience: Patience
    priority: Priority | None = None
    _ready: deque[Message] = field(factory=deque["Message"], init=False)

    @property
    def at_hand(self) -> int:
        """How many messages were delivered and not done yet."""
        return len(self._ready)

    @property
    def trouble(self) -> BaseException | None:
        """Why the last wait could not hear of messages; None if it could."""
        return self.patience.trouble

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds."""
        if not self._ready:
            with self.patience.tried():
                self._ready.extend(self._fetch(min(self._batch, most or _BATCH), timeout))
        while self._ready:
            # It stays at hand until it is done: one that cannot be printed goes back, too.
            if not self._ready[0].is_late:
                return self._ready[0]
            # Whoever reads the output was so slow that the server delivers it again.
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
            except PullError:  # the next message alone has more
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
            # A message that goes back unprinted is lost, or has used up a delivery.
            return 1
        # A request for more than max_ack_pending is never served in full.
        bounds = (_BATCH, config.max_batch or 0, config.max_ack_pending or 0)
        return min(bound for bound in bounds if bound > 0)

    def give_back(self) -> None:
        """Return to the server what was not done."""
        from twinstream.core.error_details.transient import LOST_RESPONSE

        with suppress(*LOST_RESPONSE):
            while self._ready:
                message = self._ready.popleft()
                # Others have what is late by now: to give it back would take it from them.
                if not message.is_late:
                    message.nak()

    def done(self, message: Message) -> None:
        """Acknowledge the message, if that is wanted."""
        from twinstream.core.error_details.transient import LOST_RESPONSE

        self._ready.popleft()
        if not self.acknowledge:
            return
        try:
            message.ack()
        except LOST_RESPONSE:
            text = f"{message.metadata.stream_seq} could not be acknowledged and will come again"
            notes().print(text, style="yellow")


@define
class InOrder:
    """A read in order, each message once, by consumers that are made and removed on the way."""

    messages: OrderedMessages
    stream: str
    trouble: BaseException | None = field(default=None, init=False)
    """Why the last wait could not hear of messages; None if it could."""
    _begun: bool = field(default=False, init=False)

    @property
    def at_hand(self) -> int:
        """Do nothing: messages are read ahead, and unused ones need no acknowledgement."""
        return 0

    def take(self, timeout: float, most: int | None) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds."""
        from twinstream.errors import JetStreamError, RequestTimeout

        self.trouble = None
        try:
            return self.messages.next(timeout if self._begun else max(timeout, _BEGINNING))
        except RequestTimeout as error:
            self.trouble = error.__cause__  # no consumer could be made
            return None
        except JetStreamError as error:
            if error.err_code != PULL_REQUIRES_ACK:
                raise
            raise Failure(
                f"stream {self.stream} is a work queue, which is read through a consumer that"
                f" acknowledges: name one; `twinstream consumer ls {self.stream}` shows them, and"
                " --create makes one"
            ) from error
        finally:
            self._begun = True

    def done(self, message: Message) -> None:
        """Do nothing: these consumers want no acknowledgement."""
