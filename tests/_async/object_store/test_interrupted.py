"""Calls of an object store that are interrupted between their writes, and stored foreign NUIDs.

No call may remove content that the current metadata of another object names.
"""

from __future__ import annotations

import base64
import json
import logging

import pytest

import js_async as js
from js_async.object_store.content import OldContent
from js_async.object_store.infos import object_place
from tests.hooked import starts
from tests.inside import api_of, stream_in
from twinstream.core.object_store.claims import Claims
from twinstream.errors import ObjectDeleted
from twinstream.models import ObjectStoreConfig

JAVA = ">>>???"
"""A name that nats.java stores under another subject."""


class Killed(BaseException):
    """The program was killed by the test."""


class _Replies:
    """The replies of a connection. Each publish takes the path on which it can be counted."""

    def __init__(self, transport, dying):
        self._transport = transport
        self._dying = dying

    def __getattr__(self, name):
        return getattr(self._transport.replies, name)

    def write(self, *_, **__):
        return None

    async def send(self, subject, headers, payload, deadline, fits=None):
        replies = self._transport.replies

        async def send(wait=False):
            sent = await replies.send(subject, headers, payload, deadline, fits)
            if wait:
                await replies.wait(sent, deadline)
            return sent

        return await self._dying.step(send, is_write=b".M." in subject)


class Dying:
    """A transport of a program that is killed before or after one of its writes, from 1."""

    def __init__(self, transport, at, *, after):
        self._transport = transport
        self.replies = _Replies(transport, self)
        self.at = at
        self.after = after
        self.writes = 0
        self.is_dead = False

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def step(self, send, *, is_write):
        """Send a request, and count it if it changes the store."""
        if self.is_dead:
            raise Killed
        self.writes += is_write
        if is_write and self.writes == self.at:
            self.is_dead = True
            if self.after:
                await send(wait=True)
            raise Killed
        return await send()

    async def ask(self, subject, headers, payload, *args, **options):
        async def send(wait=False):
            return await self._transport.ask(subject, headers, payload, *args, **options)

        return await self.step(send, is_write=".STREAM.PURGE." in subject)


async def stored(jet, name):
    return await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))


async def contents_of(store):
    """Return the content of each object. Each one must be complete."""
    found = {}
    async for info in store.list():
        try:
            found[info.name] = await store.get_bytes(info.name)
        except ObjectDeleted:
            # The metadata under the subject of nats.java follows with the next call.
            assert info.name == JAVA
    return found


async def describe(jet, store, name, nuid, *, standard=False, **members):
    """Store metadata as a stranger does."""
    encode = base64.standard_b64encode if standard else base64.urlsafe_b64encode
    token = encode(name.encode()).decode()
    given = {"name": name, "bucket": store.bucket, "nuid": nuid, "size": 3, "chunks": 1}
    await jet.publish(f"$O.{store.bucket}.M.{token}", json.dumps({**given, **members}).encode())


async def put(store):
    await store.put("a", b"new")


async def delete(store):
    await store.delete("a")


async def rename(store):
    await store.update_meta("a", new_name="b")


async def put_new(store):
    await store.put("b", b"new")


async def delete_new(store):
    await store.delete("b")


async def rename_further(store):
    await store.update_meta("a", new_name="c")


async def rename_back(store):
    await store.update_meta("b", new_name="a")


async def put_of_java(store):
    await store.put(JAVA, b"new")


async def describe_of_java(store):
    await store.update_meta(JAVA, description="d")


async def rename_of_java(store):
    await store.update_meta(JAVA, new_name="b")


async def delete_of_java(store):
    await store.delete(JAVA)


FIRST = [
    put,
    delete,
    rename,
    put_of_java,
    describe_of_java,
    rename_of_java,
    delete_of_java,
]
NEXT = [
    put,
    delete,
    rename,
    put_new,
    delete_new,
    rename_further,
    rename_back,
    put_of_java,
    rename_of_java,
    delete_of_java,
]


async def prepared(jet, store):
    """Store the objects of a test again."""
    await stream_in(store).purge()
    await store.put("a", b"old")
    await store.put("other", b"other")
    made = await store.put("java", b"old")
    await describe(jet, store, JAVA, made.nuid, standard=True, digest=made.digest)
    await stream_in(store).purge(subject=store_subject(store, "java"))


def store_subject(store, name):
    return f"$O.{store.bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", FIRST)
async def test_killed_at_each_write_no_object_loses_its_content(server, name, first, after):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        store = await stored(jet, name)
        killed = 0
        for follow in NEXT:
            for at in range(1, 10):
                await prepared(jet, store)
                transport = Dying(api_of(jet).transport, at, after=after)
                dying = js.JetStream(transport).bind_object_store(name)
                try:
                    await first(dying)
                except Killed:
                    killed += 1
                else:
                    break
                found = await contents_of(store)
                assert found["other"] == b"other"
                assert set(found.values()) <= {b"old", b"new", b"other"}
                try:
                    await follow(store)
                except (js.ObjectNotFound, js.ObjectExists):
                    pass
                found = await contents_of(store)
                assert found["other"] == b"other"
                assert set(found.values()) <= {b"old", b"new", b"other"}
                if follow is first:
                    await check_repeated(store, first)
            else:
                raise AssertionError("the call never ran through")
        # At least the metadata and the removal of what it replaces.
        assert killed >= 2 * len(NEXT)


