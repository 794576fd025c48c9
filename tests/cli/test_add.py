"""Streams and consumers from options: settings, questions on a terminal, files for `apply`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import on_terminal
from twinstream.testing import NatsServer

STREAM = (
    "--subjects {0}.a,{0}.b --subjects {0}.c.> --storage memory --retention work --discard new"
    " --max-msgs 1000 --max-msgs-per-subject 5 --max-bytes 1MB --max-age 7d --max-msg-size 64KB"
    " --dupe-window 1m --max-consumers 3 --description text --metadata team=tea --no-ack"
    " --allow-direct --allow-rollup --deny-delete"
)
CONSUMER = (
    "--filter {0}.a --filter {0}.b --deliver subject --ack explicit --backoff 1s,1m --max-deliver 3"
    " --max-pending 10 --max-waiting 5 --sample 50 --inactive-threshold 1h --headers-only"
    " --max-pull-batch 20 --max-pull-bytes 1MB --max-pull-expire 30s --metadata team=tea"
)


def test_a_stream_has_the_settings_of_the_options(run: Run, jet: js_sync.JetStream) -> None:
    words = STREAM.format("made").split()
    (info,) = json_lines(run("stream", "add", "MADE", *words, "--json"))
    assert info["config"]["name"] == "MADE"
    config = jet.get_stream("MADE").cached_info.config
    assert config.subjects == ["made.a", "made.b", "made.c.>"]
    assert (config.storage, config.retention, config.discard) == ("memory", "workqueue", "new")
    assert (config.max_msgs, config.max_msgs_per_subject, config.max_consumers) == (1000, 5, 3)
    assert (config.max_bytes, config.max_msg_size) == (1 << 20, 1 << 16)
    assert (config.max_age, config.duplicate_window) == (timedelta(days=7), timedelta(minutes=1))
    assert (config.no_ack, config.allow_direct, config.allow_rollup_hdrs) == (True, True, True)
    assert (config.deny_delete, config.deny_purge) == (True, False)
    again = run("stream", "add", "MADE", *words)
    assert again.exit_code == 0
    other = run("stream", "add", "MADE", *words, "--max-msgs", "7")
    assert (other.exit_code, "max_msgs" in other.stderr) == (1, True)


def test_a_consumer_has_the_settings_of_the_options(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    words = CONSUMER.format(stream).split()
    assert run("consumer", "add", stream, "made", *words).exit_code == 0
    config = jet.get_consumer(stream, "made").cached_info.config
    assert config is not None
    assert config.filter_subjects == [f"{stream}.a", f"{stream}.b"]
    assert (config.deliver_policy, config.ack_policy) == ("last_per_subject", "explicit")
    assert config.backoff == [timedelta(seconds=1), timedelta(minutes=1)]
    assert (config.max_deliver, config.max_ack_pending, config.max_waiting) == (3, 10, 5)
    assert (config.max_batch, config.max_bytes) == (20, 1 << 20)
    assert config.max_expires == timedelta(seconds=30)
    assert config.inactive_threshold == timedelta(hours=1)
    assert (config.headers_only, config.sample_freq) == (True, "50")


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_an_exported_file_makes_the_same(
    run: Run, jet: js_sync.JetStream, tmp_path: Path, ending: str
) -> None:
    name = f"EXPORTED-{ending}"
    files = [str(tmp_path / f"{each}.{ending}") for each in ("stream", "consumer")]
    # A work queue could not have the consumer, which starts at the last messages.
    options = STREAM.format(name).replace("--retention work", "--retention interest")
    stream = ("stream", "add", name, *options.split())
    consumer = ("consumer", "add", name, "made", *CONSUMER.format(name).split())
    assert run(*stream, "--export", files[0]).exit_code == 0
    assert run(*consumer, "--export", files[1]).exit_code == 0
    with pytest.raises(js_sync.StreamNotFound):
        jet.get_stream(name)
    checked = run("validate", *files)
    assert checked.exit_code == 0, checked.stdout
    assert run("apply", *files, "--yes").exit_code == 0
    # The options now describe what exists.
    assert run(*stream).exit_code == 0
    assert run(*consumer).exit_code == 0
    if ending == "yaml":
        assert yaml.safe_load(Path(files[0]).read_text())["max_age"] == "7d"
    refused = run(*stream, "--export", files[0])
    assert (refused.exit_code, "File exists" in refused.stderr) == (1, True)


def test_a_terminal_is_asked(server: NatsServer, jet: js_sync.JetStream) -> None:
    words = ["stream", "add", "ASKED", "--storage", "memory", "--max-msgs", "9"]
    # The last answer is wrong at first.
    answers = "asked.>\n1\ninterest\nold\n\n1GB\n30d\nmuch\n1KB\n\nyes\nno\n\n"
    shown = on_terminal(words, 100, answers, TWINSTREAM_URL=server.url)
    assert shown.code == 0, shown.out
    assert "Storage" not in shown.out.partition("created")[0]
    assert "'much' is not a size" in shown.out
    config = jet.get_stream("ASKED").cached_info.config
    assert (config.subjects, config.retention, config.max_msgs) == (["asked.>"], "interest", 9)
    assert (config.max_bytes, config.max_msg_size) == (1 << 30, 1024)
    assert (config.allow_rollup_hdrs, config.deny_delete, config.deny_purge) == (True, True, False)

    words = ["consumer", "add", "ASKED", "worker"]
    shown = on_terminal(words, 100, "2m\n\n\nasked.a\n5\n\n", TWINSTREAM_URL=server.url)
    assert shown.code == 0, shown.out
    made = jet.get_consumer("ASKED", "worker").cached_info.config
    assert made is not None
    assert (made.deliver_policy, made.filter_subject) == ("by_start_time", "asked.a")
    assert (made.max_deliver, made.max_ack_pending) == (5, 1000)
    words = ["stream", "add", "UNASKED", "--subjects", "unasked", "--defaults"]
    assert on_terminal(words, 100, TWINSTREAM_URL=server.url).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stream add X", "give --subjects, --mirror or --source"),
        ("stream add X --subjects a --metadata b", "NAME=VALUE"),
        ("stream add X --subjects a --max-bytes much", "is not a size"),
        ("consumer add X", "give the NAME of the consumer, or --ephemeral"),
        ("consumer add X y --pull --target z", "not both"),
        ("consumer add X y --deliver soon", "nor a time"),
        ("consumer add X --ephemeral --export x.yaml", "needs a NAME"),
        ("consumer next X y --nak --term", "not both"),
        ("consumer next X y --raw --json", "not both"),
        ("req a --raw --json", "not both"),
        ("sub a --raw --json", "give one of"),
    ],
)
def test_wrong_usage_names_the_mistake(run: Run, words: str, said: str) -> None:
    result = run(*words.split())
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_next_can_refuse_a_message(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    jet.publish(f"{stream}.a", b"\xff")
    run("consumer", "add", stream, "w")
    (first,) = json_lines(run("consumer", "next", stream, "w", "--nak", "--json"))
    assert (first["data_base64"], first["num_delivered"]) == ("/w==", 1)
    again = run("consumer", "next", stream, "w", "--term", "--raw")
    assert again.stdout_bytes == b"\xff"
    none = run("consumer", "next", stream, "w", "--wait", "300ms")
    assert (none.exit_code, "no message within 0.3 s" in none.stderr) == (1, True)
    assert run("consumer", "next", stream, "missing").exit_code == 3


def test_a_request_that_nothing_answers_is_a_failure(run: Run) -> None:
    result = run("req", "nothing.listens.here", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing.listens.here" in result.stderr


def test_size_estimates_the_memory_for_subjects(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    (planned,) = json_lines(
        run("size", "--subject", "s.12345678", "--payload", "1", "--subjects", "200000", "--json")
    )
    # Measured with nats-server 2.15.1: 323 bytes for each.
    assert planned["index"] == pytest.approx(200_000 * 323, rel=0.05)
    for number in range(5):
        jet.publish(f"{stream}.{number}")
    (live,) = json_lines(run("size", "--live", stream, "--json"))
    assert (live["subjects"], live["index"] > 0) == (5, True)
    assert "memory for the index of 5 subjects, about\t" in run("size", "--live", stream).stdout
    (none,) = json_lines(run("size", "--payload", "1", "--json"))
    assert (none["subjects"], none["index"]) == (None, None)
