"""`twinstream consume`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import js_sync
from tests._sync.flow import eventually
from tests.cli.output import Run, in_time, json_lines
from tests.cli.terminal import COMMAND, PATIENT
from tests.hooked import hooked
from tests.soak import LONGEST
from tests.tuned import Tuned
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.models import ConsumerConfig, ConsumerInfo, StreamConfig
from twinstream.testing import NatsServer


@pytest.fixture
def filled(run: Run, stream: str) -> str:
    """A stream with five messages."""
    assert run("pub", f"{stream}.s{{n}}", "text {n}", "-n", "5", "-H", "N: {n}").exit_code == 0
    return stream


def consumers(server: NatsServer, stream: str) -> list[ConsumerInfo]:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        return list(nc.jetstream().get_stream(stream).consumers())


def test_without_a_consumer_all_is_read_and_nothing_left(
    run: Run, server: NatsServer, filled: str
) -> None:
    result = run("consume", filled, "--count", "5", "--wait", "1m")
    assert result.exit_code == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line.startswith("text")] == [
        f"text {n}" for n in range(1, 6)
    ]
    assert f"{filled} 1  {filled}.s1" in result.stdout
    assert "N: 1" in result.stdout
    assert result.stderr == ""
    assert consumers(server, filled) == []


def test_json_has_a_line_for_each_message(run: Run, filled: str) -> None:
    result = run("consume", filled, "--count", "2", "--json")
    assert result.exit_code == 0, result.stderr
    first, second = json_lines(result)
    assert first.pop("time_ns") > 10**18
    assert first == {
        "subject": f"{filled}.s1",
        "stream_name": filled,
        "seq": 1,
        "num_delivered": 1,
        "num_pending": 4,
        "headers": {"N": ["1"]},
        "data": "text 1",
    }
    assert second["data"] == "text 2"


def test_bytes_that_are_no_text_are_base64(run: Run, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "payload.bin"
    file.write_bytes(b"\xff\x00")
    run("pub", f"{stream}.a", "-f", str(file))
    (line,) = json_lines(run("consume", stream, "-n", "1", "--json"))
    assert line["data_base64"] == "/wA="
    assert "data" not in line
    assert "(2 bytes, not text: see --json)" in run("consume", stream, "-n", "1").stdout


def test_control_characters_do_not_reach_the_terminal(run: Run, stream: str) -> None:
    run("pub", f"{stream}.a", "\x1b[2Jboo")
    assert "\\u001b[2Jboo" in run("consume", stream, "-n", "1").stdout


def test_durable_consumer_continues_at_its_position(
    run: Run, server: NatsServer, filled: str
) -> None:
    first = run("consume", filled, "worker", "--create", "-n", "3", "--json")
    assert [line["seq"] for line in json_lines(first)] == [1, 2, 3]
    rest = run("consume", filled, "worker", "--count", "2", "--wait", "1m", "--json")
    assert [line["seq"] for line in json_lines(rest)] == [4, 5]
    (info,) = consumers(server, filled)
    assert info.num_ack_pending == 0


def test_no_ack_leaves_the_messages_pending(run: Run, server: NatsServer, filled: str) -> None:
    result = run("consume", filled, "worker", "--create", "-n", "2", "--no-ack")
    assert result.exit_code == 0
    (info,) = consumers(server, filled)
    assert info.num_ack_pending == 2


@pytest.mark.parametrize(
    ("start", "sequences"), [("all", [1, 2, 3, 4, 5]), ("last", [5]), ("4", [4, 5]), ("new", [])]
)
def test_where_a_new_consumer_starts(
    run: Run, filled: str, start: str, sequences: list[int]
) -> None:
    # Without messages, the command waits in vain.
    ends = ("--count", str(len(sequences)), "--wait", "1m") if sequences else ("--wait", "0.3")
    result = run("consume", filled, "--from", start, *ends, "--json")
    assert [line["seq"] for line in json_lines(result)] == sequences


@pytest.mark.parametrize("worker", [(), ("worker", "--create")], ids=["in order", "durable"])
def test_a_new_consumer_starts_at_a_time(
    run: Run, jet: js_sync.JetStream, filled: str, worker: tuple[str, ...]
) -> None:
    third = jet.get_stream(filled).get_message(3).time.rfc3339()
    result = run("consume", filled, *worker, "--from", third, "-n", "3", "--json")
    assert [line["seq"] for line in json_lines(result)] == [3, 4, 5]
    refused = run("consume", filled, "--from", "2026-01-31T08:00:00")
    assert refused.exit_code == 2
    assert "has no zone" in refused.stderr


def test_settings_of_new_consumers_only_are_refused(run: Run, filled: str) -> None:
    start, subject = ("--from", "4"), ("--subject", f"{filled}.*")
    worker = ("consume", filled, "worker", "-n", "1", "--json")
    (first,) = json_lines(run(*worker, "--create", *start, *subject))
    (second,) = json_lines(run(*worker, "--create", *start, *subject))
    assert [first["seq"], second["seq"]] == [4, 5]
    for other in (["--from", "2"], ["--from", "all"], ["--subject", f"{filled}.s1"]):
        refused = run(*worker, *other)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"worker exists with another {other[0]}" in refused.stderr


def test_filters_pick_subjects(run: Run, filled: str) -> None:
    arguments = ("--subject", f"{filled}.s2", "--subject", f"{filled}.s4")
    result = run("consume", filled, *arguments, "--count", "2", "--wait", "1m", "--json")
    assert [line["seq"] for line in json_lines(result)] == [2, 4]
    wild = run("consume", filled, "--subject", f"{filled}.*", "-n", "1", "--json")
    assert [line["seq"] for line in json_lines(wild)] == [1]


def test_missing_consumer_or_stream_is_reported(run: Run, stream: str) -> None:
    result = run("consume", stream, "nobody")
    assert result.exit_code == 3
    assert "--create" in result.stderr
    result = run("consume", "NO_SUCH_STREAM")
    assert result.exit_code == 3
    assert "stream ls" in result.stderr


@pytest.mark.parametrize("start", ["0", "-1", "yesterday"])
def test_a_start_that_is_none_is_wrong_usage(run: Run, stream: str, start: str) -> None:
    assert run("consume", stream, "--from", start).exit_code == 2
    assert run("consume", stream, "--create").exit_code == 2


@pytest.fixture
def mortal() -> Iterator[NatsServer]:
    """An own server that a test may kill, with a message in stream S."""
    with NatsServer(start_timeout=300) as server:
        with js_sync.connect(server.url, **UNHURRIED) as nc:
            nc.jetstream().create_stream(StreamConfig(name="S", subjects=["s"]))
            nc.jetstream().publish("s", b"one")
        yield server


def after_print(happens: Callable[[], object]) -> AbstractContextManager[None]:
    """Run `happens` when the first message is printed. Message "two" is the last one."""
    once = iter([happens])

    def printed(message: js_sync.Message) -> None:
        next(once, lambda: None)()
        if message.data == b"two":
            signal.raise_signal(signal.SIGINT)

    return hooked("command: message printed", printed)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("consumer", [[], ["w", "--create"]])
def test_ended_server_is_reported_with_the_received_operations(
    mortal: NatsServer, consumer: list[str]
) -> None:
    arguments = ["consume", "S", *consumer, "--wait", "0.1", "--timeout", "1"]
    with after_print(mortal.kill):
        result = in_time(
            lambda: CliRunner().invoke(twinstream, [*arguments, "--server", mortal.url]),
            lambda result: result.stdout,
        )
    assert result.exit_code == 1
    assert "error: the connection to the server is lost" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("consumer", [[], ["w", "--create"]])
def test_read_continues_after_the_server_restarts(mortal: NatsServer, consumer: list[str]) -> None:
    """The server is down for longer than the timeout of requests. It then gets another message."""
    looks: list[bool] = []
    # Once: a connection that waits for its next attempt is looked at more often.
    begin_again = iter([mortal.start])

    def looked(found: bool) -> None:
        looks.append(found)
        # Each of these looks comes after a wait for a message.
        if looks[-3:] == [False, False, False]:
            for start in begin_again:
                start()
                with js_sync.connect(mortal.url, **UNHURRIED) as nc:
                    nc.jetstream().publish("s", b"two")

    arguments = ["consume", "S", *consumer, "--timeout", "0.5"]
    with after_print(mortal.kill), hooked("command: connection checked", looked):
        result = in_time(
            lambda: CliRunner().invoke(twinstream, [*arguments, "--json", "--server", mortal.url]),
            lambda result: result.stdout,
        )
    assert result.exit_code == 0, result.stderr
    seen = [line["data"] for line in json_lines(result)]
    # A server that is killed may forget what it delivered to a consumer.
    assert (seen if consumer == [] else [seen[0], seen[-1]]) == ["one", "two"]
    *notes, lost, back = result.stderr.splitlines()
    if notes:
        # The server had left when the consumer's message was acknowledged.
        assert consumer
        assert notes == ["1 was not acknowledged and will be redelivered"]
    assert "is lost" in lost
    assert "is restored" in back


@pytest.mark.skipif(os.name != "posix", reason="a server reloads after a signal")
@pytest.mark.parametrize("consumer", [[], ["w", "--create"]])
def test_failed_wait_ends_with_an_error(
    server_factory: Callable[..., NatsServer], consumer: list[str]
) -> None:
    account = (
        "no_auth_user: a\naccounts {{A {{jetstream: {}, users: [{{user: a, password: b}}]}}}}\n"
    )
    server = server_factory(account.format("enabled"))
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().create_stream(StreamConfig(name="S", subjects=["s"]))
        nc.jetstream().publish("s", b"one")
    arguments = [
        "consume",
        "S",
        *consumer,
        "--wait",
        "0.5",
        *PATIENT,
        "--json",
        "--server",
        server.url,
    ]
    with after_print(lambda: server.reload(account.format("disabled"))):
        result = CliRunner().invoke(twinstream, arguments)
    assert [line["seq"] for line in json_lines(result)] == [1]
    assert result.exit_code == 1
    # The end of the wait may interrupt the last attempt to create a consumer.
    failure = json.loads(result.stderr.splitlines()[-1])
    assert failure["kind"] in ("JetStreamNotEnabled", "NoResponders", "RequestTimeout")


def test_message_with_a_lost_acknowledgement_is_named(mortal: NatsServer) -> None:
    arguments = ["consume", "S", "w", "--create", "--count", "1", *PATIENT]
    with after_print(mortal.kill):
        result = CliRunner().invoke(twinstream, [*arguments, "--server", mortal.url])
    assert result.exit_code == 1
    assert "1 was not acknowledged and will be redelivered" in result.stderr


def test_requested_number_of_messages_is_not_exceeded(
    run: Run, server: NatsServer, filled: str
) -> None:
    assert run("consume", filled, "w", "--create", "--count", "2").exit_code == 0
    (info,) = consumers(server, filled)
    assert (info.num_pending, info.num_ack_pending, info.ack_floor.stream_seq) == (3, 0, 2)


def broken() -> None:
    raise BrokenPipeError


@pytest.mark.parametrize(("settings", "taken"), [({}, 16), ({"max_bytes": 1000}, 1)])
def test_few_long_messages_are_requested_at_once(
    tuned: Tuned,
    run: Run,
    server: NatsServer,
    stream: str,
    settings: dict[str, int],
    taken: int,
) -> None:
    """A server disconnects a client with too many pending bytes."""

    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        requests = ((f"{stream}.a", b"x" * 1_000_000) for _ in range(20))
        assert len(list(jet.publish_many(requests))) == 20
        config = ConsumerConfig(durable_name="w", ack_policy="explicit", **settings)
        jet.get_stream(stream).create_consumer(config)
    # On a busy machine so many bytes take longer than is waited for them otherwise.
    tuned("command glance", 10.0)
    with after_print(broken):
        assert run("consume", stream, "w").exit_code == 1
    (info,) = consumers(server, stream)
    assert info.delivered is not None
    assert info.delivered.consumer_seq == taken
    assert run("consume", stream, "w", "--count", "20").stderr == ""


@pytest.mark.parametrize(
    ("settings", "taken"), [({}, 5), ({"max_batch": 3}, 3), ({"max_deliver": 9}, 1)]
)
def test_unprinted_messages_are_returned_at_once(
    tuned: Tuned,
    run: Run,
    server: NatsServer,
    filled: str,
    settings: dict[str, int],
    taken: int,
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        config = ConsumerConfig(durable_name="w", ack_policy="explicit", **settings)
        consumer = nc.jetstream().get_stream(filled).create_consumer(config)
        # A busy server may send the first of them late.
        tuned("command glance", 60.0)
        with after_print(broken):
            assert run("consume", filled, "w").exit_code == 1
        rest = [consumer.next(timeout=60) for _ in range(5)]
        deliveries = {
            each.metadata.stream_seq: each.metadata.num_delivered for each in rest if each
        }
        assert deliveries == {seq: 2 if seq <= taken else 1 for seq in range(1, 6)}


_LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
from twinstream.cli.main import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_partly_written_output_is_not_acknowledged(
    server: NatsServer, filled: str, tmp_path: Path, unbuffered: str
) -> None:
    command = [
        sys.executable,
        "-c",
        _LIMITED,
        *PATIENT,
        "consume",
        filled,
        "w",
        "--create",
        "--json",
    ]
    options = {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "out").open("w+") as out:
        done = subprocess.run(
            [*command, "--server", server.url],
            stdout=out,
            stderr=subprocess.PIPE,
            env={**os.environ, **options},
        )
        out.seek(0)
        *whole, part = out.read().split("\n")
    assert part
    assert done.returncode == 1
    assert json.loads(done.stderr)["kind"] == "OSError"
    (info,) = consumers(server, filled)
    assert info.ack_floor.stream_seq == len(whole)


@pytest.mark.parametrize("others", [0, 1])
def test_no_message_waits_for_others_that_may_not_be_delivered(
    run: Run, server: NatsServer, jet: js_sync.JetStream, filled: str, others: int
) -> None:
    config = ConsumerConfig(durable_name="w", ack_policy="explicit", max_ack_pending=3)
    consumer = jet.get_stream(filled).create_consumer(config)
    for _ in range(others):
        assert consumer.next(timeout=60) is not None
    with heard(server, f"$JS.API.CONSUMER.MSG.NEXT.{filled}.w") as pulls:
        result = run("consume", filled, "w", "--count", "4", "--json")
        seen = [line["seq"] for line in json_lines(result)]
        assert (result.exit_code, seen) == (0, [seq + others for seq in range(1, 5)])
        requests = [json.loads(pull.data) for pull in pulls()]
    several = [request["expires"] for request in requests if request.get("batch", 1) > 1]
    assert several
    assert all(nanoseconds < 100_000_000 for nanoseconds in several)


@contextmanager
def heard(server: NatsServer, subject: str) -> Iterator[Callable[[], list[js_sync.CoreMessage]]]:
    """Yield a function that returns the messages on a subject since the block began."""
    with js_sync.connect(server.url, **UNHURRIED) as nc, nc.subscribe(subject) as subscription:
        nc.flush()

        def so_far() -> list[js_sync.CoreMessage]:
            nc.flush()
            return [subscription.next() for _ in range(subscription.buffered)]

        yield so_far


def test_what_others_have_by_now_is_not_given_back(
    tuned: Tuned, run: Run, server: NatsServer, jet: js_sync.JetStream, filled: str
) -> None:
    config = ConsumerConfig(durable_name="w", ack_policy="explicit", ack_wait=timedelta(seconds=1))
    consumer = jet.get_stream(filled).create_consumer(config)
    deliveries: dict[int, int] = {}
    tuned("command glance", 60.0)

    def others_have_all() -> bool:
        for each in consumer.fetch(5, timeout=10):
            deliveries[each.metadata.stream_seq] = each.metadata.num_delivered
        return len(deliveries) == 5

    def broken(message: js_sync.Message) -> None:
        eventually(others_have_all, patience=LONGEST)
        assert min(deliveries.values()) >= 2
        eventually(lambda: message.is_late, patience=LONGEST)
        raise BrokenPipeError

    with (
        heard(server, f"$JS.ACK.{filled}.>") as acknowledged,
        hooked("command: message printed", broken),
    ):
        assert run("consume", filled, "w").exit_code == 1
        assert acknowledged() == []


def test_without_acknowledgements_no_more_is_lost_than_was_not_printed(
    run: Run, server: NatsServer, filled: str
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        config = ConsumerConfig(durable_name="w", ack_policy="none")
        consumer = nc.jetstream().get_stream(filled).create_consumer(config)
        with after_print(broken):
            assert run("consume", filled, "w").exit_code == 1
        message = consumer.next(timeout=60)
        assert message is not None
        assert message.metadata.stream_seq == 2


def test_a_work_queue_is_read_through_a_consumer(run: Run, server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="QUEUE", subjects=["QUEUE.*"], retention="workqueue"))
    result = run("consume", "QUEUE", "--wait", "1")
    assert result.exit_code == 1
    assert "give its name (`twinstream consumer ls QUEUE` lists consumers)" in result.stderr
    failure = json.loads(run("consume", "QUEUE", "--wait", "1", "--json").stderr)
    assert (failure["kind"], failure["err_code"]) == ("JetStreamError", 10084)


@pytest.mark.since("2.11")
def test_pause_is_reported(run: Run, filled: str) -> None:
    assert run("consume", filled, "w", "--create", "--count", "1").stderr == ""
    assert run("consumer", "pause", filled, "w", "1h").exit_code == 0
    paused = run("consume", filled, "w", "--wait", "0.1")
    assert (paused.exit_code, paused.stdout) == (0, "")
    assert "w is paused for " in paused.stderr
    assert f"`twinstream consumer resume {filled} w` ends that\n" in paused.stderr


def test_ctrl_c_ends_in_good_order(server: NatsServer, filled: str) -> None:
    command = [
        *COMMAND,
        "consume",
        filled,
        "tail",
        "--create",
        "--json",
    ]
    with subprocess.Popen(
        [*command, "--server", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(5):
            assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONGEST) == 0
        assert process.stdout.read() == ""
        assert process.stderr.read() == ""
    (info,) = consumers(server, filled)
    assert info.num_ack_pending == 0


def test_a_consumer_with_groups_is_read_for_one_of_them(
    run: Run, jet: js_sync.JetStream, filled: str
) -> None:
    config = ConsumerConfig(
        durable_name="c", priority_policy="pinned_client", priority_groups=["main"]
    )
    jet.create_consumer(filled, config)
    result = run("consume", filled, "c", "--group", "main", "--count", "5")
    assert result.exit_code == 0, result.stderr
    assert "text 5" in result.stdout
    refused = run("consume", filled, "c", "--wait", "0.3")
    assert refused.exit_code == 1
    assert "Priority Group" in refused.stderr
    for wrong in (("c", "--group", "a b"), ("--group", "main")):
        assert run("consume", filled, *wrong).exit_code == 2
