"""Request the current state of a stream and its consumers from the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from twinstream.cli.listing_gaps import undescribed
from twinstream.cli.screen import counted
from twinstream.models import ConsumerConfig, StreamConfig

if TYPE_CHECKING:
    from js_sync import JetStream


@frozen
class CurrentState:
    """The current state of a stream on the server, and the configs of its consumers by name."""

    config: StreamConfig
    messages: int
    consumers: Mapping[str, ConsumerConfig]

    @property
    def contents(self) -> str:
        """The data that is lost if the stream is removed, such as `2 messages and 1 consumer`."""
        consumers = counted(len(self.consumers), "consumer")
        return f"{counted(self.messages, 'message')} and {consumers}"


def current_state(jet: JetStream, name: str) -> CurrentState | None:
    """Request and return the state of a stream; None if the server has no such stream.

    Raises `RequestTimeout` if the server lists a consumer without its config.
    """
    from js_sync import RequestTimeout, StreamNotFound

    try:
        stream = jet.bind_stream(name)
        found = stream.info()
        listing = stream.consumers()
        infos = list(listing)
    except StreamNotFound:
        return None
    for consumer, reason in undescribed(listing).items():
        # Without its config, the consumer would look like one that does not exist.
        raise RequestTimeout(
            f"consumer {consumer} of stream {name} cannot be described: {reason}; try again later"
        )
    configs = {info.name: info.config for info in infos if info.config is not None}
    return CurrentState(found.config, found.state.messages, configs)
