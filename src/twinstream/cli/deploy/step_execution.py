"""Carry out a step of a plan."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.step_order import subjects_of
from twinstream.cli.deploy.typed_config import consumer_config, stream_config
from twinstream.cli.failures import Failure
from twinstream.models import ConsumerConfig, StreamConfig

if TYPE_CHECKING:
    from js_sync import Consumer, JetStream


def carry_out(jet: JetStream, step: Step) -> None:
    """Carry out a step on the server. Raises `Failure` if the SDK raises an error."""
    from js_sync import TwinstreamError

    try:
        if step.config.kind == "stream":
            _stream(jet, step)
        else:
            _consumer(jet, step)
    except TwinstreamError as error:
        raise Failure(f"{step.title}: {error}") from error


def _stream(jet: JetStream, step: Step) -> None:
    config = stream_config(step.config)
    if step.verb == "update":
        jet.update_stream(config)
        return
    if step.verb == "create":
        jet.create_stream(config)
        return
    _check_acceptable(jet, config)
    jet.delete_stream(step.config.name)
    with _removed(step):
        jet.create_stream(config)


def _consumer(jet: JetStream, step: Step) -> None:
    config = consumer_config(step.config)
    stream, name = step.config.stream_name, step.config.name
    if step.verb == "update":
        _update_consumer(jet, step, config)
        return
    if step.verb == "create":
        jet.create_consumer(stream, config)
        return
    jet.delete_consumer(stream, name)
    with _removed(step):
        jet.create_consumer(stream, config)


def _check_acceptable(jet: JetStream, config: StreamConfig) -> None:
    """Raise `Failure` if the server would refuse `config` even without the old stream.

    The second request creates nothing: the server validates the whole config before it reports that
    the name is in use.
    """
    from js_sync import StreamExists, TwinstreamError

    name = config.name or ""
    unchanged = f"stream {name} is unchanged, because a new one could not be created"
    try:
        for subject in subjects_of(config):
            others = sorted(other for other in jet.stream_names(subject) if other != name)
            if others:
                raise Failure(f"{unchanged}: {subject!r} belongs to stream {others[0]}")
        with suppress(StreamExists):
            jet.create_stream(config)
    except TwinstreamError as error:
        raise Failure(f"{unchanged}: {error}") from error


@contextmanager
def _removed(step: Step) -> Generator[None]:
    """Convert an error of the block to a failure that reports the removal of the old object."""
    try:
        yield
    except Exception as error:
        message = f"{step.title} was removed to be re-created, but creating it failed: {error}"
        raise Failure(message) from error


def _update_consumer(jet: JetStream, step: Step, config: ConsumerConfig) -> None:
    """Update a consumer, and repeat the update if it leaves an unwanted `inactive_threshold`.

    If the first update changes an ephemeral consumer to a durable one, the server sets the default
    threshold of ephemeral consumers. The second update removes it. Raises `Failure` if the
    threshold remains.
    """
    stream = step.config.stream_name
    consumer = jet.update_consumer(stream, config)
    changes = {change.path: change.new for change in step.plan.changes}
    lasting = "inactive_threshold" in changes and changes["inactive_threshold"] is None
    if lasting and _may_end(consumer) and _may_end(jet.update_consumer(stream, config)):
        raise Failure(f"{step.title} keeps an inactive_threshold that its file does not set")


def _may_end(consumer: Consumer) -> bool:
    info = consumer.cached_info
    return bool(info and info.config and info.config.inactive_threshold)
