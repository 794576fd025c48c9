"""Step 2: publish the order events, every tenth event twice. The stream stores each event once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from examples.demo.orders import OrderEvent, order_events
from examples.demo.scene import STREAM, Scene
from js_sync import JetStream, PublishFailure, PublishRequest
from twinstream.cli.screen import progress, remark
from twinstream.models import PubAck

WINDOW = 512
"""The number of publishes in flight: enough for full speed, but few enough to save memory."""


def publish(scene: Scene, jet: JetStream) -> None:
    """Publish all events, then every tenth event again with the same message id."""
    settings = scene.settings
    again = (
        event
        for number, event in enumerate(order_events(settings.events, settings.seed))
        if number % 10 == 0
    )
    scene.sent_again = len(range(0, settings.events, 10))
    started = time.monotonic()
    with progress(scene.console) as display:
        first = display.add_task("publish", total=settings.events)
        for ack in _acks(jet, order_events(settings.events, settings.seed)):
            scene.published += not ack.duplicate
            display.advance(first)
        scene.publish_seconds = time.monotonic() - started
        second = display.add_task("send again", total=scene.sent_again)
        for ack in _acks(jet, again):
            scene.refused_as_duplicate += bool(ack.duplicate)
            display.advance(second)
    scene.stored = jet.get_stream(STREAM).info().state.messages
    remark(
        scene.console,
        f"{scene.published + scene.sent_again:,} messages sent, {scene.stored:,} stored,"
        f" {scene.refused_as_duplicate:,} recognised by their message id and not stored again"
        f" ({scene.published / scene.publish_seconds:,.0f} a second).",
    )


def _acks(jet: JetStream, events: Iterable[OrderEvent]) -> Iterator[PubAck]:
    requests = (
        PublishRequest(subject=event.subject, data=event.payload, msg_id=event.message_id)
        for event in events
    )
    with jet.publish_many(requests, window=WINDOW) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, PublishFailure):
                raise outcome.error
            yield outcome
