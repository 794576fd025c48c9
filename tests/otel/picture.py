"""Draws docs/trace.svg: the trace of a message that fails, and is replayed as a dead letter.

    python -m tests.otel.picture

The program runs against a real server. The picture has the order of beginnings and ends, and no
times, so each run draws the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan

import js_sync
from js_sync.workers import DeadLetters, Retry, Worker
from tests.otel.spans import Collected
from tests.unhurried import UNHURRIED
from twinstream.otel import instrument
from twinstream.testing import NatsServer

__all__ = ["PICTURE", "picture", "spans_of_a_failure"]

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "trace.svg"
_ROW, _LEFT, _STEP, _WIDTH = 26, 250, 24, 900
_COLORS = {
    "INTERNAL": "#8a8a8a",
    "PRODUCER": "#2f6f9f",
    "CLIENT": "#7fa8c9",
    "CONSUMER": "#3b8a5a",
}
_GROUP = "messaging.consumer.group.name"


def spans_of_a_failure() -> list[ReadableSpan]:
    """Return the spans of a message whose handler fails twice, in the order of their beginning."""
    collected, broken = Collected(), True

    def pack(message: js_sync.Message) -> None:
        if broken:
            raise OSError("out of boxes")

    with NatsServer(start_timeout=300) as server, js_sync.connect(server.url, **UNHURRIED) as nc:
        instrument(
            nc,
            destination=lambda subject: f"{subject.partition('.')[0]}.{{id}}",
            tracer_provider=collected.tracers,
        )
        jet = nc.jetstream()
        jet.create_stream(js_sync.StreamConfig(name="ORDERS", subjects=["orders.>"]))
        with collected.tracer.start_as_current_span("sale"):
            jet.publish("orders.1", b"tea")
        letters = DeadLetters(jet, "ORDERS")
        config = js_sync.ConsumerConfig(durable_name="packer")
        retry = Retry(attempts=2, first=0.01)
        with Worker(jet, "ORDERS", config, pack, retry=retry, dead_letters=letters) as worker:
            _wait(lambda: worker.rejected == 1)
        for letter in letters.letters():
            letters.replay(letter)
        broken = False
        with Worker(jet, "ORDERS", config, pack) as worker:
            _wait(lambda: worker.handled == 1)
    spans = collected.exporter.get_finished_spans()
    kept = [
        each for each in spans if "dead-letters" not in str((each.attributes or {}).get(_GROUP))
    ]
    return sorted(kept, key=lambda span: span.start_time or 0)


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def picture(spans: Sequence[ReadableSpan]) -> str:
    """Return the picture of a trace: a bar for each span, and lines to what it is linked to."""
    times = sorted({time or 0 for span in spans for time in (span.start_time, span.end_time)})
    rows = {span.context.span_id: row for row, span in enumerate(spans) if span.context}
    depths: dict[int, int] = {}
    body: list[str] = []
    for row, span in enumerate(spans):
        if span.context is None:
            continue
        depth = 0 if span.parent is None else depths[span.parent.span_id] + 1
        depths[span.context.span_id] = depth
        begin, end = (times.index(time or 0) for time in (span.start_time, span.end_time))
        x, y = _LEFT + begin * _STEP, row * _ROW + 8
        attributes = span.attributes or {}
        outcome = str(attributes.get("nats.handler.outcome", ""))
        body.append(
            f'<text x="{8 + depth * 14}" y="{y + 13}">{escape(span.name)}</text>'
            f'<rect x="{x}" y="{y}" width="{(end - begin) * _STEP}" height="18" rx="3"'
            f' fill="{_COLORS[span.kind.name]}"/>'
            f'<text x="{x + (end - begin) * _STEP + 6}" y="{y + 13}" class="note">'
            f"{escape(outcome or span.kind.name.lower())}</text>"
        )
        for link in span.links:
            target = rows[link.context.span_id] * _ROW + 26
            left = _LEFT + times.index(spans[rows[link.context.span_id]].start_time or 0) * _STEP
            body.append(f'<path d="M {left + 6} {target} V {y + 9} H {x}" class="link"/>')
    height = len(spans) * _ROW + 16
    style = (
        "text{font:13px sans-serif;fill:#222}.note{font-size:11px;fill:#555}"
        ".link{fill:none;stroke:#b06a00;stroke-dasharray:3 3}"
    )
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{lines}\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(spans_of_a_failure()), "utf-8")
