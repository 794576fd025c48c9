"""The limit: a blocking socket that does no more than the workload needs, in plain Python."""

from __future__ import annotations

import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

from tests.bench.workloads import BATCH, PAYLOAD, SINK_SUBJECT, STREAM, WINDOW, Meter

_READ = 1 << 18


class Socket:
    """Sends lines and counts what comes."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection((parts.hostname or "", parts.port or 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.recv(1 << 16)
        options = {"verbose": False, "headers": True, "no_responders": True, "protocol": 1}
        self.send(b"CONNECT %b\r\nSUB in.* 1\r\nPING\r\n" % json.dumps(options).encode())
        while b"PONG" not in self.sock.recv(1 << 16):
            pass

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def ask(self, subject: str, body: bytes) -> bytes:
        """Send a request and return the bytes of its answer."""
        self.send(b"PUB %b in.0 %d\r\n%b\r\n" % (subject.encode(), len(body), body))
        got = b""
        while not (got.endswith(b"\r\n") and got.count(b"\r\n") >= 2):
            got += self.sock.recv(_READ)
        return got

    def consumer(self, policy: str) -> None:
        """Make a new consumer."""
        config: dict[str, Any] = {
            "name": "raw",
            "ack_policy": policy,
            "mem_storage": True,
            "inactive_threshold": 5_000_000_000,
        }
        if policy == "explicit":
            config["max_ack_pending"] = -1
        self.ask(f"$JS.API.CONSUMER.DELETE.{STREAM}.raw", b"")
        body = json.dumps({"stream_name": STREAM, "config": config}).encode()
        self.ask(f"$JS.API.CONSUMER.CREATE.{STREAM}.raw", body)

    def pull(self, batch: int) -> None:
        """Ask for messages."""
        body = b'{"batch":%d,"expires":30000000000}' % batch
        subject = b"$JS.API.CONSUMER.MSG.NEXT.%b.raw" % STREAM.encode()
        self.send(b"PUB %b in.1 %d\r\n%b\r\n" % (subject, len(body), body))


def drain(url: str, count: int) -> str:
    """Count messages, two requests of 5,000 under way."""
    raw = Socket(url)
    raw.consumer("none")
    meter, seen, asked, tail = Meter(), 0, 0, b""
    while seen < count:
        while asked - seen < 5000 and asked < count:
            raw.pull(5000)
            asked += 5000
        data = tail + raw.sock.recv(_READ)
        seen += data.count(b"MSG bench.data ")
        # Too short for a whole one: what is cut is counted with the next read.
        tail = data[-14:]
    return meter.result(seen)


def _acknowledging(url: str, count: int) -> str:
    raw = Socket(url)
    raw.consumer("explicit")
    meter, seen, tail = Meter(), 0, b""
    while seen < count:
        raw.pull(BATCH)
        got = 0
        while got < BATCH:
            data = tail + raw.sock.recv(_READ)
            acks = []
            position = 0
            while True:
                start = data.find(b"MSG ", position)
                end = data.find(b"\r\n", start)
                if start < 0 or end < 0 or len(data) < end + 4 + len(PAYLOAD):
                    break
                reply = data[start:end].split(b" ")[3]
                acks.append(b"PUB %b 4\r\n+ACK\r\n" % reply)
                position = end + 4 + len(PAYLOAD)
            tail = data[position:]
            if acks:
                raw.send(b"".join(acks))
            got += len(acks)
        seen += got
    subject = f"$JS.API.CONSUMER.INFO.{STREAM}.raw"
    while True:
        body = raw.ask(subject, b"").split(b"\r\n", 1)[1]
        if json.loads(body)["ack_floor"]["consumer_seq"] >= count:
            break
        time.sleep(0.001)
    return meter.result(seen)


def consume(url: str, count: int) -> str:
    """Acknowledge each message, written together for what one read brought."""
    return _acknowledging(url, count)


fetch = consume


def next_(url: str, count: int) -> str:
    """Ask for one message at a time."""
    raw = Socket(url)
    raw.consumer("none")
    meter = Meter()
    for _ in range(count):
        began = time.perf_counter()
        raw.pull(1)
        got = b""
        while len(got) < len(PAYLOAD) or not got.endswith(b"\r\n"):
            got += raw.sock.recv(_READ)
        meter.call(began)
    return meter.result(count)


def publish(url: str, count: int) -> str:
    """Publish one message at a time."""
    raw = Socket(url)
    raw.ask(SINK_SUBJECT, PAYLOAD)
    meter = Meter()
    for _ in range(count):
        began = time.perf_counter()
        raw.ask(SINK_SUBJECT, PAYLOAD)
        meter.call(began)
    return meter.result(count)


def pipelined(url: str, count: int) -> str:
    """Publish with many under way, counting answers."""
    raw = Socket(url)
    meter, sent, seen, tail = Meter(), 0, 0, b""
    line = b"PUB %b in.0 %d\r\n%b\r\n" % (SINK_SUBJECT.encode(), len(PAYLOAD), PAYLOAD)
    while seen < count:
        free = min(WINDOW - (sent - seen), count - sent)
        if free >= 500 or (free and sent + free == count):
            raw.send(line * free)
            sent += free
        data = tail + raw.sock.recv(_READ)
        seen += data.count(b'{"stream":')
        tail = data[-9:]
    return meter.result(seen)
