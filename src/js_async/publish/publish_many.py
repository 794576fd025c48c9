"""Publish the messages of an iterable without waiting for each acknowledgement."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

from js_async.publish.inflight import InFlight, Outcome
from js_async.publish.outcomes import Outcomes
from js_async.publish.pipeline import Pipeline
from twinstream.records.publish_request import Publishable

__all__ = ["PublishMany"]


class PublishMany(Outcomes[InFlight, Outcome]):
    """An iterator over the outcomes of many messages, in order. Created by `publish_many`.

    An outcome is the acknowledgement, or a `PublishFailure` with the error. The iteration sends the
    messages. The end of a `with` block waits for the messages that are still in flight.

    The end of the block raises `PublishFailures` if there are failures whose `error` was not read,
    unless `raise_failures` is off. Without a block, the end of the iteration raises this error.
    """

    _call = "publish_many"

    def __init__(
        self,
        pipeline: Pipeline,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        raise_failures: bool,
    ) -> None:
        limits = pipeline.limits
        super().__init__(pipeline, requests, raise_failures, limits.window, limits.window_bytes)
