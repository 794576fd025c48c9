"""A recording of a real server, and the fake server that says it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import js_sync as js
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakeServer, NatsServer, Recorder, ScriptError, replay


def work(url: str, *, data: bytes = b"\xff\x00data", purge: bool = False) -> list[bytes]:
    """Make a stream, fill it, and take everything, as any client does."""
    with js.connect(url, **UNHURRIED) as connection:
        jet = connection.jetstream()
        stream = jet.create_stream(StreamConfig(name="REC", subjects=["rec.>"]))
        for number in range(3):
            jet.publish(f"rec.{number}", data, headers={"Number": str(number)})
        consumer = stream.create_consumer(ConsumerConfig())
        seen = [message.data for message in consumer.fetch(3, timeout=60)]
        if purge:
            stream.purge()
        jet.delete_stream("REC")
        return seen


@pytest.fixture
def recording(server: NatsServer, tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    with Recorder(server.port) as recorder:
        assert work(recorder.url) == [b"\xff\x00data"] * 3
        assert {each.connection for each in recorder.spoken} == {1}
    recorder.save(path)
    return path


def test_a_recording_is_readable(recording: Path) -> None:
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    assert lines[0]["from"] == "server"
    assert lines[0]["line"].startswith("INFO ")
    published = [each for each in lines if each["line"].startswith("HPUB rec.0")]
    assert published[0]["from"] == "client"
    assert published[0]["headers"] == "NATS/1.0\r\nNumber: 0\r\n\r\n"
    assert published[0]["payload_base64"] == "/wBkYXRh"
    created = next(each for each in lines if "STREAM.CREATE.REC" in each["line"])
    assert json.loads(created["payload"])["name"] == "REC"


def test_recording_is_replayed(recording: Path) -> None:
    """Inboxes and generated names are drawn anew in each run, and found again."""
    for _ in range(2):
        with FakeServer(*replay(recording)) as server:
            assert work(server.url) == [b"\xff\x00data"] * 3


def test_another_session_than_the_recorded_is_named(recording: Path) -> None:
    def talk() -> None:
        with FakeServer(*replay(recording)) as server:
            with pytest.raises((js.ConnectionLost, js.ConnectionClosed, js.RequestTimeout)):
                work(server.url, purge=True)

    with pytest.raises(ScriptError, match=r"expected PUB .*STREAM\.DELETE.*received .*PURGE"):
        talk()


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in ("no json", "[]", "{}", '{"connection": "x", "from": "client", "line": ""}'):
        path.write_text(f"\n{text}\n")
        with pytest.raises(ValueError, match="x:2: not a line of a recording"):
            replay(path)


def test_a_recorder_without_a_server_refuses() -> None:
    with NatsServer(start_timeout=300) as stopped:
        port = stopped.port
    with Recorder(port) as recorder:
        with pytest.raises(js.ConnectionFailed):
            js.connect(recorder.url, reconnect=None)
        assert recorder.spoken == []
    with pytest.raises(RuntimeError, match="not been started"):
        _ = recorder.url
    recorder.stop()
