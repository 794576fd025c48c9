"""The existing state of a server: a stream, its consumers, and the data that may be lost."""

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
    """One stream of the server and its consumers by name."""

    config: StreamConfig
    messages: int
    consumers: Mapping[str, ConsumerConfig]

    @property
    def contents(self) -> str:
        """Describe what is lost with the stream: ``2 messages and 1 consumer``."""
        consumers = counted(len(self.consumers), "consumer")
        return f"{counted(self.messages, 'message')} and {consumers}"


def existing_stream(jet: JetStream, name: str) -> Existing | None:
    """Request a stream and its consumers; return None if the server has no such stream."""
    from js_sync import StreamNotFound

    try:
        stream = jet.get_stream(name)
        infos = list(stream.consumers())
    except StreamNotFound:
        return None
    configs = {info.name: info.config for info in infos if info.config is not None}
    return Existing(stream.config, stream.cached_info.state.messages, configs)
