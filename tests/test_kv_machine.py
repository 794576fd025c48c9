"""A bucket against a model, with random histories, on a real server, in both twins.

Keys are written, deleted, purged and read in any order, while a watch and a cache follow, and their
consumers are deleted. Each call returns the result of the model. The watch delivers each revision
once and in order, and the cache has its own writes at once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import js_async
import js_sync
from tests.unhurried import UNHURRIED
from twinstream.errors import KeyDeleted, KeyExists, KeyNotFound, RevisionMismatch, TwinstreamError
from twinstream.models import KeyValueConfig
from twinstream.testing import NatsServer

KEYS = st.sampled_from(["a", "b", "c.d", "c.e"])
VALUES = st.binary(max_size=4)
NUMBERS = count(1)

Revision = tuple[int, str, bytes | None]
"""Number, operation and value."""


class ModelBucket:
    """The expected contents of a bucket."""

    def __init__(self, history: int) -> None:
        self.history = history
        self.last = 0
        self.keys: dict[str, list[Revision]] = {}

    def head(self, key: str) -> Revision | None:
        revisions = self.keys.get(key)
        return revisions[-1] if revisions else None

    def value(self, key: str) -> bytes | None:
        head = self.head(key)
        return head[2] if head else None

    def write(self, key: str, operation: str, value: bytes | None) -> int:
        self.last += 1
        revisions = [] if operation == "purge" else self.keys.get(key, [])
        self.keys[key] = [*revisions, (self.last, operation, value)][-self.history :]
        return self.last

    def living(self) -> dict[str, bytes]:
        return {key: value for key in self.keys if (value := self.value(key)) is not None}

    def drop_markers(self) -> int:
        marked = [key for key in self.keys if self.value(key) is None]
        for key in marked:
            del self.keys[key]
        return len(marked)


class BucketMachine(RuleBasedStateMachine):
    """A state machine with all operations of a bucket; the test sets `twin` and `url`."""

    twin: Any
    url: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()

    def do(self, work: Any) -> Any:
        """Return the result of a call of either twin."""
        if not inspect.isawaitable(work):
            return work

        async def awaited() -> Any:
            return await work

        return self.runner.run(awaited())

    def refused(self, work: Any, kind: type[TwinstreamError]) -> Any:
        try:
            self.do(work() if callable(work) else work)
        except kind as error:
            return error
        raise AssertionError(f"not refused with {kind.__name__}")

    def listed(self, keys: Any) -> list[str]:
        if self.twin is js_sync:
            return list(keys)

        async def all_of() -> list[str]:
            return [each async for each in keys]

        return self.runner.run(all_of())

    @initialize(history=st.sampled_from([1, 2, 5]))
    def begin(self, history: int) -> None:
        self.model = ModelBucket(history)

        async def opened() -> Any:
            return await js_async.connect(self.url, **UNHURRIED)

        if self.twin is js_async:
            self.connection = self.runner.run(opened())
        else:
            self.connection = js_sync.connect(self.url, **UNHURRIED)
        jet = self.connection.jetstream()
        name = f"M{next(NUMBERS)}"
        config = KeyValueConfig(bucket=name, history=history, storage="memory")
        self.bucket = self.do(jet.create_key_value(config))
        self.stream = jet.bind_stream(self.bucket.stream_name)
        self.watch = self.do(self.bucket.watch())
        self.cache = self.do(self.bucket.cached())
        assert self.listed(self.watch.initial()) == []
        self.written: list[tuple[str, Revision]] = []

    def wrote(self, key: str, operation: str, value: bytes | None, revision: int) -> None:
        assert revision == self.model.write(key, operation, value)
        self.written.append((key, (revision, operation, value)))

    # ---- writing

    @rule(key=KEYS, value=VALUES, cached=st.booleans())
    def put(self, key: str, value: bytes, cached: bool) -> None:
        where = self.cache if cached else self.bucket
        self.wrote(key, "put", value, self.do(where.put(key, value)))
        if cached:
            assert self.cache[key] == value

    @rule(key=KEYS, value=VALUES)
    def create(self, key: str, value: bytes) -> None:
        head = self.model.head(key)
        if head is not None and head[2] is not None:
            error = self.refused(lambda: self.bucket.create(key, value), KeyExists)
            assert (error.actual, error.entry.value) == (head[0], head[2])
        else:
            self.wrote(key, "put", value, self.do(self.bucket.create(key, value)))

    @rule(key=KEYS, value=VALUES, late=st.integers(0, 3), how=st.sampled_from("udp"))
    def conditional(self, key: str, value: bytes, late: int, how: str) -> None:
        head = self.model.head(key)
        revision = max(1, (head[0] if head else 1) - late)
        calls: dict[str, tuple[str, bytes | None, Any]] = {
            "u": ("put", value, lambda: self.bucket.update(key, value, revision)),
            "d": ("delete", None, lambda: self.bucket.delete(key, revision=revision)),
            "p": ("purge", None, lambda: self.bucket.purge(key, revision=revision)),
        }
        operation, stored, call = calls[how]
        if head is None or head[0] != revision:
            error = self.refused(call, RevisionMismatch)
            assert (error.expected, error.actual) == (revision, head[0] if head else 0)
        else:
            self.wrote(key, operation, stored, self.do(call()))

    @rule(key=KEYS, cached=st.booleans())
    def delete(self, key: str, cached: bool) -> None:
        where = self.cache if cached else self.bucket
        self.wrote(key, "delete", None, self.do(where.delete(key)))
        if cached:
            assert key not in self.cache

    @rule(key=KEYS)
    def purge(self, key: str) -> None:
        self.wrote(key, "purge", None, self.do(self.bucket.purge(key)))

    @rule()
    def drop_markers(self) -> None:
        # What a watch has not seen it does not see after this.
        self.take_all()
        done = self.do(self.bucket.purge_deletes(older_than=0))
        assert (done.removed, done.kept) == (self.model.drop_markers(), 0)

    # ---- reading

    @rule(key=KEYS, stale=st.booleans())
    def get(self, key: str, stale: bool) -> None:
        head = self.model.head(key)
        if head is None:
            error = self.refused(lambda: self.bucket.get(key, stale=stale), KeyNotFound)
            assert not isinstance(error, KeyDeleted)
        elif head[2] is None:
            error = self.refused(lambda: self.bucket.get(key, stale=stale), KeyDeleted)
            assert (error.entry.revision, error.entry.operation) == head[:2]
        else:
            entry = self.do(self.bucket.get(key, stale=stale))
            assert (entry.revision, entry.operation, entry.value) == head

    @rule(key=KEYS)
    def history(self, key: str) -> None:
        revisions = self.model.keys.get(key)
        if not revisions:
            self.refused(lambda: self.bucket.history(key), KeyNotFound)
            return
        found = self.do(self.bucket.history(key))
        assert [(each.revision, each.operation, each.value) for each in found] == revisions
        at = revisions[0]
        entry = self.do(self.bucket.entry(key, revision=at[0]))
        assert (entry.revision, entry.operation, entry.value) == at

    @rule(pattern=st.sampled_from([None, (), ("c.*",), ("a", "c.>"), ("*",)]))
    def lists(self, pattern: tuple[str, ...] | None) -> None:
        fits = {
            None: lambda key: True,
            (): lambda key: False,
            ("c.*",): lambda key: key.startswith("c."),
            ("a", "c.>"): lambda key: key == "a" or key.startswith("c."),
            ("*",): lambda key: "." not in key,
        }[pattern]
        wanted = {key: value for key, value in self.model.living().items() if fits(key)}
        assert sorted(self.listed(self.bucket.keys(pattern))) == sorted(wanted)
        found = self.do(self.bucket.get_many(pattern))
        assert {key: entry.value for key, entry in found.items()} == wanted

    @rule()
    def new_watch(self) -> None:
        watch = self.do(self.bucket.watch())
        found: dict[str, Revision] = {}
        for entry in self.listed(watch.initial()):
            found[entry.key] = (entry.revision, entry.operation, entry.value)
        self.do(watch.close())
        assert found == {key: self.model.head(key) for key in self.model.keys}

    # ---- what follows

    @rule()
    def take_all(self) -> None:
        """Take all entries of the watch. With a history of 1, only the last ones are certain."""
        seen: list[tuple[str, Revision]] = []
        while self.written and (not seen or seen[-1] != self.written[-1]):
            entry = self.do(self.watch.next(timeout=60))
            seen.append((entry.key, (entry.revision, entry.operation.value, entry.value)))
        places = [self.written.index(each) for each in seen]
        assert places == sorted(set(places))
        missing = [each for each in self.written if each not in seen]
        for key, revision in missing:
            # Overwritten, purged or pushed out before it was delivered.
            kept = self.model.keys.get(key, [])
            assert revision not in kept, revision
        self.written.clear()

    @precondition(lambda self: self.model.last > 0)
    @rule()
    def lose_consumers(self) -> None:
        names = self.listed(self.stream.consumer_names())
        for name in names:
            self.do(self.stream.delete_consumer(name))

    def teardown(self) -> None:
        if hasattr(self, "bucket"):
            self.take_all()
            self.do(self.watch.close())
            self.do(self.cache.close())
            self.do(self.connection.jetstream().delete_key_value(self.bucket.bucket))
            self.do(self.connection.close())
        self.runner.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a separate server, because the machine creates many buckets."""
    with NatsServer(start_timeout=300) as server:
        yield server.url


@pytest.mark.parametrize("twin", [js_sync, js_async], ids=["sync", "async"])
def test_a_bucket_does_what_its_model_does(url: str, twin: Any) -> None:
    machine = type("Machine", (BucketMachine,), {"twin": twin, "url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
