"""The limit: a blocking socket that does no more than the workload needs, in plain Python."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.bench.job import (
    BATCH,
    SINK_SUBJECT,
    STREAM,
    TICKS,
    WINDOW,
    Job,
    Meter,
)

_READ = 1 << 18


# Others measure at the same time, each with an inbox of its own.
INBOX = b"in%d" % os.getpid()
OPTIONS = {"verbose": False, "headers": True, "no_responders": True, "protocol": 1}
GREETING = b"CONNECT %b\r\nSUB %b.* 1\r\nPING\r\n" % (json.dumps(OPTIONS).encode(), INBOX)


def request(subject: str, body: bytes, token: bytes = b"0") -> bytes:
    """Return a message whose answer comes to the inbox, under a token."""
    return b"PUB %b %b.%b %d\r\n%b\r\n" % (subject.encode(), INBOX, token, len(body), body)


def pull_request(job: Job, batch: int, stream: str = STREAM) -> bytes:
    """Return what asks for messages."""
    body = b'{"batch":%d,"expires":30000000000}' % batch
    return request(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{job.consumer}", body, b"1")


class Socket:
    """Sends lines and counts what comes."""

    def __init__(self, job: Job) -> None:
        parts = urlsplit(job.url)
        host = parts.hostname or ""
        self.sock: socket.socket = socket.create_connection((host, parts.port or 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.recv(1 << 16)
        tls = job.tls()
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        self.send(GREETING)
        while b"PONG" not in self.sock.recv(1 << 16):
            pass

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.sock.sendall(data)

    def ask(self, subject: str, body: bytes) -> bytes:
        """Send a request and return the bytes of its answer."""
        self.send(request(subject, body))
        got = b""
        while not (got.endswith(b"\r\n") and got.count(b"\r\n") >= 2):
            got += self.sock.recv(_READ)
        return got

    def pull(self, job: Job, batch: int, stream: str = STREAM) -> None:
        """Ask for messages."""
        self.send(pull_request(job, batch, stream))


def drain(job: Job) -> str:
    """Count messages, two requests of 5,000 under way."""
    raw = Socket(job)
    meter, seen, asked, tail = Meter(), 0, 0, b""
    while seen < job.count:
        while asked - seen < 5000 and asked < job.count:
            raw.pull(job, 5000)
            asked += 5000
        data = tail + raw.sock.recv(_READ)
        seen += data.count(b"MSG bench.data ")
        # Too short for a whole one: what is cut is counted with the next read.
        tail = data[-14:]
    return meter.result(seen)


def consume(job: Job) -> str:
    """Acknowledge each message, written together for what one read brought."""
    return _acknowledge(job, at_once=True)


def fetch(job: Job) -> str:
    """Acknowledge each message when its batch is whole.

    Nobody who is handed a batch can acknowledge before, while the server still delivers.
    """
    return _acknowledge(job, at_once=False)


def _acknowledge(job: Job, at_once: bool) -> str:
    raw = Socket(job)
    meter, seen, tail = Meter(), 0, b""
    while seen < job.count:
        raw.pull(job, BATCH)
        got, held = 0, list[bytes]()
        while got < BATCH:
            data = tail + raw.sock.recv(_READ)
            acks, position = _acks(data)
            tail = data[position:]
            got += len(acks)
            held += acks
            if held and (at_once or got == BATCH):
                raw.send(b"".join(held))
                held.clear()
        seen += got
    subject = f"$JS.API.CONSUMER.INFO.{STREAM}.{job.consumer}"
    while True:
        body = raw.ask(subject, b"").split(b"\r\n", 1)[1]
        if json.loads(body)["ack_floor"]["consumer_seq"] >= job.count:
            break
        time.sleep(0.001)
    return meter.result(seen)


def _acks(data: bytes) -> tuple[list[bytes], int]:
    """Return an acknowledgement for each whole message, and where the rest begins."""
    acks: list[bytes] = []
    position = 0
    while True:
        start = data.find(b"MSG ", position)
        end = data.find(b"\r\n", start)
        if start < 0 or end < 0:
            return acks, position
        words = data[start:end].split(b" ")
        after = end + 4 + int(words[-1])
        if len(data) < after:
            return acks, position
        acks.append(b"PUB %b 4\r\n+ACK\r\n" % words[3])
        position = after


def next_(job: Job) -> str:
    """Ask for one message at a time."""
    raw = Socket(job)
    meter = Meter()
    for _ in range(job.count):
        began = time.perf_counter()
        raw.pull(job, 1)
        got = b""
        while len(got) < job.size or not got.endswith(b"\r\n"):
            got += raw.sock.recv(_READ)
        meter.call(began)
    return meter.result(job.count)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""
    raw = Socket(job)
    raw.pull(job, 2 * job.count, TICKS)
    meter, seen = Meter(), 0
    while seen < job.count:
        got = raw.sock.recv(_READ)
        for message in got.split(b"MSG ")[1:]:
            seen += meter.tick(message.split(b"\r\n", 2)[1])
            if seen == job.count:
                break
    return meter.result(seen)


def publish(job: Job) -> str:
    """Publish one message at a time."""
    raw = Socket(job)
    raw.ask(SINK_SUBJECT, job.payload)
    meter = Meter()
    for _ in range(job.count):
        began = time.perf_counter()
        raw.ask(SINK_SUBJECT, job.payload)
        meter.call(began)
    return meter.result(job.count)


def pipelined(job: Job) -> str:
    """Publish with many under way, counting answers."""
    line = request(SINK_SUBJECT, job.payload)
    return publish_all(job, lambda start, end: line * (end - start))


def publish_all(job: Job, lines: Callable[[int, int], bytes]) -> str:
    """Publish what stands in the lines from one number up to another, with many under way."""
    raw = Socket(job)
    meter, sent, seen, tail = Meter(), 0, 0, b""
    while seen < job.count:
        free = min(WINDOW - (sent - seen), job.count - sent)
        if free >= 500 or (free and sent + free == job.count):
            raw.send(lines(sent, sent + free))
            sent += free
        data = tail + raw.sock.recv(_READ)
        seen += data.count(b'{"stream":')
        tail = data[-9:]
    return meter.result(seen)
