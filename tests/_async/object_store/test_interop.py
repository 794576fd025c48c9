"""Object stores shared with other clients: the SDK reads what they write, and the reverse.

nats-py takes part itself. What clients in other languages write is published byte by byte.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest
from nats.js.errors import LinkIsABucketError, ObjectNotFoundError

import js_async as js
from tests.inside import stream_in
from tests.nats_py_objects import Theirs
from twinstream.errors import InvalidObjectInfo, LinkError, ObjectDeleted
from twinstream.models import ObjectStoreConfig

SIZES = [0, 1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 1_000_000]
NAMES = ["plain", "a/b c", "umläut", "😀", "?>?>"]


def digest_of(data):
    return "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()


async def test_nats_py_reads_what_we_store(server, name):
    their = Theirs(server.url, name)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        for number, size in enumerate(SIZES):
            data = os.urandom(size)
            meta = js.ObjectMeta(
                f"{NAMES[number % len(NAMES)]} {size}",
                description="words",
                headers={"One": "1", "Two": ["2", "3"]},
                metadata={"k": "v"},
                chunk_size=100_000,
            )
            await store.put(meta, data)
            assert their.get(meta.name) == data
            info = their.info(meta.name)
            assert (info.size, info.chunks) == (size, -(-size // 100_000))
            assert info.digest == digest_of(data)
            assert (info.description, info.headers) == ("words", {"One": ["1"], "Two": ["2", "3"]})
            assert (info.bucket, info.options.max_chunk_size) == (name, 100_000)
        assert sorted(their.names()) == sorted([info.name async for info in store.list()])


async def test_we_read_what_nats_py_stores(server, name):
    their = Theirs(server.url, name)
    data = {f"{NAMES[at % len(NAMES)]} {size}": os.urandom(size) for at, size in enumerate(SIZES)}
    headers = {"One": "1", "Two": ["2", "3"]}
    their.create()
    for object_name, content in data.items():
        their.put(object_name, content, description="words", headers=headers)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.get_object_store(name)
        for object_name, content in data.items():
            info = await store.info(object_name)
            assert (info.size, info.digest) == (len(content), digest_of(content))
            assert (info.description, info.headers) == ("words", {"One": ["1"], "Two": ["2", "3"]})
            assert await store.get_bytes(object_name) == content
        async with store.watch() as watch:
            found = {each.name async for each in watch.initial()}
            assert found == set(data)
        # What nats-py wrote is replaced, described and deleted like our own.
        changed = next(iter(data))
        await store.update_meta(changed, description="ours")
        assert their.info(changed).description == "ours"
        await store.put(changed, b"ours")
        assert their.get(changed) == b"ours"
        await store.delete(changed)
        with pytest.raises(ObjectNotFoundError):
            their.info(changed)
        assert their.info(changed, deleted=True).deleted


async def test_what_nats_py_deletes_and_replaces(server, name):
    their = Theirs(server.url, name)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("a", b"x" * 300_000)
        await store.put("b", b"ours")
        their.delete("a")
        their.put("b", b"theirs")
        with pytest.raises(ObjectDeleted):
            await store.info("a")
        # With a time, where nats-py writes an empty text.
        assert (await store.info("a", deleted=True)).mtime.year >= 2024
        assert await store.get_bytes("b") == b"theirs"
        assert [info.name async for info in store.list(deleted=True)] == ["a", "b"]
        await store.put("a", b"again")
        assert their.get("a") == b"again"
        found = stream_in(store).subjects(f"$O.{name}.C.>")
        assert len([subject async for subject, _ in found]) == 2


async def test_nats_py_follows_our_links(server, name):
    their = Theirs(server.url, name)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        other = await jet.create_object_store(
            ObjectStoreConfig(bucket=f"{name}_2", storage="memory")
        )
        target = await other.put("target", b"content")
        await store.add_link("link", target)
        await store.add_bucket_link("all", f"{name}_2")
        assert their.get("link") == b"content"
        with pytest.raises(LinkIsABucketError):
            their.get("all")


async def test_a_watch_of_nats_py_sees_what_we_do(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("a", b"1")
        await store.put("b", b"2")
        await store.delete("a")
        assert Theirs(server.url, name).watched() == [("b", False), ("a", True)]


# ---- descriptions of clients that cannot run here


async def fixture(jet, store, name, info, chunks=(b"con", b"tent"), *, standard=False, more=()):
    """Publish an object as another client would write it."""
    for chunk in (*chunks, *more):
        await jet.publish(f"$O.{store.bucket}.C.{info['nuid']}", chunk)
    encode = base64.b64encode if standard else base64.urlsafe_b64encode
    subject = f"$O.{store.bucket}.M.{encode(name.encode()).decode()}"
    text = json.dumps(info).encode()
    await jet.publish(subject, text, headers={"Nats-Rollup": "sub"})
    return subject


def described(store, name, **members):
    return {
        "name": name,
        "bucket": store.bucket,
        "nuid": "F1XTURE",
        "size": 7,
        "chunks": 2,
        "digest": digest_of(b"content"),
        **members,
    }


@pytest.mark.parametrize(
    "members",
    [
        {"mtime": "0001-01-01T00:00:00Z", "options": {"max_chunk_size": 131072}},
        {"mtime": ""},
        {"mtime": None, "headers": None, "description": None, "options": {"link": None}},
        {"metadata": None, "deleted": False, "headers": {}},
        {"digest": digest_of(b"content").lower()[:8] + digest_of(b"content")[8:].rstrip("=")},
        {"digest": "SHA-256=" + base64.b64encode(hashlib.sha256(b"content").digest()).decode()},
        {"bucket": "another", "of_tomorrow": [1]},
        {"digest": None},
    ],
    ids=lambda members: "+".join(members),
)
async def test_descriptions_of_other_clients(opened, name, members):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await fixture(jet, store, "a", described(store, "a", **members))
        info = await store.info("a")
        assert (info.bucket, info.size) == (name, 7)
        assert info.mtime.year >= 2024
        assert await store.get_bytes("a") == b"content"
        async with store.get("a", start=2, end=5) as reader:
            assert await reader.read() == b"nte"
        changed = await store.update_meta("a", description="d")
        assert changed.description == "d"
        assert await store.get_bytes("a") == b"content"
        await store.delete("a")
        await store.put("a", b"ours")
        assert await store.get_bytes("a") == b"ours"


async def test_an_empty_message_behind_the_content(opened, name):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await fixture(jet, store, "a", described(store, "a"), more=[b""])
        assert await store.get_bytes("a") == b"content"
        async with store.get("a", start=6) as reader:
            assert await reader.read() == b"t"


async def test_names_in_the_standard_alphabet(opened, name):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        subject = await fixture(jet, store, "?>?>", described(store, "?>?>"), standard=True)
        assert "/" in subject
        assert await store.get_bytes("?>?>") == b"content"
        # The same object under the subject of all other clients, and there once.
        await store.put("?>?>", b"ours")
        assert await store.get_bytes("?>?>") == b"ours"
        infos = [each async for each, _ in stream_in(store).subjects(f"$O.{name}.M.>")]
        assert infos == [f"$O.{name}.M.{base64.urlsafe_b64encode(b'?>?>').decode()}"]
        chunks = [each async for each, _ in stream_in(store).subjects(f"$O.{name}.C.>")]
        assert len(chunks) == 1


async def test_links_and_several_descriptions_of_one_name(opened, name):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("target", b"content")
        subject = f"$O.{name}.M.{base64.urlsafe_b64encode(b'l').decode()}"
        link = {"name": "l", "bucket": name, "options": {"link": {"bucket": name, "name": "x"}}}
        # Without a rollup, and without a nuid.
        await jet.publish(subject, json.dumps(link).encode())
        link["options"]["link"]["name"] = "target"
        await jet.publish(subject, json.dumps(link).encode())
        assert await store.get_bytes("l") == b"content"
        assert [info.name async for info in store.list()] == ["target", "l"]
        # A link to a bucket with its own name as that of the target.
        subject = f"$O.{name}.M.{base64.urlsafe_b64encode(b'b').decode()}"
        link = {"name": "b", "options": {"link": {"bucket": "elsewhere", "name": "b"}}}
        await jet.publish(subject, json.dumps(link).encode())
        with pytest.raises(LinkError, match="or it is a link to the whole bucket"):
            await store.get_bytes("b")
        await store.delete("l")
        await store.put("l", b"ours")
        assert await store.get_bytes("l") == b"ours"


@pytest.mark.parametrize(
    "text", [b"", b"no JSON", b"[]", b'{"name":7}', b'{"size":1}', b"\xff", b"[" * 100_000]
)
async def test_a_description_that_cannot_be_read(opened, name, text):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("good", b"x")
        await jet.publish(f"$O.{name}.M.{base64.urlsafe_b64encode(b'a').decode()}", text)
        with pytest.raises(InvalidObjectInfo, match="'a' at sequence"):
            await store.info("a")
        with pytest.raises(InvalidObjectInfo):
            await store.get_bytes("a")
        listed = {info.name: info async for info in store.list()}
        assert listed.keys() == {"good", "a"}
        assert "cannot be read" in listed["a"].unknown["error"]
        async with store.watch() as watch:
            assert {(await watch.next(timeout=10)).name for _ in range(2)} == {"good", "a"}
        await store.put("a", b"mended")
        assert await store.get_bytes("a") == b"mended"


@pytest.mark.parametrize("nuid", [">", "*", "a.b", ""])
async def test_a_unique_name_with_wildcards_removes_nothing(opened, name, nuid):
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("good", b"x")
        info = described(store, "a", nuid=nuid)
        subject = f"$O.{name}.M.{base64.urlsafe_b64encode(b'a').decode()}"
        await jet.publish(subject, json.dumps(info).encode())
        with pytest.raises(InvalidObjectInfo, match=r"valid NUID|nuid"):
            await store.get_bytes("a")
        await store.put("a", b"ours")
        await store.delete("a")
        assert await store.get_bytes("good") == b"x"
