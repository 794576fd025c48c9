# Generated from tests/_async/test_odd_messages.py by codegen/twin.py. Edit that file instead.
"""Whatever a server stored can be read, in every way, and holds up nothing behind it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import js_sync as js
from twinstream.core.read.arrow import header_pairs
from twinstream.models import ConsumerConfig, StreamConfig
from tests._sync.flow import eventually
from tests.odd_messages import ODD_MESSAGES, publish_raw

pytest.importorskip("pyarrow")


@pytest.fixture(params=[True, False], ids=["direct", "by the leader"])
def allow_direct(request):
    return request.param


@pytest.fixture
def opened(server):
    """Opens JetStream over a connection of our own: nats-py's parser fails at such headers."""

    @contextmanager
    def own():
        with js.connect(server.url) as connection:
            yield connection.jetstream(timeout=10)

    return own


def odd_stream(jet, server, name, allow_direct):
    """Return a stream of odd messages with an ordinary one behind them, and their payloads."""
    config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=allow_direct)
    stream = jet.create_stream(config)
    messages = publish_raw(server.port, f"{name}.odd")
    jet.publish(f"{name}.last", b"last")

    def stored():
        return (stream.info()).state.messages == len(messages) + 1

    eventually(stored)
    return stream, [each.data for each in messages] + [b"last"]


def check(found, payloads, way):
    """Prove that all messages came, in order, with headers that can be looked at."""
    assert [message.data for message in found] == payloads, way
    for message, what in zip(found, [*ODD_MESSAGES, "last"], strict=True):
        headers = message.headers
        assert len(headers) == len(dict(headers)), (way, what)
        sent = ODD_MESSAGES[what].headers if what != "last" else None
        if headers.malformed:
            assert sent is not None, (way, what)
            # A direct get lacks the last two bytes.
            assert sent[:-2] in {headers.malformed, headers.malformed[:-2]}, (way, what)
        elif sent is not None and len(sent) > 2 and not sent.startswith(b"\r\n"):
            assert sent.startswith(b"NATS/1.0"), (way, what)


def test_every_read_without_a_consumer(opened, server, name, allow_direct):
    with opened() as jet:
        stream, payloads = odd_stream(jet, server, name, allow_direct)
        ways = ("direct", "leader", "consumer") if allow_direct else ("leader", "consumer")
        for via in ways:
            check([message for message in stream.read(via=via)], payloads, via)
            table = stream.read(via=via).to_arrow()
            assert table.column("data").to_pylist() == payloads, via
        seqs = range(1, len(payloads) + 1)
        for direct in (True, False) if allow_direct else (False,):
            check([stream.get_message(seq, direct=direct) for seq in seqs], payloads, direct)
        # For each message as the last one of its subject, too.
        for seq in reversed(seqs):
            snapshot = stream.snapshot()
            last = max(snapshot.values(), key=lambda message: message.seq)
            assert (last.seq, last.data) == (seq, payloads[seq - 1])
            assert (stream.get_last_message(last.subject)).data == payloads[seq - 1]
            stream.delete_message(seq)


def test_every_read_by_a_consumer(opened, server, name, allow_direct):
    with opened() as jet:
        stream, payloads = odd_stream(jet, server, name, allow_direct)
        count = len(payloads)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = consumer.fetch(count, timeout=10)
        check(batch, payloads, "fetch")
        for message in batch:
            message.nak()
        found = []
        with consumer.messages() as messages:
            for _ in range(count):
                found.append(messages.next(10))
                found[-1].double_ack()
        found.sort(key=lambda message: message.metadata.stream_seq)
        check(found, payloads, "messages")
        with stream.ordered() as messages:
            check([messages.next(10) for _ in range(count)], payloads, "ordered")
        with stream.subscribe(ConsumerConfig(ack_policy="none")) as messages:
            check([messages.next(10) for _ in range(count)], payloads, "push")


def test_a_handler_gets_every_message(opened, server, name):
    with opened() as jet:
        stream, payloads = odd_stream(jet, server, name, True)
        found = []
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))

        def handle(message):
            found.append(message)

        consumption = consumer.consume(handle, stop_after=len(payloads))
        with consumption:
            consumption.wait()
        check(found, payloads, "consume")


def test_a_core_subscriber_gets_every_message(server, name):
    with js.connect(server.url) as connection:
        subscription = connection.subscribe(f"{name}.odd")
        connection.flush()
        messages = publish_raw(server.port, f"{name}.odd")
        found = [subscription.next(10) for _ in messages]
        assert [each.data for each in found] == [each.data for each in messages]
        for each in found:
            assert len(each.headers) == len(dict(each.headers))
        assert connection.is_connected
        assert connection.epoch == 1


def test_a_backup_holds_them_and_brings_them_back(opened, server, name, tmp_path):
    with opened() as jet:
        stream, payloads = odd_stream(jet, server, name, True)
        stream.backup(tmp_path / "copy")
        jet.delete_stream(name)
        restored = jet.restore(tmp_path / "copy")
        check([message for message in restored.read()], payloads, "restored")


def test_malformed_headers_are_kept_in_arrow():
    assert header_pairs(b"") is None
    assert header_pairs(b"NATS/1.0\r\nA: 1\r\n") == [("A", ["1"])]
    assert header_pairs(b"\xff\xfe\r\n") == [("", ["\\xff\\xfe\r\n"])]
    assert header_pairs(b"HTTP/1.1\r\nA: 1\r\n") == [("", ["HTTP/1.1\r\nA: 1\r\n"]), ("A", ["1"])]
