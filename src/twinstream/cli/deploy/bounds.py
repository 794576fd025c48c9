"""Check whether the existing consumers of a stream exceed its new `consumer_limits`."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.typed_config import stream_config
from twinstream.cli.value_text import in_time
from twinstream.models import ConsumerConfig, Duration, JsonObject, StreamConfig, encode

_BOUNDED = ("max_ack_pending", "inactive_threshold")


def bounded(step: Step, old: StreamConfig, consumers: Mapping[str, ConsumerConfig]) -> Step:
    """Return the step; a refused copy if it sets a limit that an existing consumer exceeds.

    Streams are updated before their consumers, so the server would check the limits against the
    existing consumers.
    """
    if step.verb != "update":
        return step
    before, after = _limits(old), _limits(stream_config(step.config))
    if all(after.get(name, 0) <= 0 or after[name] == before.get(name) for name in _BOUNDED):
        return step
    for consumer, config in consumers.items():
        members = encode(config)
        for name in _BOUNDED:
            has = members.get(name, 0)
            if 0 < after.get(name, 0) < has:
                is_above = f"consumer {consumer} has {name} {_shown(name, has)}"
                reason = f"{is_above}, above consumer_limits; apply a lower one first"
                return evolve(step, verb="refused", refusal=reason)
    return step


def _limits(stream: StreamConfig) -> JsonObject:
    limits: JsonObject = encode(stream).get("consumer_limits") or {}
    return limits


def _shown(name: str, value: int) -> str:
    return f"{value:,}" if name == "max_ack_pending" else in_time(Duration.from_ns(value))
