"""Request the current state of a stream and its consumers from the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from twinstream.cli.screen import counted
from twinstream.models import ConsumerConfig, StreamConfig

if TYPE_CHECKING:
    from js_sync import JetStream


@frozen
class Existing:
    """The current state of a stream on the server, and the configs of its consumers by name."""

    config: StreamConfig
    messages: int
    consumers: Mapping[str, ConsumerConfig]

    @property
    def contents(self) -> str:
        """The data that is lost with the stream, such as ``2 messages and 1 consumer``."""
        consumers = counted(len(self.consumers), "consumer")
        return f"{counted(self.messages, 'message')} and {consumers}"


def existing_stream(jet: JetStream, name: str) -> Existing | None:
    """Request and return the state of a stream; None if the server has no such stream."""
    from js_sync import StreamNotFound

    try:
        stream = jet.get_stream(name)
        infos = list(stream.consumers())
    except StreamNotFound:
        return None
    configs = {info.name: info.config for info in infos if info.config is not None}
    return Existing(stream.config, stream.cached_info.state.messages, configs)
