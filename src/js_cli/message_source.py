"""Where ``consume`` gets its messages from, whatever happens to the link meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from attrs import define, field

from js_cli.link_watch import Patience
from js_cli.screen import notes

if TYPE_CHECKING:
    from js_sync import Consumer, Message, OrderedMessages

_BEGINNING: Final = 1.0
"""Seconds that the first wait of an ordered read has at least: it makes a consumer first."""


class MessageSource(Protocol):
    """Messages of a stream, one after the other."""

    def take(self, timeout: float) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds."""
        ...

    def done(self, message: Message) -> None:
        """Tell the server, where it wants to know, that the message was printed."""
        ...


@define
class Durable:
    """The messages of a consumer that stays; what is lost with a link comes again."""

    consumer: Consumer
    acknowledge: bool
    patience: Patience

    def take(self, timeout: float) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds."""
        with self.patience.tried():
            return self.consumer.next(timeout=timeout)
        return None

    def done(self, message: Message) -> None:
        """Acknowledge the message, if that is wanted."""
        from js_core.errors import ConnectionLost, RequestTimeout

        if not self.acknowledge:
            return
        try:
            message.ack()
        except (ConnectionLost, RequestTimeout):
            text = f"{message.metadata.stream_seq} could not be acknowledged and will come again"
            notes().print(text, style="yellow")


@define
class InOrder:
    """A read in order, each message once, by consumers that are made and removed on the way."""

    messages: OrderedMessages
    _begun: bool = field(default=False, init=False)

    def take(self, timeout: float) -> Message | None:
        """Return the next message, or None when none came within ``timeout`` seconds."""
        from js_core.errors import RequestTimeout

        try:
            return self.messages.next(timeout if self._begun else max(timeout, _BEGINNING))
        except RequestTimeout:
            return None
        finally:
            self._begun = True

    def done(self, message: Message) -> None:
        """Do nothing: these consumers want no acknowledgement."""
