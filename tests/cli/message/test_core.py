"""`twinstream reply` and `rtt`, and `consumer edit`."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from click.testing import Result

import js_sync
from tests.cli.output import Run, in_time, json_lines
from tests.cli.terminal import COMMAND, LIMIT
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig
from twinstream.testing import NatsServer


def answer(server: NatsServer, subject: str, data: bytes) -> js_sync.CoreMessage:
    """Send a request until something answers it."""
    deadline = time.monotonic() + LIMIT
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        while True:
            try:
                return nc.request(subject, data, timeout=60)
            except js_sync.NoResponders:
                assert time.monotonic() < deadline, "nothing answered in time"
                time.sleep(0.05)


def test_rtt_measures_pings(run: Run, server: NatsServer) -> None:
    (found,) = json_lines(run("rtt", "3", "--json"))
    seconds = found["seconds"]
    assert found["pings"] == 3
    assert 0 < seconds["least"] <= seconds["median"] <= seconds["most"]
    assert "pings\t5\n" in run("rtt").stdout
    assert run("rtt", "0").exit_code == 2


def test_consumer_edit_changes_the_given_settings_only(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    jet.create_consumer(stream, ConsumerConfig(durable_name="w", filter_subject=f"{stream}.a"))
    words = ("consumer", "edit", stream, "w", "--max-deliver", "5", "--wait", "1m")
    assert run(*words, "--dry-run").stdout.splitlines() == [
        "ack_wait: 30s → 1m",
        "max_deliver: -1 → 5",
    ]
    declined = run(*words, input="n\n")
    assert (declined.exit_code, f"Change {stream}/w?" in declined.stderr) == (1, True)
    assert run(*words, "-f").exit_code == 0
    assert run(*words).stdout == "nothing to change\n"
    filters = ("--filter", f"{stream}.a,{stream}.b")
    (info,) = json_lines(run("consumer", "edit", stream, "w", *filters, "-f", "--json"))
    assert info["config"]["filter_subjects"] == [f"{stream}.a", f"{stream}.b"]
    assert (info["config"]["max_deliver"], info["config"]["ack_wait"]) == (5, 60 * 10**9)
    one = run("consumer", "edit", stream, "w", "--filter", f"{stream}.c", "-f")
    assert one.exit_code == 0, one.stderr
    config = jet.get_consumer(stream, "w").cached_info.config
    assert config is not None
    assert (config.filter_subject, config.filter_subjects) == (f"{stream}.c", None)
    refused = run("consumer", "edit", stream, "w", "--ack", "none", "-f")
    assert refused.exit_code == 1
    assert run("consumer", "edit", stream, "missing", "--max-deliver", "5", "-f").exit_code == 3
    assert run("consumer", "edit", stream, "w").exit_code == 2


def test_reply_needs_an_answer(run: Run) -> None:
    for words in (("a",), ("a", "x", "--echo")):
        result = run("reply", *words)
        assert (result.exit_code, "give DATA or --echo" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "expected"), [(("three",), b"three"), (("--echo",), b"question")], ids=str
)
def test_reply_answers_requests(
    server: NatsServer, words: tuple[str, ...], expected: bytes
) -> None:
    command = [*COMMAND, "reply", "ask.*", *words, "--count", "1", "-H", "Kind: tea"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TWINSTREAM_URL": server.url},
    ) as process:
        try:
            found = answer(server, "ask.me", b"question")
            shown, _ = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert (found.data, found.headers["Kind"]) == (expected, "tea")
    assert shown == "#1  ask.me\nquestion\n"
    assert process.returncode == 0


@pytest.fixture
def answering(server: NatsServer) -> Iterator[None]:
    """A program that answers each request on `ask.several` with the numbers 0, 1 and 2."""
    with js_sync.connect(server.url, **UNHURRIED) as nc, nc.subscribe("ask.several") as asked:
        nc.flush()

        def answer_all() -> None:
            while message := asked.next(timeout=LIMIT):
                for number in range(3):
                    nc.publish(message.reply, b"%d" % number)

        def work() -> None:
            with suppress(js_sync.IterationEnded, js_sync.ConnectionClosed):
                answer_all()

        thread = threading.Thread(target=work)
        thread.start()
        yield
        asked.close()
        thread.join()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "0\n"),
        (("--replies", "2"), "0\n1\n"),
        (("--replies", "3"), "0\n1\n2\n"),
        (("--replies", "0", "--timeout", "2s"), "0\n1\n2\n"),
        (("--replies", "9", "--reply-timeout", "1s", "--timeout", "1h"), "0\n1\n2\n"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("answering")
def test_several_replies_to_one_request(run: Run, words: tuple[str, ...], expected: str) -> None:
    def ask(*more: str, lines: int) -> Result:
        return in_time(
            lambda: run("req", "ask.several", "x", *words, *more),
            lambda result: len(result.stdout.splitlines()) >= lines,
        )

    count = len(expected) // 2
    found = ask(lines=count)
    assert (found.exit_code, found.stdout) == (0, expected), found.output
    assert len(json_lines(ask("--json", lines=count))) == count


def test_a_request_for_several_replies_without_one_fails(run: Run, server: NatsServer) -> None:
    none = run("req", "nothing.listens.here", "x", "--replies", "2", "--timeout", "1h")
    assert none.exit_code == 1
    assert "no responders" in none.stderr
    with js_sync.connect(server.url, **UNHURRIED) as nc, nc.subscribe("ask.silent"):
        nc.flush()
        words = ("req", "ask.silent", "x", "--replies", "0", "--timeout", "300ms", "--json")
        late = in_time(lambda: run(*words), lambda result: "ConnectionFailed" not in result.stderr)
    assert late.exit_code == 1
    assert '"kind":"RequestTimeout"' in late.stderr
    wrong = run("req", "ask.silent", "x", "--reply-timeout", "1s")
    assert (wrong.exit_code, "--reply-timeout needs --replies" in wrong.stderr) == (2, True)


def test_template_words_of_nats_are_named_before_any_request(run: Run) -> None:
    closed = run("reply", "ask.words", "{{Request}}", "--server", "nats://127.0.0.1:1")
    assert closed.stderr.startswith(
        "DATA: {{Request}} is a word of the `nats` command, and is sent as it stands;"
        " --echo answers with the payload of the request\n"
    )
