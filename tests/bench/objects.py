"""``python -m tests.bench.objects``: storing and reading an object of 64 MiB, beside other clients.

Each measurement is a process of its own, with both twins and their peers in turns on one server,
every second round in reverse. A rate is the median over the rounds, and the ratio is the median of
the ratios within a round. nats-py's `get` takes a time that grows with the square of the size (tens
of seconds for 64 MiB), so the ratios are to its faster form, `get(writeinto=)`. natsio takes part
where the interpreter that runs the clients has it (`--python`, 3.13 or newer).
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Final

import click

import js_async
import js_sync
from tests.bench.clients.raw import Socket, request
from tests.bench.job import Job
from tests.bench.page import show
from tests.bench.suite import ROOT
from twinstream.models import ObjectStoreConfig
from twinstream.testing import NatsServer

BUCKET: Final = "BENCH"
WARM: Final = b"What a first call imports is no part of the rate."
PEER: Final = "nats_py writeinto"
CLIENTS: Final = {
    "js_sync": "attrs",
    "js_async": "attrs",
    "nats_py": "nats",
    "nats_py writeinto": "nats",
    "natsio": "natsio",
    "raw socket": "socket",
}
"""The clients, and the module that each needs."""

CHUNK: Final = 128 * 1024
"""Bytes of a chunk of the raw socket; those of the others have the same size."""
STEP: Final = 128
"""Chunks that the raw socket requests at a time."""


def content(size: int) -> bytes:
    """Return bytes that no compression makes smaller, the same each time."""
    return hashlib.shake_128(b"objects").digest(size)


def run_sync(url: str, data: bytes) -> dict[str, float]:
    """Store and read an object with js_sync."""
    with js_sync.connect(url) as nc:
        store = nc.jetstream(timeout=60).get_object_store(BUCKET)
        store.put("warm", WARM)
        store.get_bytes("warm")
        began = _now()
        store.put("js_sync", data)
        stored = _now()
        found = store.get_bytes("js_sync")
        return _result(data, found, began, stored)


async def run_async(url: str, data: bytes) -> dict[str, float]:
    """Store and read an object with js_async."""
    async with js_async.connect(url) as nc:
        store = await nc.jetstream(timeout=60).get_object_store(BUCKET)
        await store.put("warm", WARM)
        await store.get_bytes("warm")
        began = _now()
        await store.put("js_async", data)
        stored = _now()
        found = await store.get_bytes("js_async")
        return _result(data, found, began, stored)


async def run_nats_py(url: str, data: bytes, *, into: bool = False) -> dict[str, float]:
    """Store and read an object with nats-py."""
    import nats

    client = await nats.connect(url)
    try:
        store = await client.jetstream(timeout=60).object_store(BUCKET)
        name = f"nats_py {into}"
        await store.put("warm", WARM)
        await store.get("warm")
        began = _now()
        await store.put(name, data)
        stored = _now()
        file = io.BytesIO() if into else None
        found = await store.get(name, writeinto=file)
        return _result(
            data, bytes(found.data or b"") if file is None else file.getvalue(), began, stored
        )
    finally:
        await client.close()


async def run_natsio(url: str, data: bytes) -> dict[str, float]:
    """Store and read an object with natsio."""
    import natsio

    async with await natsio.connect(url) as nc:
        store = await nc.jetstream().object_store(BUCKET)
        await store.put("warm", WARM)
        await store.get_bytes("warm")
        began = _now()
        await store.put("natsio", data)
        stored = _now()
        found = await store.get_bytes("natsio")
        return _result(data, found, began, stored)


def run_raw(url: str, data: bytes) -> dict[str, float]:
    """Store and read the same chunks with a plain socket: no digest, no info, no parsing."""
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    raw, subject = Socket(Job("raw", "objects", url, len(chunks))), f"$O.{BUCKET}.C.raw"
    began = _now()
    for chunk in chunks:
        raw.send(request(subject, chunk))
    acknowledgements = b""
    while acknowledgements.count(b'"seq":') < len(chunks):
        acknowledgements += raw.sock.recv(1 << 18)
    stored = _now()
    first = min(int(seq) for seq in re.findall(rb'"seq":(\d+)', acknowledgements))
    buffer, tail = bytearray(1 << 20), b""
    for at in range(0, len(chunks), STEP):
        # In steps, as the server drops a client with more than 64 MiB of pending data.
        wanted = {"seq": first + at, "batch": min(STEP, len(chunks) - at), "next_by_subj": subject}
        raw.send(request(f"$JS.API.DIRECT.GET.OBJ_{BUCKET}", json.dumps(wanted).encode()))
        while b"NATS/1.0 204" not in tail:
            size = raw.sock.recv_into(buffer)
            tail = tail[-200:] + bytes(buffer[max(0, size - 200) : size])
        tail = b""
    return _result(data, data, began, stored)


Moment = tuple[float, float]
"""Seconds on the clock, and of CPU."""


def _now() -> Moment:
    return time.perf_counter(), time.process_time()


def _result(data: bytes, found: bytes, began: Moment, stored: Moment) -> dict[str, float]:
    ended = _now()
    if found != data:
        raise click.ClickException("the content is another one")
    return {
        "put": len(data) / (stored[0] - began[0]),
        "get": len(data) / (ended[0] - stored[0]),
        "put_cpu": stored[1] - began[1],
        "get_cpu": ended[1] - stored[1],
    }


BLOCKING: Final = {"js_sync": run_sync, "raw socket": run_raw}
ASYNC: Final[dict[str, Callable[[str, bytes], Awaitable[dict[str, float]]]]] = {
    "js_async": run_async,
    "nats_py": run_nats_py,
    "nats_py writeinto": lambda url, data: run_nats_py(url, data, into=True),
    "natsio": run_natsio,
}


def _run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths},
    )


def _measured(python: str, client: str, url: str, size: int) -> dict[str, float]:
    done = _run(python, "-m", "tests.bench.objects", client, url, str(size))
    if done.returncode:
        raise click.ClickException(f"{client}: {done.stderr[-1500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


@click.command()
@click.option("--mib", default=64, show_default=True, type=click.IntRange(min=1))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--client", "chosen", multiple=True, type=click.Choice(list(CLIENTS)))
@click.option("--storage", default="file", type=click.Choice(["file", "memory"]))
@click.option("--python", default=sys.executable, help="The interpreter that runs the clients.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def objects(
    mib: int, rounds: int, chosen: tuple[str, ...], storage: Any, python: str, page: bool
) -> None:
    """Show the rates of each client, and how many times those of nats-py they are."""
    clients = [
        name
        for name in chosen or CLIENTS
        if _run(python, "-c", f"import {CLIENTS[name]}").returncode == 0
    ]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
    with NatsServer() as server:
        with js_sync.connect(server.url) as nc:
            config = ObjectStoreConfig(bucket=BUCKET, storage=storage)
            nc.jetstream(timeout=60).create_object_store(config)
        for number in range(rounds):
            for name in clients if number % 2 == 0 else reversed(clients):
                found[name].append(_measured(python, name, server.url, mib << 20))
    rows = [[name, *_cells(found[name], found.get(PEER))] for name in clients]
    columns = ["client"]
    for what in ("put", "get"):
        columns += [f"{what}, MiB/s", "times nats-py", "CPU, s"]
    note = f"An object of {mib} MiB, {storage} storage; medians of {rounds} rounds."
    show("objects", columns, rows, page=page, note=note, python=python)


def _cells(own: list[dict[str, float]], peer: list[dict[str, float]] | None) -> list[str]:
    cells: list[str] = []
    for what in ("put", "get"):
        cells.append(f"{median(each[what] for each in own) / 2**20:.0f}")
        ratios = [each[what] / other[what] for each, other in zip(own, peer or [], strict=False)]
        cells.append(f"{median(ratios):.1f}" if ratios else "")
        cells.append(f"{median(each[f'{what}_cpu'] for each in own):.2f}")
    return cells


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CLIENTS:
        _, client, url, size = sys.argv
        data = content(int(size))
        blocking = BLOCKING.get(client)
        result = blocking(url, data) if blocking else asyncio.run(ASYNC[client](url, data))  # type: ignore[arg-type]
        print(json.dumps(result))
    else:
        objects()
