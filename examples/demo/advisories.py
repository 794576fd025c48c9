"""Step 4: read the advisories that the server published, and decode them to typed models."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from examples.demo.orders import Expected
from examples.demo.scene import EVENTS, EventKind, Scene
from js_sync import JetStream, Stream
from twinstream.cli.screen import plain_table
from twinstream.cli.server.event_view import describe
from twinstream.models import ConsumerConfig, DecodeError, MaxDeliver, Model, UnknownEvent, decode

_PATIENCE: Final = 10.0
_POLL: Final = 0.1


def show(scene: Scene, jet: JetStream) -> None:
    """Read the advisories from their stream, and print the number and the first of each kind."""
    events = _all_expected(scene, jet.get_stream(EVENTS))
    counts = Counter(_kind(event) for event in events)
    first = {_kind(event): event for event in reversed(events)}
    scene.advisories = [
        EventKind(name=name, count=count, example=describe(first[name]))
        for name, count in counts.most_common()
    ]
    table = plain_table("advisory", "count", "the first of them", numbers=("count",))
    for kind in scene.advisories:
        table.add_row(kind.name, f"{kind.count:,}", kind.example)
    scene.console.print(table)


def _all_expected(scene: Scene, stream: Stream) -> list[Model]:
    """Wait until each message that reached `max_deliver` has its event, and return all events.

    The server publishes events in the background, so the last events may be stored a moment later.
    The wait takes at most `_PATIENCE` seconds.
    """
    wanted = Expected(count=scene.settings.events).declined
    deadline = time.monotonic() + _PATIENCE
    while True:
        events = _read_all(stream)
        found = sum(isinstance(event, MaxDeliver) for event in events)
        if found >= wanted or time.monotonic() > deadline:
            return events
        time.sleep(_POLL)


def _read_all(stream: Stream) -> list[Model]:
    total = stream.info().state.messages
    reader = stream.create_consumer(ConsumerConfig(ack_policy="none", mem_storage=True))
    events: list[Model] = []
    while len(events) < total:
        batch = reader.fetch(total - len(events), timeout=2)
        if not batch:
            break
        events += [_decoded(message.data) for message in batch]
    stream.delete_consumer(reader.name)
    return events


def _decoded(data: bytes) -> Model:
    """Return an event; one of an unknown type if another client published anything else."""
    try:
        return decode(data)
    except DecodeError:
        return UnknownEvent()


def _kind(event: Model) -> str:
    name = getattr(event, "type", None) or "unknown"
    return str(name).rpartition(".")[2]
