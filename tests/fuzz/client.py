"""The whole client, in both twins, against a server that lies: an answer, or an error of ours."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

import js_async
import js_sync
from tests.fuzz.lying_server import LyingServer
from tests.fuzz.wire import Finding
from twinstream.errors import TwinstreamError
from twinstream.models import ConsumerConfig, StreamConfig

__all__ = ["CLIENTS", "client_rounds"]

# Seconds that a call may take; the server is silent often.
_TIMEOUT: Final = 0.1
_CALLS: Final = 40
# Seconds within which all calls of a round, and closing, must be over.
_LONGEST: Final = 30.0

_RECONNECT: Final = js_sync.ReconnectPolicy(wait=0.01, max_wait=0.02, attempts=3)
_OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 0.5,
    "request_timeout": _TIMEOUT,
    "reconnect": _RECONNECT,
}

Call = Callable[[Any, Any], Any]


async def _first(iteration: Any) -> None:
    async with iteration as messages:
        await messages.next(timeout=_TIMEOUT)


async def _outcomes(outcomes: Any) -> None:
    async for _ in outcomes:
        pass


async def _read(messages: Any) -> None:
    async for message in messages:
        str(message.headers)


ASYNC_CALLS: Final[tuple[Call, ...]] = (
    lambda nc, jet: jet.publish("orders.new", b"x"),
    lambda nc, jet: jet.create_stream(StreamConfig(name="S", subjects=["orders.>"])),
    lambda nc, jet: jet.get_stream("S"),
    lambda nc, jet: jet.account_info(),
    lambda nc, jet: jet.create_consumer("S", ConsumerConfig(durable_name="c")),
    lambda nc, jet: jet.bind_consumer("S", "c").fetch(5, timeout=_TIMEOUT),
    lambda nc, jet: jet.bind_consumer("S", "c").next(timeout=_TIMEOUT),
    lambda nc, jet: _first(jet.bind_consumer("S", "c").messages()),
    lambda nc, jet: _first(jet.bind_stream("S").ordered()),
    lambda nc, jet: jet.bind_stream("S").get_message(1, direct=True),
    lambda nc, jet: jet.bind_stream("S").get_message(1),
    lambda nc, jet: _read(jet.bind_stream("S").read(idle_timeout=_TIMEOUT)),
    lambda nc, jet: jet.bind_stream("S").snapshot(idle_timeout=_TIMEOUT),
    lambda nc, jet: jet.bind_stream("S").info(),
    lambda nc, jet: _outcomes(jet.publish_many([("orders.a", b"1"), ("orders.b", b"2")])),
    lambda nc, jet: nc.request("orders.new", b"x"),
    lambda nc, jet: nc.flush(),
)


def _first_sync(iteration: Any) -> None:
    with iteration as messages:
        messages.next(timeout=_TIMEOUT)


SYNC_CALLS: Final[tuple[Call, ...]] = (
    *ASYNC_CALLS[:7],
    lambda nc, jet: _first_sync(jet.bind_consumer("S", "c").messages()),
    lambda nc, jet: _first_sync(jet.bind_stream("S").ordered()),
    *ASYNC_CALLS[9:11],
    lambda nc, jet: [
        str(each.headers) for each in jet.bind_stream("S").read(idle_timeout=_TIMEOUT)
    ],
    *ASYNC_CALLS[12:14],
    lambda nc, jet: list(jet.publish_many([("orders.a", b"1"), ("orders.b", b"2")])),
    *ASYNC_CALLS[15:],
)


def _sync_round(url: str, random: Random) -> int:
    calls = 0
    with js_sync.connect(url, **_OPTIONS) as connection:
        jet = connection.jetstream(timeout=_TIMEOUT)
        for call in random.choices(SYNC_CALLS, k=_CALLS):
            calls += 1
            try:
                call(connection, jet)
            except TwinstreamError:
                pass
    return calls


async def _async_round(url: str, random: Random) -> int:
    calls = 0
    async with js_async.connect(url, **_OPTIONS) as connection:
        jet = connection.jetstream(timeout=_TIMEOUT)
        for call in random.choices(ASYNC_CALLS, k=_CALLS):
            calls += 1
            try:
                await call(connection, jet)
            except TwinstreamError:
                pass
    return calls


def _run(round_: Coroutine[Any, Any, int]) -> int:
    return asyncio.run(round_)


CLIENTS: Final[dict[str, Callable[[str, Random], int]]] = {
    "js_sync": _sync_round,
    "js_async": lambda url, random: _run(_async_round(url, random)),
}


def client_rounds(twin: str, seed: int, seconds: float) -> int:
    """Run rounds of calls for some seconds; return how many calls were made.

    Raises `Finding` for an error that is not ours, also one in a thread or a task, for a round
    that takes too long, and for threads that are left.
    """
    strays: list[str] = []
    hooks = sys.excepthook, threading.excepthook
    sys.excepthook = lambda *about: strays.append("".join(traceback.format_exception(*about)))
    threading.excepthook = lambda about: strays.append(
        "".join(traceback.format_exception(about.exc_type, about.exc_value, about.exc_traceback))
    )
    calls, until = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            calls += _judged(twin, seed, strays)
            seed += 1
    finally:
        sys.excepthook, threading.excepthook = hooks
    return calls


def _judged(twin: str, seed: int, strays: list[str]) -> int:
    random = Random(seed)
    before, began = set(threading.enumerate()), time.monotonic()
    calls = 0
    with LyingServer(seed, random.choice((0.2, 0.6, 0.9))) as server:
        try:
            calls = CLIENTS[twin](server.url, random)
        except TwinstreamError:
            pass
        except Exception as error:
            raise Finding(f"{twin}, seed {seed}: {error!r}") from error
    if strays:
        raise Finding(f"{twin}, seed {seed}: {strays[0]}")
    if time.monotonic() - began > _LONGEST:
        raise Finding(f"{twin}, seed {seed}: took {time.monotonic() - began:.0f} s")
    left = {each for each in threading.enumerate() if each not in before}
    for thread in left:
        thread.join(5)
    if any(each.is_alive() for each in left):
        raise Finding(f"{twin}, seed {seed}: threads are left: {left}")
    return calls
