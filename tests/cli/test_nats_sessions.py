"""Two tutorials of the `nats` command, line by line: only the name of the program differs.

Numbers and states are compared with those that the server reports, not the layout.
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import Result

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import COMMAND, LIMIT, on_terminal
from twinstream.models import ConsumerInfo, StreamInfo
from twinstream.testing import NatsServer


class Session:
    """Runs lines that begin with `nats`, and answers questions with yes."""

    def __init__(self, run: Run, jet: js_sync.JetStream) -> None:
        self._run = run
        self._jet = jet

    def __call__(self, line: str) -> Result:
        """Run a line, which must succeed."""
        program, *words = shlex.split(line)
        assert program == "nats"
        done = self._run(*words, input="y\n")
        assert done.exit_code == 0, done.output
        return done

    def answer(self, line: str) -> dict[str, Any]:
        """Run a request, and return the answer of the stream."""
        answered: dict[str, Any] = json.loads(self(line).stdout)
        return answered

    def stream(self, line: str) -> StreamInfo:
        """Show a stream. Every number on the page is that of the server."""
        page = fields(self(line).stdout)
        info = self._jet.get_stream(shlex.split(line)[3]).info()
        assert page["messages"] == str(info.state.messages)
        assert page["size"] == str(info.state.bytes)
        assert page["sequences"] == f"{info.state.first_seq} to {info.state.last_seq}"
        return info

    def consumer(self, line: str) -> ConsumerInfo:
        """Show a consumer. Every number on the page is that of the server."""
        page = fields(self(line).stdout)
        info = self._jet.get_consumer(*shlex.split(line)[3:5]).info()
        assert info.delivered is not None
        assert info.ack_floor is not None
        assert page["delivered up to, of the consumer"] == str(info.delivered.consumer_seq)
        assert page["delivered up to, in the stream"] == str(info.delivered.stream_seq)
        assert page["acknowledged up to, of the consumer"] == str(info.ack_floor.consumer_seq)
        assert page["acknowledged up to, in the stream"] == str(info.ack_floor.stream_seq)
        assert page["ack pending"] == str(info.num_ack_pending)
        assert page["redelivered"] == str(info.num_redelivered)
        assert page["pending"] == str(info.num_pending)
        return info


def fields(page: str) -> dict[str, str]:
    """Return the names and values of a page in a pipe."""
    return dict(line.split("\t", 1) for line in page.splitlines() if line.count("\t") == 1)


def places(info: ConsumerInfo) -> tuple[int | None, ...]:
    """Return the sequences that are delivered and acknowledged, of the consumer and the stream."""
    assert info.delivered is not None
    assert info.ack_floor is not None
    return (
        info.delivered.consumer_seq,
        info.delivered.stream_seq,
        info.ack_floor.consumer_seq,
        info.ack_floor.stream_seq,
    )


@pytest.fixture
def nats(run: Run, jet: js_sync.JetStream) -> Session:
    return Session(run, jet)


def test_infinite_deduplication(nats: Session, server: NatsServer, jet: js_sync.JetStream) -> None:
    answers = ["foo.*", "file", "1", "limits", "new", "-1", "1", "-1", "-1s", "-1", "0", "", "", ""]
    answers[8] = "0"
    made = on_terminal(
        shlex.split("stream add dedup --discard-per-subject"),
        120,
        "".join(f"{answer}\n" for answer in answers),
        TWINSTREAM_URL=server.url,
    )
    assert made.code == 0, made.out
    config = jet.get_stream("dedup").cached_info.config
    assert (config.subjects, config.discard, config.storage) == (["foo.*"], "new", "file")
    assert (config.discard_new_per_subject, config.max_msgs_per_subject) == (True, 1)
    assert (config.max_msgs, config.max_bytes, config.max_age) == (-1, -1, timedelta(0))
    assert (config.allow_rollup_hdrs, config.deny_delete, config.deny_purge) == (False,) * 3

    assert nats.answer("nats req foo.1 one") == {"stream": "dedup", "seq": 1}
    assert nats.answer("nats req foo.2 one") == {"stream": "dedup", "seq": 2}
    assert nats.answer("nats req foo.1 two")["error"]["err_code"] == 10077
    nats("nats stream rmm dedup 2")
    assert nats.answer("nats req foo.2 two") == {"stream": "dedup", "seq": 3}
    assert "dedup" in nats("nats stream ls").stdout


def test_retention_and_acknowledgement(nats: Session) -> None:
    nats("nats stream add ORDERS --subjects ORDERS.* --defaults")
    for number in (1, 2, 3, 4):
        found = nats.answer(f"nats req -H Nats-Msg-Id:1 ORDERS.new hello{number}")
        assert (found["seq"], found.get("duplicate", False)) == (1, number > 1)
    assert nats.stream("nats stream info ORDERS").state.messages == 1

    nats("nats stream purge ORDERS")
    nats("nats consumer add ORDERS DISPATCH --pull --ack explicit --deliver new --defaults")
    state = nats.stream("nats str info ORDERS").state
    assert (state.messages, state.bytes, state.consumer_count) == (0, 0, 1)
    assert places(nats.consumer("nats con info ORDERS DISPATCH")) == (0, 1, 0, 1)

    nats('nats pub ORDERS.processed "order 4"')
    assert nats.stream("nats str info ORDERS").state.messages == 1
    assert "order 4" in nats("nats con next ORDERS DISPATCH").stdout
    info = nats.consumer("nats con info ORDERS DISPATCH")
    assert (*places(info), info.num_ack_pending, info.num_redelivered) == (1, 2, 1, 2, 0, 0)

    nats('nats pub ORDERS.processed "order 5"')
    assert "order 5" in nats("nats consumer next ORDERS DISPATCH --no-ack").stdout
    info = nats.consumer("nats consumer info ORDERS DISPATCH")
    assert (*places(info), info.num_ack_pending, info.num_redelivered) == (2, 3, 1, 2, 1, 0)
    nats("nats consumer ls ORDERS")


def test_a_message_is_delivered_again(nats: Session) -> None:
    nats("nats stream add AGAIN --subjects AGAIN.* --defaults")
    nats("nats consumer add AGAIN DISPATCH --pull --ack explicit --wait 500ms --defaults")
    nats('nats pub AGAIN.processed "order 5"')
    for number in (1, 2):
        line = "nats consumer next AGAIN DISPATCH --no-ack --wait 60s"
        assert "order 5" in nats(line).stdout
        info = nats.consumer("nats consumer info AGAIN DISPATCH")
        assert places(info)[:3] == (number, 1, 0)
        assert (info.num_ack_pending, info.num_redelivered) == (1, number - 1)
    assert "order 5" in nats("nats consumer next AGAIN DISPATCH --wait 60s").stdout
    info = nats.consumer("nats consumer info AGAIN DISPATCH")
    assert (*places(info), info.num_ack_pending) == (3, 1, 3, 1, 0)


def test_starting_positions(nats: Session, jet: js_sync.JetStream) -> None:
    nats("nats stream add POSITIONS --subjects POSITIONS.* --defaults")
    nats('nats pub POSITIONS.processed "order {n}" --count 100')
    options = "--pull --filter POSITIONS.processed --ack none --replay instant"
    for name, start, order in (("ALL", "all", 1), ("LAST", "last", 100), ("TEN", "10", 10)):
        nats(f"nats consumer add POSITIONS {name} {options} --deliver {start}")
        shown = nats(f"nats consumer next POSITIONS {name}").stdout
        assert shown.splitlines()[-1] == f"order {order}"

    before = datetime.now(UTC)
    nats(f"nats consumer add POSITIONS 2MIN {options} --deliver 2m")
    after = datetime.now(UTC)
    config = jet.get_consumer("POSITIONS", "2MIN").cached_info.config
    assert config is not None
    assert config.opt_start_time is not None
    begin = timedelta(minutes=2)
    assert before - begin <= config.opt_start_time <= after - begin
    assert nats("nats consumer next POSITIONS 2MIN").stdout.splitlines()[-1] == "order 1"

    nats("nats stream purge POSITIONS")
    assert nats.stream("nats stream info POSITIONS").state.first_seq == 101


@contextmanager
def subscribed(server: NatsServer, words: str) -> Generator[subprocess.Popen[str]]:
    """Run `sub`, whose standard error is a terminal, and wait until it listens."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "sub", *words.split()],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env=os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"},
    ) as process:
        watch = threading.Timer(LIMIT, process.kill)
        watch.start()
        try:
            shown = b""
            while b"listening on" not in shown:
                shown += os.read(ours, 1 << 12)
            yield process
        finally:
            watch.cancel()
            process.kill()
            os.close(ours)
            os.close(theirs)


