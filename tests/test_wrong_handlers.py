"""Handlers of the other twin's kind are refused before a message is acknowledged or retried."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

import js_async.coordination
import js_async.exactly_once
import js_async.groups
import js_async.workers
import js_sync
from js_sync.backup import backup_stream, restore_stream
from js_sync.coordination import Coordination
from js_sync.exactly_once import Processing
from js_sync.groups import StaticGroup
from js_sync.outbox import OutboxRelay, SqliteOutbox
from js_sync.workers import DeadLetters, Worker
from tests.unhurried import UNHURRIED
from twinstream.core.arguments.check_callbacks import check_takes_one
from twinstream.errors import WrongHandler
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

CONSUMER = ConsumerConfig(durable_name="c", ack_policy="explicit", max_deliver=5)


async def coroutine(_: object) -> None:
    raise AssertionError("nobody awaits this")


class Callable:
    async def __call__(self, _: object) -> None:
        raise AssertionError("nobody awaits this")


@pytest.mark.parametrize("handler", [coroutine, Callable(), 5])
def test_blocking_twin_refuses_coroutine_functions(server: NatsServer, handler: Any) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        place = Coordination(jet, "PLACE", create=True)
        makes = [
            lambda: Worker(jet, "S", "c", handler),
            lambda: jet.bind_consumer("S", "c").consume(handler),
            lambda: place.leader("x", on_elected=handler),
            lambda: place.once("x").run(handler),
        ]
        for make in makes:
            with pytest.raises(
                js_sync.BadArgument, match=r"a coroutine function, which|must be a function"
            ):
                make()


def yields(message: object) -> Any:
    ran.append(message)
    yield


class Yields:
    def __call__(self, message: object) -> Any:
        ran.append(message)
        yield


async def yields_later(message: object) -> Any:
    ran.append(message)
    yield


ran: list[object] = []
"""The messages for which the body of a generator function has run."""

GENERATORS = [
    yields,
    Yields(),
    functools.partial(yields),
    functools.partial(Yields()),
    yields_later,
]


@pytest.mark.parametrize("handler", GENERATORS)
def test_generator_functions_are_refused_before_a_message_is_acknowledged(
    server: NatsServer, handler: Any
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        place = Coordination(jet, "PLACE", create=True)
        makes = [
            lambda: Worker(jet, "S", "c", handler),
            lambda: jet.bind_consumer("S", "c").consume(handler),
            lambda: StaticGroup(jet, "S", "g").worker("m", handler),
            lambda: place.leader("x", on_elected=handler),
            lambda: place.leader("x", on_lost=handler),
            lambda: place.once("x").run(handler),
            lambda: jet.bind_consumer("S", "c").messages(on_report=handler),
        ]
        for make in makes:
            with pytest.raises(
                js_sync.BadArgument, match=r"generator function, whose|a corou|plain"
            ):
                make()

    async def main() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            with pytest.raises(WrongHandler, match="is not a coroutine function"):
                js_async.workers.Worker(nc.jetstream(), "S", "c", handler)

    asyncio.run(main())


def test_a_generator_returned_by_a_function_ends_the_work(server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name="YIELDS", subjects=["yields"]))
        consumer = stream.create_consumer(CONSUMER)
        for handler in (lambda message: yields(message), lambda message: yields_later(message)):
            # The message before is only redelivered after `ack_wait`, which is 30 s.
            jet.publish("yields")
            with pytest.raises(WrongHandler, match=r"generator function|coroutine function"):
                Worker(jet, "YIELDS", "c", handler).run()
        assert consumer.info().ack_floor.stream_seq == 0
        assert ran == []
        jet.delete_stream("YIELDS")


def test_a_generator_function_may_yield_the_results_of_a_message(server: NatsServer) -> None:
    def double(message: js_sync.Message) -> Any:
        yield js_sync.PublishRequest(subject="doubled.1", data=message.data)
        yield js_sync.PublishRequest(subject="doubled.2", data=message.data)

    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name="SINGLE", subjects=["single"]))
        into = jet.create_stream(
            StreamConfig(name="DOUBLED", subjects=["doubled.*"], discard="new", allow_direct=True)
        )
        stream.create_consumer(ConsumerConfig(durable_name="c"))
        jet.publish("single", b"x")
        with Processing(
            jet, "SINGLE", "c", double, into="DOUBLED", by="id", stop_after=1
        ) as processing:
            processing.wait(timeout=60)
        assert [each.subject for each in into.read()] == ["doubled.1", "doubled.2"]
        for name in ("SINGLE", "DOUBLED"):
            jet.delete_stream(name)


def wraps(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(message: object) -> object:
        return function(message)

    return wrapper


@pytest.mark.parametrize(
    "handler",
    [
        coroutine,
        Callable(),
        functools.partial(coroutine),
        functools.partial(Callable()),
        wraps(coroutine),
        AsyncMock(),
    ],
)
def test_the_asyncio_twin_takes_every_kind_of_coroutine_function(
    server: NatsServer, handler: Any
) -> None:
    async def main() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            worker = js_async.workers.Worker(nc.jetstream(), "S", "c", handler)
            with pytest.warns(RuntimeWarning, match="was never started"):
                await worker.stop()

    asyncio.run(main())


@pytest.mark.parametrize("handler", [lambda message: coroutine(message), print, wraps(print)])
def test_the_asyncio_twin_refuses_plain_functions_at_the_call(
    server: NatsServer, handler: Any
) -> None:
    async def main() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            place = js_async.coordination.Coordination(jet, "PLACE", create=True)
            makes: list[Any] = [
                lambda: js_async.workers.Worker(jet, "S", "c", handler),
                lambda: jet.bind_consumer("S", "c").consume(handler),
                lambda: js_async.exactly_once.Processing(jet, "S", "c", handler, into="S", by="id"),
                lambda: js_async.groups.StaticGroup(jet, "S", "g").worker("m", handler),
                lambda: place.leader("x", on_elected=handler),
            ]
            for make in makes:
                with pytest.raises(WrongHandler, match="write `async def`, or use js_sync"):
                    make()
            with pytest.raises(WrongHandler, match="write `async def`, or use js_sync"):
                await place.once("x").run(handler)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("stream", "consumer", "said"),
    [
        ("stream", "c", "a stream needs a name, got <Stream S>"),
        ("a.b", "c", "stream name 'a.b'"),
        ("S", "c d", "consumer name 'c d'"),
        ("S", 5, "consumer must be a name or a ConsumerConfig, got 5"),
    ],
)
def test_a_worker_refuses_what_is_no_name_at_the_call(
    server: NatsServer, stream: Any, consumer: Any, said: str
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        given = jet.bind_stream("S") if stream == "stream" else stream
        with pytest.raises(js_sync.BadArgument, match=said):
            Worker(jet, given, consumer, print)


def nothing() -> None:
    raise AssertionError("this takes no message")


def two(message: object, other: object) -> None:
    raise AssertionError("nobody gives the other one")


def takes_one(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(message: object) -> object:
        return function(message, "given by the decorator")

    return wrapper


class Method:
    def run(self, message: object) -> None:
        raise AssertionError("this is called on no object")


@pytest.mark.parametrize("handler", [nothing, two, Method.run, [].clear])
def test_a_handler_that_cannot_take_one_message_is_refused(
    server: NatsServer, handler: Any
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        consumer = jet.bind_consumer("S", "c")
        place = Coordination(jet, "PLACE", create=True)
        makes: list[Any] = [
            lambda: Worker(jet, "S", "c", handler),
            lambda: consumer.consume(handler),
            lambda: Processing(jet, "S", "c", handler, into="S", by="id"),
            lambda: place.leader("x", on_elected=handler),
            lambda: place.once("x").run(handler),
        ]
        for make in makes:
            with pytest.raises(js_sync.BadArgument, match="must take one argument"):
                make()

    async def main() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            with pytest.raises(js_async.BadArgument, match="must take one argument"):
                nc.jetstream().bind_consumer("S", "c").consume(handler)

    asyncio.run(main())


@pytest.mark.parametrize(
    "handler",
    [
        takes_one(two),
        functools.partial(two, other=1),
        functools.partial(two, 1),
        Method().run,
        lambda *_: None,
        lambda message, more=None: None,
        print,
        str,
        set[object]().add,
        Mock(),
        Mock(spec=nothing),
        AsyncMock(spec=two),
    ],
)
def test_what_may_take_one_message_is_not_refused(handler: Any) -> None:
    check_takes_one(handler, "handler")


def test_coroutine_returned_by_a_function_ends_the_work(server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name="HIDDEN", subjects=["hidden"]))
        consumer = stream.create_consumer(CONSUMER)
        jet.publish("hidden")
        worker = Worker(jet, "HIDDEN", "c", lambda message: coroutine(message))
        with pytest.raises(WrongHandler, match="which is not awaited: write `def`"):
            worker.run()
        info = consumer.info()
        assert (info.ack_floor.stream_seq, info.num_redelivered) == (0, 0)
        jet.delete_stream("HIDDEN")


def test_a_plain_function_ends_the_work_of_the_asyncio_twin(server: NatsServer) -> None:
    calls: list[object] = []

    async def work() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            stream = await jet.create_stream(StreamConfig(name="PLAIN", subjects=["plain"]))
            consumer = await stream.create_consumer(CONSUMER)
            for _ in range(3):
                await jet.publish("plain")

            # It looks like a coroutine function, but is none.
            @functools.wraps(coroutine)
            def plain(message: Any) -> Any:
                calls.append(message)

            worker = js_async.workers.Worker(jet, "PLAIN", "c", plain, concurrency=1)
            with pytest.raises(WrongHandler, match="nothing to await: write `async def`"):
                await worker.run()
            assert len(calls) == 1
            assert (await consumer.info()).ack_floor.stream_seq == 0
            with pytest.raises(js_async.BadArgument, match="a coroutine function, got 5"):
                consumer.consume(5)  # type: ignore[arg-type]
            await jet.delete_stream("PLAIN")

    asyncio.run(work())


@pytest.mark.parametrize("callback", [coroutine, Callable(), 5])
def test_event_callbacks_are_plain_functions(
    server: NatsServer, callback: Any, tmp_path: Path
) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        consumer = jet.bind_consumer("S", "c")
        outbox = SqliteOutbox(str(tmp_path / "outbox.db"))
        stream = jet.bind_stream("S")
        folder = tmp_path / "backup"
        makes: list[tuple[str, Any]] = [
            ("on_event", lambda: js_sync.connect(server.url, on_event=callback).__enter__()),
            ("on_report", lambda: consumer.messages(on_report=callback)),
            ("on_report", lambda: consumer.consume(print, on_report=callback)),
            ("on_change", lambda: jet.bind_key_value("b").cached(on_change=callback)),
            ("on_report", lambda: jet.bind_key_value("b").cached(on_report=callback)),
            ("on_report", lambda: jet.bind_key_value("b").watch(on_report=callback)),
            ("on_report", lambda: stream.ordered(on_report=callback)),
            ("on_report", lambda: stream.push_messages(CONSUMER, on_report=callback).__enter__()),
            ("on_report", lambda: Worker(jet, "S", "c", print, on_report=callback)),
            ("on_report", lambda: DeadLetters(jet, "S", on_report=callback)),
            ("on_report", lambda: OutboxRelay(jet, outbox, "S", by="id", on_report=callback)),
            (
                "on_report",
                lambda: Processing(jet, "S", "c", print, into="S", by="id", on_report=callback),
            ),
            ("on_drop", lambda: jet.events(on_drop=callback).__enter__()),
            ("on_progress", lambda: backup_stream(jet, "S", folder, on_progress=callback)),
            ("on_progress", lambda: restore_stream(jet, folder, on_progress=callback)),
        ]
        for name, make in makes:
            with pytest.raises(js_sync.BadArgument, match=f"{name} must"):
                make()


def test_coroutine_function_as_event_handler_is_refused(server: NatsServer) -> None:
    async def main() -> None:
        with pytest.raises(js_async.BadArgument, match="on_event must be a plain function"):
            await js_async.connect(server.url, on_event=coroutine)  # type: ignore[arg-type]
        with pytest.raises(js_async.BadArgument, match="on_call must be a plain function"):
            await js_async.connect(server.url, on_call=coroutine)  # type: ignore[arg-type]

    asyncio.run(main())