async def check_repeated(store, call):
    """A repeated call has finished what the killed one has begun."""
    found = await contents_of(store)
    infos = [info.name async for info in store.list()]
    assert len(infos) == len(set(infos))
    if call is rename:
        assert ("a" in found, found["b"]) == (False, b"old")
    elif call is rename_of_java:
        assert (JAVA in found, found["b"]) == (False, b"old")
    elif call in {delete, delete_of_java}:
        assert ("a" if call is delete else JAVA) not in found
    elif call in {put, put_of_java}:
        assert found["a" if call is put else JAVA] == b"new"


@pytest.mark.parametrize("way", ["put", "delete", "delete of deleted", "put of deleted"])
async def test_a_foreign_nuid_in_metadata_removes_nothing(opened, name, way, caplog):
    async with opened() as jet:
        store = await stored(jet, name)
        made = await store.put("a", b"old")
        await describe(jet, store, "x\n", made.nuid, deleted="deleted" in way)
        with caplog.at_level(logging.WARNING, "twinstream.object"):
            await (store.put("x\n", b"new") if way.startswith("put") else store.delete("x\n"))
        assert await store.get_bytes("a") == b"old"
        (record,) = caplog.records
        assert "'x\\n' had before is kept: object 'a' has the same content" in record.message
        # When nothing names it, the content is removed.
        await store.delete("a")
        assert f"$O.{name}.C.{made.nuid}" not in {each async for each, _ in chunks(store)}


async def test_metadata_that_cannot_be_read_keeps_the_content_that_it_names(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        made = await store.put("a", b"old")
        await describe(jet, store, "x", made.nuid, size="three")
        await jet.publish(f"$O.{name}.M.YQ", b"no JSON")
        await jet.publish(f"$O.{name}.M.eQ==", b"[]")
        await store.delete("a")
        assert {each async for each, _ in chunks(store)} == {f"$O.{name}.C.{made.nuid}"}


async def test_metadata_that_names_content_in_advance_does_not_remove_it(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        await describe(jet, store, "x", "FOLLOWS")
        await jet.publish(f"$O.{name}.C.FOLLOWS", b"old")
        await store.put("x", b"new")
        assert f"$O.{name}.C.FOLLOWS" in {each async for each, _ in chunks(store)}


async def test_content_is_removed_with_the_metadata_of_the_current_store(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        for _ in range(2):
            made = await store.put("a", b"old")
            other = await store.put("b", b"other")
            await describe(jet, store, "x", made.nuid)
            await store.delete("a")
            await store.delete("b")
            assert {each async for each, _ in chunks(store)} == {f"$O.{name}.C.{made.nuid}"}
            # A description that is purged needs no content.
            await stream_in(store).purge(subject=store_subject(store, "x"))
            await store.delete("a")
            assert {each async for each, _ in chunks(store)} == set()
            await jet.delete_object_store(name)
            await stored(jet, name)
        assert other.nuid != made.nuid


async def test_a_store_with_very_many_objects_leaves_content_to_sweep(opened, name, caplog):
    async with opened() as jet:
        store = await stored(jet, name)
        for each in "abc":
            await store.put(each, b"old")
        place = await object_place(api_of(jet), name, stream_in(store))
        old_content = OldContent(place, Claims(most=2))
        with caplog.at_level(logging.WARNING, "twinstream.object"):
            for _ in range(2):
                await old_content.remove(await store.info("a"))
        assert len(caplog.records) == 2
        assert "more than 2 objects, so only sweep() removes it" in caplog.text
        assert await contents_of(store) == dict.fromkeys("abc", b"old")


def chunks(store):
    return stream_in(store).subjects(f"$O.{store.bucket}.C.>")


class Interrupting:
    """The replies of a connection. The call that has sent the first request is interrupted."""

    def __init__(self, replies):
        self._replies = replies
        self.sent = []

    def __getattr__(self, name):
        return getattr(self._replies, name)

    def write(self, *_, **__):
        return None

    async def send(self, subject, headers, payload, deadline, fits=None):
        answer = await self._replies.send(subject, headers, payload, deadline, fits)
        self.sent.append((subject, headers))
        if len(self.sent) == 1:
            raise Killed
        return answer


class WithReplies:
    """A transport with other replies."""

    def __init__(self, transport, replies):
        self._transport = transport
        self.replies = replies

    def __getattr__(self, name):
        return getattr(self._transport, name)


async def test_a_small_object_that_is_interrupted_leaves_no_chunk(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        store = await stored(jet, name)
        transport = api_of(jet).transport
        replies = Interrupting(transport.replies)
        interrupted = js.JetStream(WithReplies(transport, replies)).bind_object_store(name)
        with pytest.raises(Killed):
            await interrupted.put("small", b"content")
        # The chunk is sent again with the same id. When that is acknowledged, it can be removed.
        first, second = replies.sent[:2]
        assert first == second
        assert (b".C." in first[0], b"Nats-Msg-Id" in first[1]) == (True, True)
        assert (await stream_in(store).info()).state.messages == 0


async def test_a_small_object_needs_no_background_work(opened, name):
    async with opened() as jet:
        store = await stored(jet, name)
        with starts() as tasks:
            await store.put("small", bytes(128 * 1024))
            assert "twinstream-publisher" not in tasks
            await store.put("two chunks", bytes(128 * 1024 + 1))
            assert "twinstream-publisher" in tasks
