"""The public calls that read stored data, and what each of them may ask a server for.

A call names streams, subjects and objects. Whatever is stored, it may only read the streams that it
needs for that, and may only change and publish to what its rule allows.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Protocol

from attrs import field, frozen
from click.testing import CliRunner

import js_async
import js_async.coordination
import js_async.groups
import js_async.schedules
import js_async.workers
import js_sync
import js_sync.coordination
import js_sync.groups
import js_sync.schedules
import js_sync.workers
from tests.fuzz.stored.readers import broken_by
from tests.fuzz.stored.samples import (
    BODY,
    BUCKET,
    NUID,
    ORIGINAL_BLOCK,
    OTHER_NUID,
    Mutator,
    info_subject,
)
from tests.fuzz.stored.server import Asked, Consumer, Stream
from twinstream.cli.groups import twinstream
from twinstream.codecs import Base64Keys
from twinstream.core.object_store.info import digest_text
from twinstream.core.wire.subject_match import covers
from twinstream.errors import TwinstreamError
from twinstream.models import ConsumerConfig

__all__ = [
    "CALLS",
    "COMMANDS",
    "AsyncTwin",
    "Call",
    "CommandLine",
    "SyncTwin",
    "Twin",
    "broken_rule",
    "world",
]

TIMEOUT: Final = 2.0
_SECRET: Final = b"the content of SECRET"
_PATIENCE: Final = 0.02
_WORKED: Final = 0.1


class Twin(Protocol):
    """The calls of a twin, as plain functions."""

    jet: Any
    groups: Any
    """The package of groups."""
    workers: Any
    """The package of workers."""

    def schedules(self, stream_name: str) -> Any:
        """Return the schedules of a stream."""
        ...

    def call(self, work: Callable[[], Any]) -> Any:
        """Return the result of a call."""
        ...

    def every(self, work: Callable[[], Any]) -> list[Any]:
        """Return the items of an iteration."""
        ...

    def first(self, work: Callable[[], Any], count: int) -> list[Any]:
        """Return the first items of an iteration in a block, within a short time."""
        ...

    def worked(self, make: Callable[[Any], Any], seconds: float) -> None:
        """Run a worker until its handler has rejected a message, at most so many seconds."""
        ...

    def fence(self) -> None:
        """Wait until the server has received everything."""
        ...

    def close(self) -> None:
        """End."""
        ...


class SyncTwin:
    """js_sync."""

    coordination: Any = js_sync.coordination
    groups: Any = js_sync.groups
    workers: Any = js_sync.workers

    def __init__(self, url: str) -> None:
        self._connection: Final = js_sync.connect(url, request_timeout=TIMEOUT)
        self._connection.__enter__()
        self.jet: Any = self._connection.jetstream(timeout=TIMEOUT)

    def schedules(self, stream_name: str) -> Any:
        return js_sync.schedules.Schedules(self.jet, stream_name)

    def close(self) -> None:
        self._connection.close()

    def call(self, work: Callable[[], Any]) -> Any:
        return work()

    def every(self, work: Callable[[], Any]) -> list[Any]:
        return list(work())

    def first(self, work: Callable[[], Any], count: int) -> list[Any]:
        with work() as items:
            return [items.next(timeout=_PATIENCE) for _ in range(count)]

    def worked(self, make: Callable[[Any], Any], seconds: float) -> None:
        handled = threading.Event()

        def handle(message: Any) -> None:
            str(message.headers)
            handled.set()
            raise js_sync.workers.Reject("no")

        with make(handle):
            handled.wait(seconds)

    def fence(self) -> None:
        self._connection.flush()


class AsyncTwin:
    """js_async, on an event loop of its own."""

    coordination: Any = js_async.coordination
    groups: Any = js_async.groups
    workers: Any = js_async.workers

    def __init__(self, url: str) -> None:
        self._loop: Final = asyncio.new_event_loop()
        self._connection: Any = None
        self._url: Final = url
        self.jet: Any = self._loop.run_until_complete(self._opened())

    async def _opened(self) -> Any:
        self._connection = await js_async.connect(self._url, request_timeout=TIMEOUT)
        return self._connection.jetstream(timeout=TIMEOUT)

    def schedules(self, stream_name: str) -> Any:
        return js_async.schedules.Schedules(self.jet, stream_name)

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def call(self, work: Callable[[], Any]) -> Any:
        async def run() -> Any:
            found = work()
            return await found if inspect.isawaitable(found) else found

        return self._loop.run_until_complete(run())

    def every(self, work: Callable[[], Any]) -> list[Any]:
        async def run() -> list[Any]:
            found = work()
            # What `async for` reads may be awaitable too, in order to refuse it.
            if not hasattr(found, "__aiter__"):
                return list(await found if inspect.isawaitable(found) else found)
            return [each async for each in found]

        return self._loop.run_until_complete(run())

    def first(self, work: Callable[[], Any], count: int) -> list[Any]:
        async def run() -> list[Any]:
            async with work() as items:
                return [await items.next(timeout=_PATIENCE) for _ in range(count)]

        return self._loop.run_until_complete(run())

    def worked(self, make: Callable[[Any], Any], seconds: float) -> None:
        async def run() -> None:
            handled = asyncio.Event()

            async def handle(message: Any) -> None:
                str(message.headers)
                handled.set()
                raise js_async.workers.Reject("no")

            async with make(handle):
                with suppress(TimeoutError):
                    await asyncio.wait_for(handled.wait(), seconds)

        self._loop.run_until_complete(run())

    def fence(self) -> None:
        self._loop.run_until_complete(self._connection.flush())


class CommandLine:
    """The command `twinstream`, in this process."""

    jet: Any = None

    def __init__(self, url: str) -> None:
        self._url: Final = url

    def run(self, arguments: Iterable[str]) -> None:
        """Run a command: it succeeds or fails, without a traceback."""
        result = CliRunner(catch_exceptions=False).invoke(
            twinstream, [*arguments, "--server", self._url, "--timeout", "2"], color=False
        )
        assert result.exit_code in (0, 1, 2, 3), f"it ended with {result.exit_code}"
        assert result.exit_code != 2, f"wrong arguments: {result.output}"
        if "-" not in arguments and "--raw" not in arguments:
            # Tabs separate the cells of a table.
            found = broken_by(result.output.replace("\t", ""))
            assert not found, f"it printed {found!r}"

    def fence(self) -> None:
        """Nothing: each command has a connection of its own, which it closes."""

    def close(self) -> None:
        """Nothing, for the same reason."""


# ---- what is stored


def world(mutator: Mutator, kind: str) -> list[Stream]:
    """Return streams with mutations of one kind, and with what belongs to others."""
    retention = mutator.random.choice(("limits", "workqueue"))
    plain = Stream("S", ["S.>"], retention=retention, allow_msg_schedules=True)
    for _ in range(3):
        plain.add("S.new", ORIGINAL_BLOCK, BODY)
    plain.consumers["w"] = Consumer(plain, "w", {"name": "w", "filter_subject": "S.odd.>"})
    dead = {"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}
    advisories = "$JS.EVENT.ADVISORY.CONSUMER"
    failures = [f"{advisories}.MAX_DELIVERIES.S.*", f"{advisories}.MSG_TERMINATED.S.*"]
    streams = [
        plain,
        Stream("S-dead", ["dead.S.>"], **dead),
        Stream("S-failures", failures, retention="workqueue"),
        _objects(),
        _bucket(BUCKET),
        _bucket("static-consumer-groups"),
        _bucket("elastic-consumer-groups"),
        Stream("L", ["L.held.>"], allow_msg_ttl=True, max_msgs_per_subject=1),
        *_others(),
    ]
    to = {stream.name: stream for stream in streams}
    for _ in range(mutator.random.randint(1, 4)):
        message = mutator.message(kind)
        subject = message.subject.decode("utf-8", "surrogateescape")
        for name in _TARGETS[kind]:
            if any(covers(each, subject) for each in to[name].subjects):
                to[name].add(subject, message.block, message.data)
    return streams


_TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "letters": ("S-dead",),
    "advisories": ("S-failures",),
    "objects": ("OBJ_B",),
    "entries": ("KV_B",),
    "groups": ("KV_static-consumer-groups", "KV_elastic-consumer-groups"),
    "leases": ("L",),
    "schedules": ("S",),
    "messages": ("S",),
}


def _bucket(name: str) -> Stream:
    return Stream(
        f"KV_{name}",
        [f"$KV.{name}.>"],
        max_msgs_per_subject=8,
        allow_rollup_hdrs=True,
        deny_delete=True,
        discard="new",
    )


def _objects() -> Stream:
    store = Stream("OBJ_B", ["$O.B.C.>", "$O.B.M.>"], allow_rollup_hdrs=True, discard="new")
    store.add(f"$O.B.C.{NUID}", b"", BODY[:8])
    store.add(f"$O.B.C.{NUID}", b"", BODY[8:])
    store.add(f"$O.B.C.{OTHER_NUID}", b"", b"kept")
    digest = digest_text(sha256(b"kept").digest())
    store.add(
        info_subject("keep"),
        b"",
        b'{"name":"keep","bucket":"B","nuid":"%b","size":4,"chunks":1,"digest":"%b"}'
        % (OTHER_NUID.encode(), digest.encode()),
    )
    return store


def _others() -> list[Stream]:
    found = [
        Stream("VICTIM", ["VICTIM.>"]),
        Stream("SECRET", ["SECRET.>"]),
        Stream("OBJ_OTHER", ["$O.OTHER.C.>", "$O.OTHER.M.>"]),
        Stream("KV_OTHER", ["$KV.OTHER.>"]),
    ]
    for each in found:
        each.add(each.subjects[0].replace(">", "x"), b"", _SECRET)
    return found


# ---- the calls


@frozen
class Call:
    """A call, and the streams and subjects that it names."""

    kind: str
    run: Callable[[Twin, Mutator], object]
    reads: tuple[str, ...]
    """The streams that it may read, and have consumers on."""
    writes: tuple[str, ...] = ()
    """What it may ask for besides: filters of subjects."""
    purges: Callable[[dict[str, Any]], bool] = field(default=lambda body: False)
    """Whether it may purge so."""
    follows: bool = False
    """Whether it follows a link to an object of any store, which its caller may read."""


def _tried(work: Callable[[], object]) -> None:
    try:
        work()
    except TwinstreamError:
        pass


def _letters(twin: Twin) -> Any:
    return twin.call(lambda: twin.workers.DeadLetters(twin.jet, "S", on_report=str))


def _list_letters(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    twin.every(dead.letters)
    for seq in (1, 2):
        _tried(lambda seq=seq: twin.call(lambda: dead.get(seq)))  # type: ignore[misc]


def _replay(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    for letter in twin.every(dead.letters):
        _tried(lambda each=letter: twin.call(lambda: dead.replay(each)))  # type: ignore[misc]


def _replay_named(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    for letter in twin.every(dead.letters):
        _tried(
            lambda each=letter: twin.call(  # type: ignore[misc]
                lambda: dead.replay(each, subject="S.again")
            )
        )


def _reset(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    twin.call(lambda: dead.replay_by_reset("w"))


def _discard(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    for letter in [*twin.every(dead.letters), 1, 2]:
        twin.call(lambda each=letter: dead.discard(each))  # type: ignore[misc]


def _collect(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    twin.call(dead.create)
    twin.call(lambda: dead.collect(idle_timeout=_PATIENCE))


def _store(twin: Twin) -> Any:
    return twin.jet.bind_object_store(BUCKET)


def _list_objects(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    listed = twin.every(lambda: store.list(deleted=True))
    assert "keep" in [each.name for each in listed], "the good object is not listed"
    for name in ("a", "keep"):
        _tried(lambda name=name: twin.call(lambda: store.info(name)))  # type: ignore[misc]


def _watch_objects(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.first(store.watch, 1)


def _get_object(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.call(lambda: store.get_bytes("a"))


def _get_kept(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    assert twin.call(lambda: store.get_bytes("keep")) == b"kept"


def _delete_object(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.call(lambda: store.delete("a"))


def _put_object(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.call(lambda: store.put("a", b"new"))
    assert twin.call(lambda: store.get_bytes("a")) == b"new"


def _rename_object(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.call(lambda: store.update_meta("a", new_name="b"))


def _sweep(twin: Twin, _: Mutator) -> None:
    store = _store(twin)
    twin.call(lambda: store.sweep())


def _keys(twin: Twin, _: Mutator) -> None:
    values = twin.jet.bind_key_value(BUCKET)
    twin.every(lambda: values.keys())
    twin.call(lambda: values.get_many(">"))
    for key in ("a", "a.b"):
        _tried(lambda key=key: twin.call(lambda: values.get(key)))  # type: ignore[misc]
        _tried(lambda key=key: twin.call(lambda: values.history(key)))  # type: ignore[misc]


def _typed(twin: Twin, _: Mutator) -> None:
    values = twin.jet.bind_key_value(BUCKET).typed(dict)
    coded = values.with_codecs(key=Base64Keys())
    for each in (values, coded):
        twin.call(lambda each=each: each.get_many(">"))  # type: ignore[misc]
        twin.every(lambda each=each: each.keys())  # type: ignore[misc]


def _watch_keys(twin: Twin, _: Mutator) -> None:
    values = twin.jet.bind_key_value(BUCKET)
    twin.first(values.watch, 1)


def _purge_deletes(twin: Twin, _: Mutator) -> None:
    values = twin.jet.bind_key_value(BUCKET)
    twin.call(lambda: values.purge_deletes(older_than=0))


def _groups(twin: Twin, _: Mutator) -> None:
    package = twin.groups
    for make in (package.StaticGroup, package.ElasticGroup):
        group = make(twin.jet, "S", "G")
        _tried(lambda group=group: twin.call(group.info))  # type: ignore[misc]
        _tried(lambda group=group: twin.call(group.active_members))  # type: ignore[misc]
    for names in (package.static_groups, package.elastic_groups):
        twin.every(lambda names=names: names(twin.jet, "S"))  # type: ignore[misc]


def _edit_group(twin: Twin, _: Mutator) -> None:
    group = twin.groups.ElasticGroup(twin.jet, "S", "G")
    twin.call(lambda: group.add_members("z"))


def _delete_group(twin: Twin, _: Mutator) -> None:
    for make in (twin.groups.StaticGroup, twin.groups.ElasticGroup):
        group = make(twin.jet, "S", "G")
        _tried(lambda group=group: twin.call(group.delete))  # type: ignore[misc]


def _locks(twin: Twin, _: Mutator) -> None:
    places = twin.coordination.Coordination(twin.jet, "L")
    _tried(lambda: twin.call(places.lock("x", ttl=30).holder))
    twin.every(lambda: places.held())


def _evict(twin: Twin, _: Mutator) -> None:
    places = twin.coordination.Coordination(twin.jet, "L")
    for taken in twin.every(lambda: places.held("lock")):
        twin.call(lambda taken=taken: places.evict(taken))  # type: ignore[misc]


def _acquire(twin: Twin, _: Mutator) -> None:
    places = twin.coordination.Coordination(twin.jet, "L")
    lease = twin.call(places.lock("x", ttl=30).try_acquire)
    if lease is not None:
        twin.call(lease.release)


def _list_schedules(twin: Twin, _: Mutator) -> None:
    schedules = twin.schedules("S")
    twin.every(lambda: schedules.list())
    _tried(lambda: twin.call(lambda: schedules.get("S.sched.a")))


def _finish(twin: Twin, _: Mutator) -> None:
    schedules = twin.schedules("S")
    for each in twin.every(lambda: schedules.list()):
        _tried(
            lambda each=each: twin.call(  # type: ignore[misc]
                lambda: schedules.finish(each, "S.out", b"done")
            )
        )


def _cancel(twin: Twin, _: Mutator) -> None:
    schedules = twin.schedules("S")
    twin.call(lambda: schedules.cancel("S.sched.a"))


def _work(twin: Twin, _: Mutator) -> None:
    dead = _letters(twin)
    config = ConsumerConfig(durable_name="v", ack_policy="explicit", filter_subject="S.odd.>")
    with suppress(TwinstreamError):
        twin.worked(
            lambda handle: twin.workers.Worker(twin.jet, "S", config, handle, dead_letters=dead),
            _WORKED,
        )


def _work_in_group(twin: Twin, _: Mutator) -> None:
    for make in (twin.groups.StaticGroup, twin.groups.ElasticGroup):
        _tried(
            lambda make=make: twin.worked(  # type: ignore[misc]
                lambda handle: make(twin.jet, "S", "G").worker("m", handle), _PATIENCE
            )
        )


_DEAD: Final = ("S", "S-dead", "S-failures")
_GROUP: Final = ("S", "S-G", "KV_static-consumer-groups", "KV_elastic-consumer-groups")
_DELETES_DEAD: Final = ("$JS.API.STREAM.MSG.DELETE.S-dead",)
_DELETES_S: Final = ("$JS.API.STREAM.MSG.DELETE.S",)


def _own_content(body: dict[str, Any]) -> bool:
    """A purge of the content or description of the object `a`, or of what this call has put."""
    filter = str(body.get("filter"))
    if filter in (info_subject("a"), info_subject("b")):
        return True
    return covers("$O.B.C.*", filter) and filter != f"$O.B.C.{OTHER_NUID}" and "*" not in filter


def _a_marker(body: dict[str, Any]) -> bool:
    return str(body.get("filter")).startswith("$KV.B.") and ">" not in str(body.get("filter"))


CALLS: Final[dict[str, Call]] = {
    "list letters": Call("letters", _list_letters, _DEAD),
    "replay": Call(
        "letters", _replay, _DEAD, ("S.>", *_DELETES_DEAD, "$JS.API.STREAM.MSG.DELETE.S")
    ),
    "replay to a subject": Call(
        "letters",
        _replay_named,
        _DEAD,
        ("S.again", *_DELETES_DEAD, "$JS.API.STREAM.MSG.DELETE.S"),
    ),
    "reset": Call("letters", _reset, _DEAD, ("$JS.API.CONSUMER.RESET.S.w", *_DELETES_DEAD)),
    "discard": Call("letters", _discard, _DEAD, _DELETES_DEAD),
    "collect": Call("advisories", _collect, _DEAD, ("dead.S.>",)),
    "work": Call("messages", _work, _DEAD, ("dead.S.>",)),
    "list objects": Call("objects", _list_objects, ("OBJ_B",)),
    "watch objects": Call("objects", _watch_objects, ("OBJ_B",)),
    "get an object": Call("objects", _get_object, ("OBJ_B",), follows=True),
    "get another": Call("objects", _get_kept, ("OBJ_B",)),
    "delete an object": Call(
        "objects", _delete_object, ("OBJ_B",), (info_subject("a"),), _own_content
    ),
    "put an object": Call(
        "objects", _put_object, ("OBJ_B",), (info_subject("a"), "$O.B.C.*"), _own_content
    ),
    "rename an object": Call(
        "objects", _rename_object, ("OBJ_B",), (info_subject("a"), info_subject("b")), _own_content
    ),
    "sweep": Call("objects", _sweep, ("OBJ_B",), (), _own_content),
    "keys": Call("entries", _keys, ("KV_B",)),
    "typed": Call("entries", _typed, ("KV_B",)),
    "watch keys": Call("entries", _watch_keys, ("KV_B",)),
    "purge deletes": Call("entries", _purge_deletes, ("KV_B",), (), _a_marker),
    "groups": Call("groups", _groups, _GROUP),
    "work in a group": Call("groups", _work_in_group, _GROUP),
    "edit a group": Call("groups", _edit_group, _GROUP, ("$KV.elastic-consumer-groups.S.G",)),
    "delete a group": Call(
        "groups",
        _delete_group,
        _GROUP,
        (
            "$KV.elastic-consumer-groups.S.G",
            "$KV.static-consumer-groups.S.G",
            "$JS.API.STREAM.DELETE.S-G",
            "$JS.API.CONSUMER.DELETE.S.G-*",
        ),
    ),
    "locks": Call("leases", _locks, ("L",)),
    "evict": Call("leases", _evict, ("L",), ("$JS.API.STREAM.MSG.DELETE.L", "L.freed.>")),
    "acquire": Call(
        "leases",
        _acquire,
        ("L",),
        ("L.held.lock.x", "L.freed.lock.x", "$JS.API.STREAM.MSG.DELETE.L"),
    ),
    "list schedules": Call("schedules", _list_schedules, ("S",)),
    "finish": Call("schedules", _finish, ("S",), ("S.out",)),
    "cancel": Call("schedules", _cancel, ("S",), _DELETES_S),
}


def _command(*arguments: str) -> Callable[[Any, Mutator], object]:
    return lambda command, _: command.run(arguments)


_OBJECT: Final = ("OBJ_B",)
_FOLLOWS: Final = ((), lambda body: False, True)
_REPLAYS: Final = ("S.>", *_DELETES_DEAD, "$JS.API.STREAM.MSG.DELETE.S")

COMMANDS: Final[dict[str, Call]] = {
    " ".join(arguments): Call(kind, _command(*arguments), reads, *rules)
    for kind, arguments, reads, *rules in (
        ("letters", ("dlq", "ls", "S"), _DEAD),
        ("letters", ("dlq", "ls", "S", "--json"), _DEAD),
        ("letters", ("dlq", "show", "S", "1"), _DEAD),
        ("letters", ("dlq", "replay", "S", "--all", "--yes"), _DEAD, _REPLAYS),
        ("letters", ("dlq", "replay", "S", "1", "--yes", "--json"), _DEAD, _REPLAYS),
        ("letters", ("dlq", "discard", "S", "1", "--yes"), _DEAD, _DELETES_DEAD),
        ("advisories", ("dlq", "run", "S", "--once"), _DEAD, ("dead.S.>",)),
        ("advisories", ("why", "S", "w", "2", "--advisories", "S-failures"), _DEAD),
        ("advisories", ("why", "S", "w", "2", "--advisories", "S-failures", "--json"), _DEAD),
        ("messages", ("why", "S", "w", "4"), _DEAD),
        ("objects", ("object", "ls", "B", "--deleted"), _OBJECT),
        ("objects", ("object", "ls", "B", "--json"), _OBJECT),
        ("objects", ("object", "info", "B", "a"), _OBJECT),
        ("objects", ("object", "get", "B", "a", "-O", "-"), _OBJECT, *_FOLLOWS),
        ("objects", ("object", "watch", "B", "-n", "1"), _OBJECT),
        (
            "objects",
            ("object", "del", "B", "a", "--yes"),
            _OBJECT,
            (info_subject("a"),),
            _own_content,
        ),
        ("objects", ("object", "sweep", "B"), _OBJECT, (), _own_content),
        ("entries", ("kv", "ls", "B", "-l", "--display-value"), ("KV_B",)),
        ("entries", ("kv", "ls", "B", "--json"), ("KV_B",)),
        # Without a terminal, this writes the bytes of the value as they are.
        ("entries", ("kv", "get", "B", "a", "--raw"), ("KV_B",)),
        ("entries", ("kv", "get", "B", "a", "--json"), ("KV_B",)),
        ("entries", ("kv", "history", "B", "a"), ("KV_B",)),
        ("entries", ("kv", "watch", "B", "--once"), ("KV_B",)),
        (
            "entries",
            ("kv", "compact", "B", "--yes", "--older-than", "1s"),
            ("KV_B",),
            (),
            _a_marker,
        ),
        ("entries", ("kv", "purge", "B", "--all", "--yes"), ("KV_B",), ("$KV.B.>",), _a_marker),
        ("schedules", ("schedule", "ls", "S"), ("S",)),
        ("schedules", ("schedule", "show", "S", "S.sched.a"), ("S",)),
        ("schedules", ("schedule", "cancel", "S", "S.sched.a"), ("S",), _DELETES_S),
        ("leases", ("lock", "ls", "--stream", "L"), ("L",)),
        ("leases", ("lock", "ls", "--stream", "L", "--json"), ("L",)),
        (
            "leases",
            ("lock", "release", "x", "--stream", "L", "--yes"),
            ("L",),
            ("$JS.API.STREAM.MSG.DELETE.L", "L.freed.>"),
        ),
    )
}

_READS: Final = (
    "$JS.API.STREAM.INFO.{}",
    "$JS.API.STREAM.MSG.GET.{}",
    "$JS.API.DIRECT.GET.{}",
    "$JS.API.DIRECT.GET.{}.>",
    "$JS.API.CONSUMER.CREATE.{}.>",
    "$JS.API.CONSUMER.INFO.{}.*",
    "$JS.API.CONSUMER.LIST.{}",
    "$JS.API.CONSUMER.NAMES.{}",
    "$JS.API.CONSUMER.MSG.NEXT.{}.*",
    "$JS.API.CONSUMER.DELETE.{}.*",
    "$JS.ACK.{}.>",
)


_OF_A_STORE: Final = re.compile(
    r"\$JS\.(API\.(STREAM\.INFO|STREAM\.MSG\.GET|DIRECT\.GET"
    r"|CONSUMER\.(CREATE|DELETE|INFO|MSG\.NEXT))|ACK)\.OBJ_[A-Za-z0-9_-]+(\..*)?"
)


def broken_rule(call: Call, asked: Iterable[Asked], streams: Mapping[str, Stream]) -> str:
    """Return what a call did that it must not do, empty if there is nothing."""
    reads = [pattern.format(each) for each in call.reads for pattern in _READS]
    for each in asked:
        if each.data is None:
            allowed = each.subject.startswith(("_INBOX.", "L.freed."))
        elif each.subject.startswith("$JS.API.STREAM.PURGE."):
            body = _loaded(each.data)
            own = each.subject.removeprefix("$JS.API.STREAM.PURGE.") in call.reads
            allowed = own and call.purges(body)
        else:
            allowed = any(covers(one, each.subject) for one in (*reads, *call.writes))
            allowed = allowed or (call.follows and bool(_OF_A_STORE.fullmatch(each.subject)))
        if not allowed:
            return f"asked for {each!r:.500}"
    return _harmed(streams)


def _loaded(data: bytes) -> dict[str, Any]:
    return dict(json.loads(data))


def _harmed(streams: Mapping[str, Stream]) -> str:
    """Return what happened to the data of others."""
    for other in _others():
        found = streams.get(other.name)
        if found is None or found.messages != other.messages:
            return f"stream {other.name} is not as it was"
        if found.consumers:
            return f"stream {other.name} has a consumer"
    for stream in streams.values():
        for seq, each in stream.messages.items():
            if each.data == _SECRET and stream.name not in {one.name for one in _others()}:
                return f"message {seq} of {stream.name} is a copy of a secret"
    if not {1, 2} <= streams["S"].messages.keys():
        return "a message of S that no letter is about is gone"
    kept = streams["OBJ_B"].on(f"$O.B.C.{OTHER_NUID}")
    return "" if kept else "the content of another object is gone"
