"""Mirrors and sources of buckets, in one domain and across two."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.buckets import bucket, listed, state
from tests._async.flow import eventually
from tests.conftest import VERSION
from twinstream.models import ExternalStream, KeyValueConfig, StreamSource, SubjectTransform, evolve
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports


@pytest.fixture(scope="module")
def leaf():
    """Return a leaf node with the domain `leaf`, connected to a hub with the domain `hub`."""
    [port] = free_ports(1)
    listen = f'leafnodes {{ listen: "127.0.0.1:{port}" }}'
    dial = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
    with (
        NatsServer(listen, VERSION, domain="hub"),
        NatsServer(dial, VERSION, domain="leaf") as server,
    ):
        yield server


async def reachable(jet):
    """Wait until a domain answers."""

    async def answers():
        try:
            await jet.account_info()
        except js.TwinstreamError:
            return False
        return True

    await eventually(answers)


async def has(made, key, value):
    """Wait until a bucket has a value. A mirror gets its copy with a delay."""

    async def found():
        entry = await made.entry(key)
        return entry is not None and entry.value == value

    await eventually(found)


async def whole(mirror, origin):
    """Use all operations of a mirror: it reads its own copy, and writes to the origin."""
    await origin.put("a", b"1")
    await has(mirror, "a", b"1")
    entry = await mirror.get("a")
    assert (entry.key, entry.revision) == ("a", 1)
    assert await mirror.put("b", b"2") == 2
    await has(mirror, "b", b"2")
    assert await mirror.create("c", b"3") == 3
    assert await mirror.update("c", b"4", 3) == 4
    with pytest.raises(js.RevisionMismatch):
        await mirror.update("c", b"5", 3)
    with pytest.raises(js.KeyExists):
        await mirror.create("c", b"5")
    await mirror.delete("b")
    assert (await origin.entry("b")).operation is js.KeyValueOperation.DELETE
    assert await mirror.create("b", b"6") == 6
    await has(mirror, "b", b"6")
    assert await listed(mirror.keys()) == ["a", "b", "c"]
    assert [each.value for each in await mirror.history("c")][-1] == b"4"
    assert sorted(await mirror.get_many("a", "b")) == ["a", "b"]
    async with mirror.watch("a", "b") as watch:
        assert sorted(await state(watch)) == [("a", "put", b"1"), ("b", "put", b"6")]
        await origin.put("a", b"7")
        entry = await watch.next(30)
        assert (entry.key, entry.value) == ("a", b"7")
    outcomes = mirror.put_many({"d": b"8", "e": b"9"})
    assert [each.seq async for each in outcomes] == [8, 9]
    assert (await origin.get("e")).value == b"9"


async def test_a_mirror_in_the_same_domain(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name, history=3)
        config = KeyValueConfig(
            bucket=f"{name}_mirror", mirror=StreamSource(name=name), history=3, storage="memory"
        )
        mirror = await jet.create_key_value(config)
        assert mirror.cached_status.mirror is not None
        assert mirror.stream.config.mirror.name == f"KV_{name}"
        assert mirror.stream.config.subjects is None
        await whole(mirror, origin)
        again = await jet.get_key_value(f"{name}_mirror")
        assert (await again.get("c")).value == b"4"
        assert f"{name}_mirror" in [each async for each in jet.key_value_names()]
        assert f"{name}_mirror" in [each.bucket async for each in jet.key_values()]
        # Creating it again is fine.
        await jet.create_key_value(config)


async def test_a_mirror_does_not_hide_keys_of_its_origin(opened, name):
    """A mirror answers direct gets of its origin, also for keys that it does not copy."""
    async with opened() as jet:
        origin = await bucket(jet, name)
        for number in range(3):
            filtered = StreamSource(name=name, filter_subject=f"$KV.{name}.only")
            await bucket(jet, f"{name}_{number}", mirror=filtered)
        await origin.put("only", b"1")
        await origin.put("other", b"2")
        for number in range(3):
            await has(await jet.get_key_value(f"{name}_{number}"), "only", b"1")
        for _ in range(100):
            assert (await origin.get("other", stale=True)).value == b"2"
            assert (await origin.get("other")).value == b"2"
        await origin.stream.purge(subject=f"$KV.{name}.only")
        for _ in range(50):
            assert await origin.entry("only") is None


async def test_sources_become_keys_of_the_bucket(opened, name):
    async with opened() as jet:
        one, two = await bucket(jet, f"{name}_1"), await bucket(jet, f"{name}_2")
        await one.put("a", b"1")
        await two.put("x.b", b"2")
        given = [
            StreamSource(name=f"{name}_1"),
            StreamSource(name=f"KV_{name}_2", filter_subject=f"$KV.{name}_2.x.>"),
        ]
        both = await bucket(jet, name, sources=given)
        await has(both, "a", b"1")
        await has(both, "x.b", b"2")
        await both.put("own", b"3")
        assert await listed(both.keys()) == ["a", "own", "x.b"]
        # What the program gave is as it was.
        assert given[0] == StreamSource(name=f"{name}_1")
        assert len(both.cached_status.config.sources) == 2
        added = StreamSource(
            name=f"KV_{name}_2",
            subject_transforms=[
                SubjectTransform(src=f"$KV.{name}_2.>", dest=f"$KV.{name}_own.from.two.>")
            ],
        )
        own = await bucket(jet, f"{name}_own", sources=[added])
        await has(own, "from.two.x.b", b"2")


@pytest.mark.parametrize("domain", ["hub", "leaf"])
async def test_a_bucket_of_another_domain(leaf, name, domain):
    async with js.connect(leaf.url) as connection:
        jet = connection.jetstream(domain=domain, timeout=20)
        near = connection.jetstream(timeout=20)
        await reachable(jet)
        # A bucket of the same name in the nearer domain is not in the way.
        await bucket(near, f"{name}_decoy")
        made = await bucket(jet, name, history=3)
        assert await made.put("a", b"1") == 1
        assert await made.create("b", b"1") == 2
        assert await made.update("b", b"2", 2) == 3
        assert await made.delete("a") == 4
        assert await made.create("a", b"2") == 5
        with pytest.raises(js.RevisionMismatch):
            await made.update("a", b"3", 1)
        assert (await made.get("b", revision=2)).value == b"1"
        assert await made.purge("b") == 6
        assert await listed(made.keys()) == ["a"]
        async with made.watch() as watch:
            assert await state(watch) == [("a", "put", b"2"), ("b", "purge", None)]
        assert (await made.purge_deletes(older_than=0)).removed == 1
        info = await made.stream.info()
        assert info.domain == domain


async def test_two_buckets_of_one_name_in_two_domains(leaf, name):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        await reachable(far)
        here, there = await bucket(near, name), await bucket(far, name)
        for number in range(5):
            await here.put("a", b"here %d" % number)
        await there.put("a", b"there")
        assert (await here.get("a")).value == b"here 4"
        assert (await there.get("a")).value == b"there"
        assert await there.update("a", b"there 2", 1) == 2
        assert (await here.get("a")).value == b"here 4"


async def test_a_mirror_of_another_domain(leaf, name):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        await reachable(far)
        origin = await bucket(far, name, history=3)
        mirror = await near.create_key_value(
            KeyValueConfig(
                bucket=name,
                history=3,
                storage="memory",
                mirror=StreamSource(name=name, external=ExternalStream(api="$JS.hub.API")),
            )
        )
        await whole(mirror, origin)
        with pytest.raises(js.BadArgument, match="or has sources, not both"):
            await mirror.change(lambda config: evolve(config, sources=[StreamSource(name="x")]))
