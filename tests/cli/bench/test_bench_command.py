"""`twinstream bench`: rates and percentiles."""

from __future__ import annotations

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import on_terminal
from twinstream.cli.bench.measures import percentile
from twinstream.models import ConsumerConfig
from twinstream.testing import NatsServer


@pytest.mark.parametrize(
    ("percent", "value"), [(50, 50), (90, 90), (99, 99), (99.9, 100), (0.1, 1), (100, 100)]
)
def test_percentiles_are_values_that_were_measured(percent: float, value: int) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value
    assert percentile([7.0], percent) == 7.0


@pytest.mark.parametrize("window", ["1", "256"])
def test_published_messages_are_measured(
    run: Run, jet: js_sync.JetStream, stream: str, window: str
) -> None:
    words = ("bench", "pub", f"{stream}.{{n}}", "--msgs", "300", "--size", "1KB")
    (found,) = json_lines(run(*words, "--window", window, "--json"))
    assert (found["messages"], found["bytes"]) == (300, 300 * 1024)
    assert found["messages_per_second"] == pytest.approx(300 / found["seconds"], rel=0.01)
    times = found["times"]
    assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["most"] <= found["seconds"]
    state = jet.get_stream(stream).info().state
    assert (state.messages, state.num_subjects) == (300, 300)
    assert "messages\t300\n" in run(*words, "--window", window).stdout


def test_consumed_messages_are_measured(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    run("pub", f"{stream}.a", "12345", "--count", "250")
    (found,) = json_lines(run("bench", "consume", stream, "--msgs", "200", "--json"))
    assert (found["messages"], found["bytes"]) == (200, 1000)
    worker = jet.create_consumer(stream, ConsumerConfig(durable_name="w"))
    (some,) = json_lines(run("bench", "consume", stream, "w", "--msgs", "250", "--json"))
    assert some["messages"] == 250
    assert (worker.info().num_pending, worker.info().num_ack_pending) == (0, 0)
    none = run("bench", "consume", stream, "w", "--wait", "300ms")
    assert (none.exit_code, "no message to measure" in none.stderr) == (1, True)


def test_there_is_a_progress_bar_on_a_terminal(server: NatsServer, stream: str) -> None:
    words = ["bench", "pub", f"{stream}.a", "--msgs", "500"]
    shown = on_terminal(words, 100, TWINSTREAM_URL=server.url)
    assert shown.code == 0
    assert "500/500" in shown.out
    assert "publish to acknowledgement, p99  " in shown.out


def test_a_subject_without_a_stream_is_a_failure(run: Run) -> None:
    result = run("bench", "pub", "nothing.captures.this", "--msgs", "10")
    assert (result.exit_code, result.stdout) == (1, "")
