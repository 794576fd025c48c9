"""`twinstream replay`: a range of a stream into another server."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from attrs import evolve

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import COMMAND, LIMIT
from tests.conftest import VERSION
from tests.unhurried import UNHURRIED
from twinstream.cli.failures import Failure
from twinstream.cli.replay.masking import Masks
from twinstream.cli.replay.transfer import Transfer
from twinstream.errors import BadPayload, ConnectionLost
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports

pytestmark = pytest.mark.since("2.11")
_numbers = itertools.count(1)

ACCOUNTS = """
accounts {
    A: { jetstream: enabled, users: [ { user: a, password: p } ] }
    B: { jetstream: enabled, users: [ { user: b, password: p } ] }
}
"""


@pytest.fixture(scope="module")
def other(server: NatsServer) -> Iterator[NatsServer]:
    """Another server with the version of the first one."""
    with NatsServer(version=VERSION, start_timeout=300) as made:
        yield made


@pytest.fixture
def far(other: NatsServer) -> Iterator[js_sync.JetStream]:
    with js_sync.connect(other.url, **UNHURRIED) as nc:
        yield nc.jetstream()


@pytest.fixture
def names() -> tuple[str, str]:
    """The name of a stream, which is the first token of its subjects, and of the other stream."""
    name = f"REPLAY{next(_numbers)}"
    return name, f"{name}-COPY"


@pytest.fixture
def filled(
    jet: js_sync.JetStream, far: js_sync.JetStream, names: tuple[str, str]
) -> tuple[str, str]:
    """A stream with five messages, one of which was deleted, and an empty stream elsewhere."""
    name, copy = names
    stream = jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    far.create_stream(StreamConfig(name=copy, subjects=[f"{name}.>"], storage="memory"))
    far.publish(f"{name}.before", b"of another client")
    for number in range(1, 6):
        body = {"id": number, "email": f"{number}@x", "customer": {"email": "y", "age": 1.50}}
        jet.publish(
            f"{name}.{number % 2}",
            json.dumps(body).encode(),
            headers={"Kind": ["a", "b"]},
            msg_id=f"{name}-{number}",
        )
    stream.delete_message(2)
    return name, copy


def stored(jet: js_sync.JetStream, name: str) -> list[js_sync.StreamMessage]:
    return list(jet.bind_stream(name).read(2))


def test_a_range_is_the_same_elsewhere(
    run: Run, other: NatsServer, far: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, copy = filled
    done = run("replay", name, "--to", other.url, "--speed", "max", "--json")
    (found,) = json_lines(done)
    seconds = found.pop("seconds")
    assert (done.exit_code, found, seconds >= 0) == (
        0,
        {
            "stream": name,
            "target_stream": copy,
            "messages": 4,
            "duplicates": 0,
            "target_first_seq": 2,
            "target_last_seq": 5,
            "masked": {},
        },
        True,
    )
    copied = stored(far, copy)
    assert [(each.subject, each.json()["id"]) for each in copied] == [
        (f"{name}.1", 1),
        (f"{name}.1", 3),
        (f"{name}.0", 4),
        (f"{name}.1", 5),
    ]
    assert copied[0].headers.get_all("Kind") == ["a", "b"]
    assert copied[0].headers["Nats-Msg-Id"] == f"{name}-1"
    again = run("replay", name, "--to", other.url, "--speed", "0")
    assert (again.exit_code, again.stdout) == (0, f"{name} has no new message in this range\n")
    assert f"4 messages not stored again: {copy} has the message ids already" in again.stderr


def test_a_part_of_a_stream_with_masked_members(
    run: Run, other: NatsServer, far: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, copy = filled
    words = ("--from", "3", "--until", "5", "--mask", "customer.email", "--mask", "id")
    done = run("replay", name, "--to", other.url, *words, "--mask", "none", "--speed", "max")
    assert done.exit_code == 1, done.output
    assert done.stdout.splitlines() == [
        f"replayed 2 messages of {name} into {copy}, as sequences 2 to 3",
        "masked 2 members customer.email",
        "masked 2 members id",
        "masked 0 members none",
    ]
    assert "error: no message has a member 'none'" in done.stderr
    assert [each.data for each in stored(far, copy)] == [
        b'{"id": 0, "email": "3@x", "customer": {"email": "***", "age": 1.5}}',
        b'{"id": 0, "email": "4@x", "customer": {"email": "***", "age": 1.5}}',
    ]
    one = run("replay", name, "--to", other.url, "--subject", f"{name}.0", "--speed", "max")
    assert "1 message not stored again" in one.stderr


def test_what_is_not_json_is_not_sent_unmasked(
    run: Run,
    jet: js_sync.JetStream,
    other: NatsServer,
    far: js_sync.JetStream,
    filled: tuple[str, str],
) -> None:
    name, copy = filled
    jet.publish(f"{name}.text", b"email: 6@x")
    words = ("--to", other.url, "--mask", "email", "--speed", "max")
    refused = run("replay", name, *words)
    assert refused.exit_code == 1
    assert f"message 6 ({name}.text) cannot be masked: it is not JSON" in refused.stderr
    assert "4 messages up to sequence 5 (" in refused.stderr
    assert "--from 6 replays the rest" in refused.stderr
    assert len(stored(far, copy)) == 4


def test_messages_in_flight_count_when_one_cannot_be_masked(
    run: Run, jet: js_sync.JetStream, other: NatsServer, far: js_sync.JetStream
) -> None:
    name = f"REPLAY{next(_numbers)}"
    for each in (jet, far):
        each.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    with jet.publisher() as publisher:
        for number in range(200):
            publisher.send(f"{name}.a", b'{"email": "x", "n": %d}' % number)
    jet.publish(f"{name}.a", b"text")
    refused = run("replay", name, "--to", other.url, "--mask", "email", "--speed", "max")
    assert refused.exit_code == 1
    assert f"message 201 ({name}.a) cannot be masked" in refused.stderr
    assert "200 messages up to sequence 200 (" in refused.stderr
    assert f"are stored in {name}; --from 201 replays the rest" in refused.stderr
    assert far.bind_stream(name).info().state.messages == 200


def test_an_error_of_the_read_says_how_far_it_came(
    jet: js_sync.JetStream, far: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, copy = filled
    lost = ConnectionLost("the source is gone")

    def broken() -> Iterator[js_sync.StreamMessage]:
        yield from jet.bind_stream(name).read()
        raise lost

    with pytest.raises(Failure, match="the source is gone; 4 messages up to sequence 5") as raised:
        Transfer(Masks([]), 0, Event()).send(broken(), far, copy, lambda: None)
    assert raised.value.__cause__ is lost


def test_a_comparison_that_fails_says_what_is_stored(
    jet: js_sync.JetStream, far: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, copy = filled
    transfer = Transfer(Masks([]), 0, Event())
    assert transfer.send(jet.bind_stream(name).read(), far, copy, lambda: None)
    target = far.bind_stream(copy)
    far.delete_stream(copy)
    text = (
        f"all 4 messages are stored in {copy}, as sequences 2 to 5; they were compared up to"
        " sequence 1"
    )
    with pytest.raises(Failure, match=text):
        transfer.differences(target)


def test_a_message_that_cannot_be_sent_ends_the_replay(
    jet: js_sync.JetStream, far: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, copy = filled
    messages = list(jet.bind_stream(name).read())
    messages[2] = evolve(messages[2], subject="not a subject")
    text = r"message 4 \(not a subject\) cannot be sent: .*; 2 messages up to sequence 3 .*--from 4"
    with pytest.raises(Failure, match=text):
        Transfer(Masks([]), 0, Event()).send(messages, far, copy, lambda: None)
    assert len(stored(far, copy)) == 2


def test_the_distances_in_time(
    run: Run,
    jet: js_sync.JetStream,
    other: NatsServer,
    far: js_sync.JetStream,
    filled: tuple[str, str],
) -> None:
    name, copy = filled
    time.sleep(1)
    jet.publish(f"{name}.late", b"{}")
    original = list(jet.bind_stream(name).read())
    assert run("replay", name, "--to", other.url, "--speed", "2").exit_code == 0
    copied = stored(far, copy)
    distance = original[-1].time.ns - original[0].time.ns
    assert copied[-1].time.ns - copied[0].time.ns >= distance * 0.4


def test_the_other_stream_has_to_take_the_subjects(
    run: Run, jet: js_sync.JetStream, other: NatsServer, far: js_sync.JetStream
) -> None:
    name = f"REPLAY{next(_numbers)}"
    jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    for subject in ("a.1", "a.2", "b"):
        jet.publish(f"{name}.{subject}", b"x")
    words = ("replay", name, "--to", other.url, "--speed", "max")
    none = run(*words)
    assert (none.exit_code, f"takes {name}.>: create one" in none.stderr) == (1, True)
    far.create_stream(StreamConfig(name=f"{name}-A", subjects=[f"{name}.a.*"], storage="memory"))
    some = run(*words)
    assert some.exit_code == 1
    assert f"stream {name}-A of {other.url} does not take {name}.b, which {name} has" in some.stderr
    assert run(*words, "--subject", f"{name}.a.>").exit_code == 0
    far.create_stream(StreamConfig(name=f"{name}-B", subjects=[f"{name}.b"], storage="memory"))
    two = run(*words)
    assert two.exit_code == 1
    assert f"({name}-A, {name}-B)" in two.stderr
    assert run("replay", "NO_STREAM", "--to", other.url).exit_code == 3


def test_what_the_other_stream_drops_is_reported(
    run: Run, jet: js_sync.JetStream, other: NatsServer, far: js_sync.JetStream
) -> None:
    name = f"REPLAY{next(_numbers)}"
    jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    for _ in range(3):
        jet.publish(f"{name}.a", b"x")
    far.create_stream(
        StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory", max_msgs_per_subject=1)
    )
    done = run("replay", name, "--to", other.url, "--speed", "max")
    assert done.exit_code == 1
    assert "2 messages no longer stored, the first is sequence 1 of the source" in done.stderr


def test_a_message_that_is_refused_ends_the_replay(
    run: Run, jet: js_sync.JetStream, other: NatsServer, far: js_sync.JetStream
) -> None:
    name = f"REPLAY{next(_numbers)}"
    jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    for size in (10, 20, 3000, 30):
        jet.publish(f"{name}.a", b"x" * size)
    far.create_stream(
        StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory", max_msg_size=1000)
    )
    done = run("replay", name, "--to", other.url, "--speed", "max", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    error = json.loads(done.stderr)["error"]
    assert f"message 3 ({name}.a) was not acknowledged: " in error
    assert "2 messages up to sequence 2 (" in error
    assert "--from 3 replays the rest" in error


def test_never_into_the_own_server(
    run: Run, server: NatsServer, jet: js_sync.JetStream, filled: tuple[str, str]
) -> None:
    name, _ = filled
    same = server.url.replace("127.0.0.1", "localhost")
    refused = run("replay", name, "--to", same, "--speed", "max")
    assert refused.exit_code == 1
    assert f"{same} is the server of {name} itself" in refused.stderr
    assert "--yes" in refused.stderr
    assert jet.bind_stream(name).info().state.last_seq == 5
    assert run("replay", name, "--to", same, "--speed", "max", "--yes").exit_code == 0


def test_never_into_a_server_behind_a_leaf_node(run: Run) -> None:
    [port] = free_ports(1)
    hub_config = f'leafnodes {{ listen: "127.0.0.1:{port}" }}'
    leaf_config = f'leafnodes {{ remotes [ {{ url: "nats-leaf://127.0.0.1:{port}" }} ] }}'
    with (
        NatsServer(hub_config, VERSION, domain="hub", start_timeout=300) as hub,
        NatsServer(leaf_config, VERSION, domain="leaf", start_timeout=300) as leaf,
        js_sync.connect(hub.url, **UNHURRIED) as upper,
        js_sync.connect(leaf.url, **UNHURRIED) as lower,
    ):
        _wait_until_connected(upper, lower)
        for nc, name in ((upper, "UPPER"), (lower, "LOWER")):
            config = StreamConfig(name=name, subjects=["s.>"], storage="memory")
            nc.jetstream().create_stream(config)
        lower.jetstream().publish("s.a", b"x")
        before = lower.jetstream().bind_stream("LOWER").info().state.last_seq
        done = run("replay", "LOWER", "--server", leaf.url, "--to", hub.url, "--speed", "max")
        assert done.exit_code == 1
        assert f"{hub.url} is the server of LOWER itself, or connected to it" in done.stderr
        assert lower.jetstream().bind_stream("LOWER").info().state.last_seq == before


def _wait_until_connected(sender: js_sync.Connection, receiver: js_sync.Connection) -> None:
    """Wait until messages of a connection reach the other one."""
    deadline = time.monotonic() + LIMIT
    with receiver.subscribe("connected") as arrived:
        while True:
            sender.publish("connected")
            if arrived.next(timeout=0.1) is not None:
                return
            assert time.monotonic() < deadline


def test_no_password_of_several_addresses_is_shown(
    run: Run, server: NatsServer, names: tuple[str, str], jet: js_sync.JetStream
) -> None:
    name, _ = names
    jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
    place = server.url.removeprefix("nats://")
    url = f"nats://bob:secret1@{place},nats://bob:secret2@{place}"
    refused = run("replay", name, "--to", url, "--speed", "max")
    assert refused.exit_code == 1
    assert f"nats://{place},nats://{place} is the server of" in refused.stderr
    assert "secret" not in refused.output


def test_another_account_of_the_server_is_another_place(
    run: Run, server: NatsServer, tmp_path: Path
) -> None:
    with NatsServer(ACCOUNTS, VERSION, start_timeout=300) as shared:
        first, second = (shared.url.replace("://", f"://{user}:p@") for user in "ab")
        for url in (first, second):
            with js_sync.connect(url, **UNHURRIED) as nc:
                config = StreamConfig(name="S", subjects=["s.>"], storage="memory")
                nc.jetstream().create_stream(config)
        with js_sync.connect(first, **UNHURRIED) as nc:
            nc.jetstream().publish("s.a", b"x")
        own = run("replay", "S", "--server", first, "--to", first, "--speed", "max")
        assert own.exit_code == 1
        assert "a:p" not in own.stderr
        done = run("replay", "S", "--server", first, "--to", second, "--speed", "max")
        assert done.exit_code == 0, done.output
        with js_sync.connect(second, **UNHURRIED) as nc:
            assert nc.jetstream().bind_stream("S").info().state.messages == 1


def test_an_interrupt_says_how_far_it_came(
    server: NatsServer,
    jet: js_sync.JetStream,
    other: NatsServer,
    far: js_sync.JetStream,
    filled: tuple[str, str],
) -> None:
    name, copy = filled
    time.sleep(1)
    jet.publish(f"{name}.late", b"{}")
    words = ["--server", server.url, "--to", other.url, "--speed", "0.0001"]
    with subprocess.Popen(
        [*COMMAND, "replay", name, *words], stderr=subprocess.PIPE, text=True
    ) as sending:
        deadline = time.monotonic() + LIMIT
        while far.bind_stream(copy).info().state.messages < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        sending.send_signal(signal.SIGINT)
        _, err = sending.communicate(timeout=LIMIT)
    assert sending.returncode == 1
    assert "interrupted: 1 message up to sequence 1 (" in err
    assert f"are stored in {copy}; --from 2 replays the rest" in err


# ---- masks


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"a": 1, "b": 2}', '{"a": 0, "b": 2}'),
        (' {"b":{"a" : "x\\"y" }} ', ' {"b":{"a" : "***" }} '),
        ('[{"a":[1,"s",true,false,null,-1.5e9,{"z":"s"},[]]}]', None),
        ('{"\\u0061": 1}', '{"\\u0061": 0}'),
        ('{"a": {}, "p": {"q": [{"r": "x", "s": 1.10}]}}', None),
        ('{"p": {"r": 1}, "r": 2, "q": {"r": 3}}', '{"p": {"r": 1}, "r": 2, "q": {"r": 3}}'),
        ('{"a": 1, "a": "x"}', '{"a": 0, "a": "***"}'),
        ('{"ä": "€", "a": "ü"}', '{"ä": "€", "a": "***"}'),
        ('{"A": 1, "P": {"q": {"R": 2}}, "b": "A"}', '{"A": 0, "P": {"q": {"R": 0}}, "b": "A"}'),
        ('{"p.q.r": 1, "x": {"P.Q.R": "s"}}', '{"p.q.r": 0, "x": {"P.Q.R": "***"}}'),
        ('{"b": "{\\"a\\": 1}", "c": "{\\"d\\"}"}', '{"b": "{\\"a\\": 0}", "c": "{\\"d\\"}"}'),
        ('{"p": "{\\"q\\": [{\\"r\\": 1}]}"}', '{"p": "{\\"q\\": [{\\"r\\": 0}]}"}'),
        (r'"\"{\\\"a\\\":1}\""', r'"\"{\\\"a\\\":0}\""'),
        ('{"b": "{\\u0022c\\": 1}"}', '{"b": "{\\u0022c\\": 1}"}'),
        ('{"a": {"bob@x": 1}}', '{"a": {"bob@x": 0}}'),
        ("3", "3"),
        ("", ""),
    ],
    ids=str,
)
def test_masked_members(data: str, expected: str | None) -> None:
    special = {
        "[": '[{"a":[0,"***",false,false,null,0,{"z":"***"},[]]}]',
        "{": '{"a": {}, "p": {"q": [{"r": "***", "s": 1.10}]}}',
    }
    masks = Masks(["a", "p.q.r"])
    masked = masks.masked(data.encode())
    assert masked.decode() == (special[data[0]] if expected is None else expected)
    assert masks.masked(masked) == masked


def test_masks_are_counted_by_their_own_spelling() -> None:
    masks = Masks(["Email", "email", "other"])
    assert masks.masked(b'{"EMAIL": "x"}') == b'{"EMAIL": "***"}'
    assert masks.found == {"Email": 1, "email": 1, "other": 0}


@pytest.mark.parametrize("data", [b"x", b"\xff", b"[1,]", b"{", b"[" * 100_000], ids=repr)
def test_what_cannot_be_masked(data: bytes) -> None:
    with pytest.raises(BadPayload, match="it is not JSON"):
        Masks(["a"]).masked(data)
    assert Masks([]).masked(data) == data


@pytest.mark.parametrize(
    "words",
    [("--mask", "a..b"), ("--mask", ""), ("--speed", "-1"), ("--speed", "fast"), ("--from", "x")],
    ids=str,
)
def test_wrong_arguments(run: Run, words: tuple[str, ...]) -> None:
    assert run("replay", "S", "--to", "nats://127.0.0.1:1", *words).exit_code == 2
