"""`python -m tests.bench.objects`: storing and reading an object of 64 MiB, beside other clients.

Each measurement is a process of its own, with both twins and their peers in turns on one server,
every second round in reverse. A rate is the median over the rounds, and the ratio is the median of
the ratios within a round. nats-py's `get` takes a time that grows with the square of the size (tens
of seconds for 64 MiB), so the ratios are to its faster form, `get(writeinto=)`. natsio takes part
where the interpreter that runs the clients has it (`--python`, 3.13 or newer).

With `--small`, it measures many small objects instead: puts of 4 KiB, one after another, under
new names, with both twins and nats-py.
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

SMALL: Final = 4096
"""Bytes of a small object."""
SMALL_PEER: Final = "nats_py"
SMALL_CLIENTS: Final = ("js_sync", "js_async", "nats_py")
SMALL_ROUNDS: Final = 3
ROUNDS: Final = 5

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


def small_sync(url: str, data: bytes, count: int) -> dict[str, float]:
    """Store small objects with js_sync."""
    with js_sync.connect(url) as nc:
        store = nc.jetstream(timeout=60).get_object_store(BUCKET)
        store.put("warm", WARM)
        began = _now()
        for name in _names("js_sync", count):
            store.put(name, data)
        return _small(began, count)


async def small_async(url: str, data: bytes, count: int) -> dict[str, float]:
    """Store small objects with js_async."""
    async with js_async.connect(url) as nc:
        store = await nc.jetstream(timeout=60).get_object_store(BUCKET)
        await store.put("warm", WARM)
        began = _now()
        for name in _names("js_async", count):
            await store.put(name, data)
        return _small(began, count)


async def small_nats_py(url: str, data: bytes, count: int) -> dict[str, float]:
    """Store small objects with nats-py."""
    import nats

    client = await nats.connect(url)
    try:
        store = await client.jetstream(timeout=60).object_store(BUCKET)
        await store.put("warm", WARM)
        began = _now()
        for name in _names("nats_py", count):
            await store.put(name, data)
        return _small(began, count)
    finally:
        await client.close()


def _names(client: str, count: int) -> list[str]:
    """Return names that no other process has used."""
    run = f"{client} {time.time_ns()}"
    return [f"{run} {number}" for number in range(count)]


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


def _small(began: Moment, count: int) -> dict[str, float]:
    ended = _now()
    return {"rate": count / (ended[0] - began[0]), "cpu": (ended[1] - began[1]) / count * 1e6}


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


def _measured(python: str, *arguments: str) -> dict[str, float]:
    client, *_ = arguments
    done = _run(python, "-m", "tests.bench.objects", *arguments)
    if done.returncode:
        raise click.ClickException(f"{client}: {done.stderr[-1500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


POSITIVE: Final = click.IntRange(min=1)


@click.command()
@click.option("--mib", default=64, show_default=True, type=POSITIVE)
@click.option("--small", is_flag=True, help="Put small objects, one after another.")
@click.option("--count", default=1000, show_default=True, help="Small objects.", type=POSITIVE)
@click.option("--rounds", type=POSITIVE, help=f"By default {ROUNDS}, small: {SMALL_ROUNDS}.")
@click.option("--client", "chosen", multiple=True, type=click.Choice(list(CLIENTS)))
@click.option("--storage", default="file", type=click.Choice(["file", "memory"]))
@click.option("--python", default=sys.executable, help="The interpreter that runs the clients.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def objects(
    mib: int,
    small: bool,
    count: int,
    rounds: int | None,
    chosen: tuple[str, ...],
    storage: Any,
    python: str,
    page: bool,
) -> None:
    """Show the rates of each client, and how many times those of nats-py they are."""
    if small and page:
        raise click.UsageError("the page has no table of small objects")
    if small and set(chosen) - set(SMALL_CLIENTS):
        raise click.UsageError(f"--small measures {', '.join(SMALL_CLIENTS)} only")
    rounds = rounds or (SMALL_ROUNDS if small else ROUNDS)
    work = [str(SMALL), str(count)] if small else [str(mib << 20)]
    clients = [
        name
        for name in chosen or (SMALL_CLIENTS if small else CLIENTS)
        if _run(python, "-c", f"import {CLIENTS[name]}").returncode == 0
    ]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
    with NatsServer() as server:
        with js_sync.connect(server.url) as nc:
            config = ObjectStoreConfig(bucket=BUCKET, storage=storage)
            nc.jetstream(timeout=60).create_object_store(config)
        for number in range(rounds):
            for name in clients if number % 2 == 0 else reversed(clients):
                found[name].append(_measured(python, name, server.url, *work))
    if small:
        rows = [[name, *_small_cells(found[name], found.get(SMALL_PEER))] for name in clients]
        columns = ["client", "puts a second", "times nats-py", "µs CPU each", "CPU to nats-py"]
        note = (
            f"{count:,} objects of {SMALL:,} bytes, {storage} storage; medians of {rounds} rounds."
        )
        show("small-objects", columns, rows, page=False, note=note, python=python)
        return
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


def _small_cells(own: list[dict[str, float]], peer: list[dict[str, float]] | None) -> list[str]:
    cells: list[str] = []
    for what, form in (("rate", ",.0f"), ("cpu", ".1f")):
        cells.append(format(median(each[what] for each in own), form))
        ratios = [each[what] / other[what] for each, other in zip(own, peer or [], strict=False)]
        cells.append(f"{median(ratios):.2f}" if ratios else "")
    return cells


def _run_small(client: str, url: str, data: bytes, count: int) -> dict[str, float]:
    if client == "js_sync":
        return small_sync(url, data, count)
    work = {"js_async": small_async, "nats_py": small_nats_py}[client]
    return asyncio.run(work(url, data, count))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CLIENTS and len(sys.argv) == 5:
        _, client, url, size, number = sys.argv
        print(json.dumps(_run_small(client, url, content(int(size)), int(number))))
    elif sys.argv[1:2] and sys.argv[1] in CLIENTS:
        _, client, url, size = sys.argv
        data = content(int(size))
        blocking = BLOCKING.get(client)
        result = blocking(url, data) if blocking else asyncio.run(ASYNC[client](url, data))  # type: ignore[arg-type]
        print(json.dumps(result))
    else:
        objects()
