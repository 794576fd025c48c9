"""The server, streams and consumers of a benchmark, and its measurements one by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import js_sync
from tests.bench.job import (
    LATENCIES,
    RATES,
    SINK_SUBJECT,
    STREAM,
    SUBJECT,
    TICKS,
    TICKS_SUBJECT,
    Job,
)
from twinstream.core.client.tls import TlsOptions
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

ROOT: Final = Path(__file__).parents[2]

ALL: Final = (*RATES, *LATENCIES)
CLIENTS: Final[dict[str, tuple[str, ...]]] = {
    "js_sync": ALL,
    "js_async": ALL,
    "js_async_uvloop": ALL,
    "over_nats_py": ("drain", "consume"),
    "nats_py": ALL,
    "nats_py_bridge": ("next", "publish"),
    "natsrpy": ALL,
    "nats_jetstream": ALL,
    "natsio": ALL,
    "raw": ALL,
    "raw_asyncio": LATENCIES,
    "raw_numbered": ("pipelined",),
    "raw_c": ("drain",),
}
"""Which client can do which workload."""

OURS: Final = {name for name in CLIENTS if name.startswith(("js_", "over_"))}

NO_TLS: Final = {"natsrpy", "raw_c"}
"""Clients that cannot be given an authority of one's own."""

NEEDS: Final = {
    "js_async_uvloop": "uvloop",
    "natsrpy": "natsrpy",
    "nats_jetstream": "nats.jetstream",
    "natsio": "natsio",
}
"""Modules of clients that the development environment does not hold."""

PATIENCE: Final = 120
"""Seconds that one measurement may take."""

Run = dict[str, Any]
Measured = dict[str, list[Run]]


class Failed(Exception):
    """A client did not do its work."""


class Suite:
    """Runs clients one after the other against one server."""

    def __init__(self, python: str, url: str, size: int, headers: bool, ca: str | None) -> None:
        self._python: Final = python
        self.url: Final = url
        self._size: Final = size
        self._headers: Final = headers
        self._ca: Final = ca
        self.failures: Final[list[str]] = []

    def connect(self) -> js_sync.Connection:
        """Connect to the server, for what surrounds the measurements."""
        tls = TlsOptions(ca_file=self._ca) if self._ca else None
        return js_sync.connect(self.url, tls=tls)

    def fill(self, count: int, storage: str) -> None:
        """Make the streams, and fill the one that is read."""
        with self.connect() as nc:
            jet = nc.jetstream(timeout=60)
            for name, subject in ((STREAM, SUBJECT), ("SINK", SINK_SUBJECT)):
                jet.create_stream(StreamConfig(name=name, subjects=[subject], storage=storage))
            # Ticks are to measure the way to the client, not the disk.
            jet.create_stream(StreamConfig(name=TICKS, subjects=[TICKS_SUBJECT], storage="memory"))
            job = self.job("js_sync", "drain", count)
            request = js_sync.PublishRequest(subject=SUBJECT, data=job.payload, headers=job.headers)
            for outcome in jet.publish_many(request for _ in range(count)):
                if isinstance(outcome, js_sync.PublishFailure):
                    raise outcome.error

    def job(self, client: str, workload: str, count: int) -> Job:
        """Return one measurement to make."""
        return Job(client, workload, self.url, count, self._size, self._headers, self._ca)

    def able(self, workload: str) -> list[str]:
        """Return the clients that can do a workload here."""
        found = [name for name, able in CLIENTS.items() if workload in able]
        return [name for name in found if self.why_not(name) is None]

    def why_not(self, client: str) -> str | None:
        """Return why a client cannot run here."""
        if self._ca and client in NO_TLS:
            return "takes no authority for TLS"
        module = NEEDS.get(client)
        if module is None:
            return None
        probe = [self._python, "-c", f"import {module}"]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"{module} cannot be imported by {self._python}"

    def rounds(self, workload: str, clients: Sequence[str], count: int, rounds: int) -> Measured:
        """Measure each client in turn, every second round in reverse."""
        measured: Measured = {name: [] for name in clients}
        for number in range(rounds):
            order: Iterable[str] = clients if number % 2 == 0 else reversed(clients)
            for name in list(order):
                if name not in measured:
                    continue
                try:
                    measured[name].append(self.run(self.job(name, workload, count)))
                except Failed as error:
                    if name in OURS:
                        raise
                    # A peer that fails at its work has no figure; the others go on.
                    self.failures.append(str(error))
                    del measured[name]
        return measured

    def run(self, job: Job) -> Run:
        """Make one measurement in a process of its own."""
        stream = TICKS if job.workload == "idle" else STREAM
        with self.connect() as nc:
            jet = nc.jetstream(timeout=30)
            try:
                jet.delete_consumer(stream, job.consumer)
            except js_sync.ConsumerNotFound:
                pass
            jet.create_consumer(stream, _consumer(job))
        if job.workload != "idle":
            return self._measure(job)
        with self._ticker(job):
            return self._measure(job)

    @contextmanager
    def _ticker(self, job: Job) -> Generator[None]:
        command = [sys.executable, "-m", "tests.bench.ticker", job.text()]
        process = subprocess.Popen(command, cwd=ROOT, env=_environment())
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def _measure(self, job: Job) -> Run:
        command = [self._python, "-m", "tests.bench.run", job.text()]
        what = f"{job.client}, {job.workload}"
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
                cwd=ROOT,
                env=_environment(),
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{what}: not done after {PATIENCE} s") from None
        if done.returncode != 0:
            raise Failed(f"{what}: {done.stderr[-1500:]}")
        found: Run = json.loads(done.stdout)
        if found["count"] < job.count:
            raise Failed(f"{what}: {found['count']} of {job.count} messages")
        return found


def _consumer(job: Job) -> ConsumerConfig:
    explicit = job.policy == "explicit"
    return ConsumerConfig(
        durable_name=job.consumer,
        ack_policy=job.policy,
        max_ack_pending=-1 if explicit else None,
        deliver_policy="new" if job.workload == "idle" else "all",
        mem_storage=True,
    )


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    # What is imported at first use would be compiled by each process anew, and be measured.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


@contextmanager
def suite(
    python: str, *, size: int = 128, headers: bool = False, tls: bool = False
) -> Generator[Suite]:
    """Run a server and return the measurements on it."""
    with tempfile.TemporaryDirectory() as folder:
        if not tls:
            with NatsServer() as server:
                yield Suite(python, server.url, size, headers, None)
            return
        # Here, because the clients' interpreter may not have what makes them.
        from tests.certificates import make_certificates

        made = make_certificates(Path(folder))
        config = f'tls {{ cert_file: "{made.server}", key_file: "{made.server_key}" }}'
        with NatsServer(config) as server:
            url = server.url.replace("nats://", "tls://")
            yield Suite(python, url, size, headers, made.authority)


def circumstances(python: str) -> dict[str, str]:
    """Return what the figures depend on."""
    command = [python, "-c", "import sys; print(sys.version.split()[0])"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    with NatsServer() as server:
        server_version = server.version
    return {
        "python": found.stdout.strip(),
        "nats-server": server_version,
        "twinstream": version("twinstream"),
        "processors": str(os.cpu_count()),
    }