def test_pushed_consumers(nats: Session, server: NatsServer, jet: js_sync.JetStream) -> None:
    nats("nats stream add PUSHED --subjects PUSHED.* --defaults")
    nats('nats pub PUSHED.processed "order {n}" --count 2')
    with subscribed(server, "my.monitor --count 1") as monitor:
        nats(
            "nats consumer add PUSHED --filter '' --ack none --target 'my.monitor' --deliver last"
            " --replay instant --ephemeral"
        )
        assert monitor.stdout is not None
        assert monitor.stdout.read().splitlines()[-1] == "order 2"
    with subscribed(server, "-t out.original --count 2") as original:
        nats(
            "nats consumer add PUSHED REPLAY --target out.original --filter PUSHED.processed"
            " --ack none --deliver all --sample 100 --replay original"
        )
        assert original.stdout is not None
        lines = original.stdout.read().splitlines()
    assert [line.split("  ")[1:] for line in lines[::2]] == [
        ["#1", "PUSHED.processed"],
        ["#2", "PUSHED.processed"],
    ]
    assert lines[1::2] == ["order 1", "order 2"]
    config = jet.get_consumer("PUSHED", "REPLAY").cached_info.config
    assert config is not None
    assert (config.replay_policy, config.sample_freq) == ("original", "100")
    page = fields(nats("nats consumer info PUSHED REPLAY").stdout)
    assert (page["sample_freq"], page["replay_policy"]) == ("100", "original")


def test_ages_count_back_from_now(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    jet.publish(f"{stream}.a", b"old")
    time.sleep(1.1)
    jet.publish(f"{stream}.a", b"new")
    for words in (
        ("get", stream, "--from", "1h"),
        ("get", stream, "--since", "1h"),
        ("consume", stream, "--from", "2m", "--count", "2", "--wait", "1m"),
        ("consume", stream, "--since", "1h", "--count", "2", "--wait", "1m"),
    ):
        found = [line["data"] for line in json_lines(run(*words, "--json"))]
        assert found == ["old", "new"]
    assert run("get", stream, "--from", "1ms", "--json").stdout == ""
    both = run("get", stream, "--since", "1h", "--from", "3")
    assert (both.exit_code, "not both" in both.stderr) == (2, True)
    assert run("get", stream, "--since", "3").exit_code == 2
