"""Constants that tests change, of the SDK and the demo: `tuned("outbox page", 5)`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import pytest

__all__ = ["CONSTANTS", "Tuned", "tuner"]

Tuned = Callable[[str, Any], None]
"""What the fixture `tuned` is: it takes the name of a constant, and the value for this test."""

TWIN: Final = "twin"
"""Stands for the package of the twin whose test it is; js_sync in tests outside of both."""

CONSTANTS: Final = {
    "absence bound": "twinstream.core.consume.absence_timer.BOUND",
    "ack progress close time": "twin.consume.ack_progress._CLOSE_TIME",
    "ack progress patience": "twin.consume.ack_progress._PATIENCE",
    "ack progress reports": "twin.consume.ack_progress._REPORTS",
    "advisory patience": "examples.demo.advisories._PATIENCE",
    "answer of a probe": "twin.publish.verify_stored.SECOND_RESPONSE",
    "answer of the leader": "twinstream.core.publish.publish_engine.SECOND_RESPONSE",
    "cached results": "twinstream.core.exactly_once.processing._MAX_CACHED",
    "command glance": "twinstream.cli.message.message_source._GLANCE",
    "compared pairs": "twinstream.models.names.overlaps._PAIRS",
    "counter attempt": "twin.counters.counters._ATTEMPT",
    "crossing filters since": "twin.read.page_sources._CROSSING_SINCE",
    "demo steps": "examples.demo.story.STEPS",
    "diagnosis time": "twin.publish.diagnose._PATIENCE",
    "end of tasks": "twinstream.spark.landing.spark_engine._END_TIMEOUT",
    "fetch pause": "twin.consume.fetch_rounds._PAUSE",
    "fetch round": "twin.consume.fetch_rounds.ROUND",
    "group source check": "twin.groups.source_check._INTERVAL",
    "group subject check": "twin.groups.subject_check._INTERVAL",
    "held rows": "twinstream.spark.landing.table_files._HELD",
    "kept snapshots": "twinstream.lake.iceberg.retention._KEPT",
    "large plan": "twinstream.spark.source.plan.LARGE",
    "learned names": "twinstream.spark.decode.decode._MOST_LEARNED",
    "lease renewals": "twinstream.core.coordination.lease_engine._RENEWALS",
    "least page": "twin.read.page_sources.LEAST",
    "most snapshots": "twinstream.lake.iceberg.retention._MOST",
    "outbox busy": "twin.outbox.sqlite_outbox._BUSY",
    "outbox page": "twin.outbox.sender._PAGE",
    "overlap chunk": "twinstream.models.names.overlaps._CHUNK",
    "page bytes": "twinstream.core.read.bulk_page._MAX_BYTES",
    "pipeline patience": "twinstream.spark.pipeline.runner._PATIENCE",
    "plain address": "twinstream.core.client.server_pool._PLAIN",
    "publisher look": "twin.publish.publisher._LOOK",
    "pull sending": "twin.consume.pull_subscription._SENDING",
    "push silence": "twin.consume.push_buffer._SILENCE",
    "result skew": "twin.exactly_once.stored_results._SKEW",
    "second answer": "twinstream.core.wire.single_answers._SECOND",
    "session goodbye": "twin.client.session._GOODBYE",
    "socket close time": "js_async.runtime.socket_link._CLOSE_TIME",
    "spreading": "twin.api.api.SPREADING",
}


def tuner(patch: pytest.MonkeyPatch, module: str) -> Tuned:
    """Return a function that changes a constant for the tests of a module, by its name here."""
    twin = "js_async" if module.startswith("tests._async.") else "js_sync"

    def tune(name: str, value: Any) -> None:
        path, _, attribute = CONSTANTS[name].rpartition(".")
        head, _, rest = path.partition(".")
        patch.setattr(import_module(f"{twin}.{rest}" if head == TWIN else path), attribute, value)

    return tune
