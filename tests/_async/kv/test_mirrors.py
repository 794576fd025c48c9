"""Mirrors and sources of buckets, in one domain and across two."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.buckets import bucket, listed, state
from tests._async.flow import eventually
from tests.conftest import VERSION
from twinstream.errors import NotABucket, ObjectPutFailed, OutcomeUnknown, PastNotHeld
from twinstream.models import (
    ExternalStream,
    KeyValueConfig,
    ObjectStoreConfig,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    evolve,
)
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
    assert sorted(await mirror.get_many(["a", "b"])) == ["a", "b"]
    async with mirror.watch(["a", "b"]) as watch:
        assert sorted(await state(watch)) == [("a", "put", b"1"), ("b", "put", b"6")]
        await origin.put("a", b"7")
        entry = await watch.next(timeout=30)
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
        # An update replaces the other settings; the bucket stays a mirror.
        other = evolve(config, mirror=None, description="copy")
        assert (await jet.update_key_value(other)).cached_status.config.description == "copy"
        mirror = await jet.update_key_value(config)
        assert mirror.cached_status.info.config.mirror.name == f"KV_{name}"
        assert mirror.cached_status.info.config.subjects is None
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
        await jet.bind_stream(origin.stream_name).purge(subject=f"$KV.{name}.only")
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
        assert {key: entry.value for key, entry in (await made.at(2)).items()} == {
            "a": b"1",
            "b": b"1",
        }
        assert await made.purge("b") == 6
        with pytest.raises(PastNotHeld):
            await made.at(5)
        assert [each.key for each in (await made.diff(1, 6)).changed] == ["a"]
        assert await listed(made.keys()) == ["a"]
        async with made.watch() as watch:
            assert await state(watch) == [("a", "put", b"2"), ("b", "purge", None)]
        assert (await made.purge_deletes(older_than=0)).removed == 1
        info = await jet.bind_stream(made.stream_name).info()
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


def moved(src, dest):
    """Return the subject transforms that replace one prefix by another."""
    return [SubjectTransform(src=src, dest=dest)]


async def test_a_mirror_with_a_transform_writes_to_the_subjects_of_its_origin(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name, history=3)
        only_new = moved(f"$KV.{name}.NEW.>", f"$KV.{name}_m.>")
        mirror = await bucket(
            jet,
            f"{name}_m",
            history=3,
            mirror=StreamSource(name=name, subject_transforms=only_new),
        )
        await origin.put("NEW.1", b"1")
        await has(mirror, "1", b"1")
        assert await mirror.put("3", b"3") == 2
        assert (await origin.get("NEW.3")).value == b"3"
        assert await mirror.update("1", b"2", 1) == 3
        assert await mirror.delete("3") == 4
        assert (await origin.entry("NEW.3")).operation is js.KeyValueOperation.DELETE
        with pytest.raises(js.KeyExists) as found:
            await mirror.create("1", b"")
        assert found.value.entry.key == "1"
        assert [each.seq async for each in mirror.put_many({"4": b"4"})] == [5]
        assert (await origin.get("NEW.4")).value == b"4"
        # A mirror of this mirror follows both.
        second = await bucket(jet, f"{name}_mm", mirror=StreamSource(name=f"{name}_m"))
        await has(second, "4", b"4")
        assert await second.put("5", b"5") == 6
        assert (await origin.get("NEW.5")).value == b"5"
        again = await jet.get_key_value(f"{name}_mm")
        await has(again, "5", b"5")
        assert await listed(again.keys()) == ["1", "4", "5"]


@pytest.mark.parametrize(
    "copied",
    [
        StreamSource(filter_subject="$KV.{}.a.>"),
        StreamSource(subject_transforms=moved("$KV.{}.a.*", "$KV.{}_m.x.{{{{wildcard(1)}}}}")),
        StreamSource(
            subject_transforms=[
                *moved("$KV.{}.a.>", "$KV.{}_m.x.>"),
                *moved("$KV.{}.b.>", "$KV.{}_m.x.>"),
            ]
        ),
    ],
)
async def test_a_mirror_refuses_keys_whose_subject_in_the_origin_is_unknown(opened, name, copied):
    async with opened() as jet:
        origin = await bucket(jet, name)
        changed = [
            SubjectTransform(src=each.src.format(name), dest=each.dest.format(name))
            for each in copied.subject_transforms or ()
        ]
        selected = copied.filter_subject and copied.filter_subject.format(name)
        source = StreamSource(
            name=name, filter_subject=selected, subject_transforms=changed or None
        )
        mirror = await bucket(jet, f"{name}_m", mirror=source)
        key = "other" if selected else "x.1"
        for call in (
            lambda: mirror.put(key, b""),
            lambda: mirror.create(key, b""),
            lambda: mirror.update(key, b"", 1),
            lambda: mirror.delete(key),
            lambda: mirror.purge(key),
        ):
            with pytest.raises(js.BadArgument, match=f"write to the origin, KV_{name}"):
                await call()
        assert await listed(origin.keys()) == []


async def test_a_mirror_and_a_copy_of_a_mirror_have_its_keys(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a.b", b"1")
        await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        second = await bucket(jet, f"{name}_mm", mirror=StreamSource(name=f"{name}_m"))
        await has(second, "a.b", b"1")
        assert await second.put("c", b"2") == 2
        assert (await origin.get("c")).value == b"2"
        config = KeyValueConfig(
            bucket=f"{name}_c", storage="memory", sources=[StreamSource(name=f"{name}_m")]
        )
        copy = await jet.create_key_value(config)
        await has(copy, "a.b", b"1")
        await jet.create_key_value(config)
        selected = StreamSource(name=f"{name}_m", filter_subject=f"$KV.{name}_m.a.>")
        await has(await bucket(jet, f"{name}_s", sources=[selected]), "a.b", b"1")
        # Without the bucket between, the keys of the second mirror cannot be found.
        await jet.delete_key_value(f"{name}_m")
        with pytest.raises(NotABucket, match=f"its origin KV_{name}_m does not answer"):
            await jet.get_key_value(f"{name}_mm")


async def test_a_copy_that_others_made_is_not_shown_empty(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        wrong = StreamSource(
            name=f"KV_{name}_m", subject_transforms=moved(f"$KV.{name}_m.>", f"$KV.{name}_1.>")
        )
        await jet.create_stream(
            StreamConfig(name=f"KV_{name}_1", subjects=[f"$KV.{name}_1.>"], sources=[wrong])
        )
        with pytest.raises(NotABucket, match=f"its source KV_{name}_m is a mirror"):
            await jet.get_key_value(f"{name}_1")
        plain = await jet.create_stream(
            StreamConfig(
                name=f"KV_{name}_2",
                subjects=[f"$KV.{name}_2.>"],
                sources=[StreamSource(name=f"KV_{name}")],
            )
        )

        async def arrived():
            return (await plain.info()).state.messages == 1

        await eventually(arrived)
        with pytest.raises(NotABucket, match="shows none of its 1 messages"):
            await jet.get_key_value(f"{name}_2")


async def test_a_copy_without_subjects_can_be_read(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        source = StreamSource(
            name=f"KV_{name}", subject_transforms=moved(f"$KV.{name}.>", f"$KV.{name}_r.>")
        )
        await jet.create_stream(StreamConfig(name=f"KV_{name}_r", sources=[source]))
        copy = await jet.get_key_value(f"{name}_r")
        await has(copy, "a", b"1")
        assert await listed(copy.keys()) == ["a"]
        for call in (
            lambda: copy.put("a", b""),
            lambda: copy.create("a", b""),
            lambda: copy.update("a", b"", 1),
            lambda: copy.delete("a"),
        ):
            with pytest.raises(js.BadArgument, match=f"write to the buckets .*KV_{name}"):
                await call()
        [outcome] = [each async for each in copy.put_many({"a": b""}, raise_failures=False)]
        assert isinstance(outcome.error, js.BadArgument)


async def test_sources_with_transforms_of_keys_name_a_bucket(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("new.a", b"1")
        source = StreamSource(
            name=name, subject_transforms=moved(f"$KV.{name}.new.>", f"$KV.{name}_c.>")
        )
        await has(await bucket(jet, f"{name}_c", sources=[source]), "a", b"1")
        # Transforms of other subjects belong to a stream that is not a bucket.
        await jet.create_stream(StreamConfig(name=f"{name}_s", subjects=[f"{name}.>"]))
        await jet.publish(f"{name}.b", b"2")
        stream = StreamSource(
            name=f"{name}_s", subject_transforms=moved(f"{name}.>", f"$KV.{name}_d.>")
        )
        await has(await bucket(jet, f"{name}_d", sources=[stream]), "b", b"2")


@pytest.mark.since("2.12")
async def test_a_mirror_becomes_a_bucket_only_if_its_keys_stay(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        plain = await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        await has(plain, "a", b"1")
        with pytest.raises(js.BadArgument, match="would be hidden"):
            await plain.change(lambda config: evolve(config, mirror=None))
        await has(plain, "a", b"1")
        source = StreamSource(
            name=name, subject_transforms=moved(f"$KV.{name}.>", f"$KV.{name}_own.>")
        )
        own = await bucket(jet, f"{name}_own", mirror=source)
        await has(own, "a", b"1")
        await own.change(lambda config: evolve(config, mirror=None))
        assert await own.put("b", b"2") == 2
        assert await own.update("b", b"3", 2) == 3
        assert await listed(own.keys()) == ["a", "b"]
        assert await origin.entry("b") is None


@pytest.mark.since("2.12")
async def test_an_open_mirror_that_another_program_makes_a_bucket_is_written_itself(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        source = StreamSource(
            name=name, subject_transforms=moved(f"$KV.{name}.>", f"$KV.{name}_own.>")
        )
        first = await bucket(jet, f"{name}_own", mirror=source)
        opened_before = [await jet.get_key_value(f"{name}_own") for _ in range(7)]
        [put, create, update, many, removed, purge, history] = opened_before
        await has(first, "a", b"1")
        other = await jet.get_key_value(f"{name}_own")
        await other.change(lambda config: evolve(config, mirror=None))
        assert await put.put("b", b"2") == 2
        assert (await put.get("b")).value == b"2"
        assert await create.create("c", b"3") == 3
        assert await update.update("c", b"4", 3) == 4
        assert [each.seq async for each in many.put_many({"d": b"5", "e": b"6"})] == [5, 6]
        assert await removed.delete_many("d") == 1
        assert await purge.purge("e") == 8
        assert await listed(history.keys()) == ["a", "b", "c"]
        assert [each.value for each in await history.history("b")] == [b"2"]
        # The first write through an object that has read before.
        assert await history.delete("b") == 9
        assert await listed(origin.keys()) == ["a"]


@pytest.mark.since("2.12")
async def test_an_open_mirror_whose_keys_moved_is_to_be_opened_again(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        mirror = await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        await has(mirror, "a", b"1")
        # Not as `change` would do it, which refuses that.
        stream = await jet.get_stream(f"KV_{name}_m")
        await stream.change(
            lambda config: evolve(config, mirror=None, subjects=[f"$KV.{name}_m.>"])
        )
        for write in (
            lambda: mirror.put("b", b"2"),
            lambda: mirror.create("b", b"2"),
            lambda: mirror.delete("a", revision=1),
            lambda: mirror.delete_many("a", purge=True),
        ):
            with pytest.raises(js.BadArgument, match=f"longer a mirror of KV_{name}, .* open"):
                await write()
        # What it has is still read.
        assert (await mirror.get("a")).value == b"1"
        assert await origin.entry("b") is None


@pytest.mark.since("2.12")
async def test_a_mirror_of_a_mirror_follows_the_one_in_between(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name)
        await origin.put("a", b"1")
        source = StreamSource(
            name=name, subject_transforms=moved(f"$KV.{name}.>", f"$KV.{name}2.>")
        )
        middle = await bucket(jet, f"{name}2", mirror=source)
        last = await bucket(jet, f"{name}3", mirror=StreamSource(name=f"{name}2"))
        await has(last, "a", b"1")
        assert await last.put("b", b"2") == 2
        await has(last, "b", b"2")
        await middle.change(lambda config: evolve(config, mirror=None))
        assert await last.put("b", b"3") == 3
        await has(last, "b", b"3")
        assert (await origin.get("b")).value == b"2"


async def test_chunks_of_an_object_of_two_domains_may_remain(leaf, name):
    """Stores of one name receive the chunks of both, and the nearer one answers first."""
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        await reachable(far)
        config = ObjectStoreConfig(bucket=name, storage="memory")
        await near.create_object_store(config)
        store = await far.create_object_store(config)

        async def refused():
            try:
                await store.put("a", b"x" * 300_000)
            except ObjectPutFailed as error:
                return error
            except OutcomeUnknown:
                pass  # the nearer store has answered no chunk first, but the metadata
            return None

        error = await eventually(refused)
        assert not error.cleaned
        assert "of domain leaf" in error.__cause__.__notes__[0]


@pytest.mark.since("2.11")
async def test_what_expires_leaves_mirrors_and_copies(opened, name):
    async with opened() as jet:
        origin = await bucket(jet, name, limit_marker_ttl=1)
        mirror = await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        copy = await bucket(jet, f"{name}_c", sources=[StreamSource(name=name)])
        await origin.put("a", b"1", ttl=1)
        await origin.put("b", b"1")
        await origin.purge("b", ttl=1)
        # They come in order, so that the others have arrived, too.
        await origin.put("long", b"1", ttl=300)
        await has(mirror, "long", b"1")
        await has(copy, "long", b"1")

        async def gone():
            statuses = [await each.status() for each in (origin, mirror, copy)]
            return all(each.values == 1 for each in statuses)

        await eventually(gone)


async def test_a_name_of_a_bucket_and_of_a_stream_is_refused(opened, name):
    async with opened() as jet:
        await bucket(jet, name)
        await bucket(jet, f"KV_{name}")
        for settings in (
            {"mirror": StreamSource(name=f"KV_{name}")},
            {"sources": [StreamSource(name=f"KV_{name}")]},
        ):
            with pytest.raises(js.BadArgument, match=f"'{name}' or the second one 'KV_KV_{name}'"):
                await bucket(jet, f"{name}_m", **settings)
        for stream in (f"KV_{name}", f"KV_KV_{name}"):
            given = StreamSource(
                name=stream.removeprefix("KV_") if stream == f"KV_{name}" else stream
            )
            made = await bucket(jet, f"{name}_of_{stream}", mirror=given)
            assert made.cached_status.info.config.mirror.name == stream
