"""Comparing what a folder wants with what a server has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import Factory, frozen

from js_cli.deploy.folder import Wanted
from js_cli.deploy.step import Allowed, Step, step_of
from js_models import (
    ConsumerConfig,
    FileConfig,
    JsonObject,
    Plan,
    Problem,
    StreamConfig,
    plan_consumer,
    plan_stream,
)

if TYPE_CHECKING:
    from js_sync import JetStream


@frozen
class Existing:
    """One stream of the server and its consumers by name."""

    config: StreamConfig
    consumers: Mapping[str, ConsumerConfig] = Factory(dict[str, ConsumerConfig])


def existing_stream(jet: JetStream, name: str) -> Existing | None:
    """Ask the server for a stream and its consumers; None where there is no such stream."""
    from js_sync import StreamNotFound

    try:
        stream = jet.get_stream(name)
        infos = list(stream.consumers())
    except StreamNotFound:
        return None
    configs = {info.name: info.config for info in infos if info.config is not None}
    return Existing(stream.config, configs)


def compare(jet: JetStream, wanted: Wanted, server: str, allowed: Allowed) -> list[Step]:
    """Return a step for each wanted stream and consumer, in the order to carry them out."""
    names = {one.stream_name for one in (*wanted.streams, *wanted.consumers)}
    there = {name: existing_stream(jet, name) for name in sorted(names)}
    streams = [_stream_step(one, there[one.name], server, allowed) for one in wanted.streams]
    verbs = {step.config.name: step for step in streams}
    consumers = [
        _consumer_step(one, verbs.get(one.stream_name), there[one.stream_name], server, allowed)
        for one in wanted.consumers
    ]
    return [*_ordered(streams), *consumers]


def _stream_step(
    config: FileConfig, existing: Existing | None, server: str, allowed: Allowed
) -> Step:
    creation = plan_stream(None, config.members, server)
    old = None if existing is None else existing.config
    plan = creation if old is None else plan_stream(old, config.members, server)
    return step_of(config, plan, creation, allowed, "its messages and consumers")


def _consumer_step(
    config: FileConfig,
    stream: Step | None,
    existing: Existing | None,
    server: str,
    allowed: Allowed,
) -> Step:
    parent: JsonObject | StreamConfig | None = None
    if stream is not None:
        parent = stream.config.members
    elif existing is not None:
        parent = existing.config
    if parent is None:
        return Step(config, "refused", _no_stream(config), "its stream is missing")
    fresh = existing is None or (stream is not None and stream.verb == "recreate")
    old = None if fresh or existing is None else existing.consumers.get(config.name)
    creation = plan_consumer(None, config.members, parent, server)
    plan = creation if old is None else plan_consumer(old, config.members, parent, server)
    return step_of(config, plan, creation, allowed, _lost(parent))


def _lost(stream: JsonObject | StreamConfig) -> str:
    """Return what goes with a consumer: where only interest keeps messages, they do, too."""
    retention = stream.retention if isinstance(stream, StreamConfig) else stream.get("retention")
    if retention == "interest":
        return "its position and the messages that only it still wants"
    return "its position"


def _no_stream(config: FileConfig) -> Plan:
    message = f"there is no stream {config.stream_name!r}, neither here nor on the server."
    problem = Problem("stream_name", config.stream_name, "D-NO-STREAM", message, "Add its config.")
    return Plan("impossible", problems=[problem])


def _ordered(steps: list[Step]) -> list[Step]:
    """Put changes before creations, so that a subject can move, and origins before copies."""
    first = ("nothing", "refused", "update", "recreate", "create")
    return sorted(steps, key=lambda step: (first.index(step.verb), _copies(step)))


def _copies(step: Step) -> bool:
    return bool(step.config.members.get("mirror") or step.config.members.get("sources"))
