"""The limit of asyncio: a bare protocol on its event loop that does what `raw` does on a socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from tests.bench.clients.raw import GREETING, pull_request, request
from tests.bench.job import SINK_SUBJECT, TICKS, Job, Meter

_READ = 1 << 16


class Peer(asyncio.BufferedProtocol):
    """Gathers what comes until it ends as is wanted."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(_READ))
        self.got = b""
        self.came: asyncio.Future[None] = self.loop.create_future()
        self.least = 1

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes, and wake who waits for them."""
        self.got += self.buffer[:nbytes]
        if len(self.got) >= self.least and self.got.endswith(b"\r\n") and not self.came.done():
            self.came.set_result(None)

    async def take(self, least: int = 1) -> bytes:
        """Return what came: whole lines, of at least so many bytes."""
        self.least = least
        if len(self.got) < least or not self.got.endswith(b"\r\n"):
            self.came = self.loop.create_future()
            await self.came
        got, self.got = self.got, b""
        return got

    async def open(self) -> Peer:
        """Connect and log in."""
        parts, tls = urlsplit(self.job.url), self.job.tls()
        host = parts.hostname or ""
        transport, _ = await self.loop.create_connection(lambda: self, host, parts.port or 0)
        await self.take()
        if tls is not None:
            transport = await self.loop.start_tls(transport, self, tls, server_hostname=host)
        assert transport is not None
        self.write = transport.write
        self.write(GREETING)
        while b"PONG" not in await self.take():
            pass
        return self


def run(job: Job, work: Callable[[Peer, Meter], Awaitable[int]]) -> str:
    """Run a workload that returns how many messages it saw."""

    async def whole() -> str:
        peer = await Peer(job).open()
        meter = Meter()
        return meter.result(await work(peer, meter))

    return asyncio.run(whole())


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work(peer: Peer, meter: Meter) -> int:
        for _ in range(job.count):
            began = time.perf_counter()
            peer.write(pull_request(job, 1))
            await peer.take(job.size)
            meter.call(began)
        return job.count

    return run(job, work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work(peer: Peer, meter: Meter) -> int:
        peer.write(pull_request(job, 2 * job.count, TICKS))
        seen = 0
        while seen < job.count:
            for message in (await peer.take()).split(b"MSG ")[1:]:
                seen += meter.tick(message.split(b"\r\n", 2)[1])
                if seen == job.count:
                    break
        return seen

    return run(job, work)


def publish(job: Job) -> str:
    """Publish one message at a time."""

    async def work(peer: Peer, meter: Meter) -> int:
        for each in range(job.count + 1):
            began = time.perf_counter()
            peer.write(request(SINK_SUBJECT, job.payload))
            # An answer is a line with its size, and a line of JSON.
            while b'"seq":' not in await peer.take(40):
                pass
            if each:
                meter.call(began)
        return job.count

    return run(job, work)
