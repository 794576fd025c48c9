# Generated from tests/_async/test_kv_mirrors.py by codegen/twin.py. Edit that file instead.
"""Mirrors and sources of buckets, in one domain and across two."""

from __future__ import annotations

import pytest

import js_sync as js
from twinstream.models import ExternalStream, KeyValueConfig, StreamSource, SubjectTransform, evolve
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports
from tests._sync.buckets import bucket, listed, state
from tests._sync.flow import eventually
from tests.conftest import VERSION


@pytest.fixture(scope="module")
def leaf():
    """Return a leaf node of the domain `leaf` of a hub of the domain `hub`."""
    [port] = free_ports(1)
    listen = f'leafnodes {{ listen: "127.0.0.1:{port}" }}'
    dial = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
    with (
        NatsServer(listen, VERSION, domain="hub"),
        NatsServer(dial, VERSION, domain="leaf") as server,
    ):
        yield server


def reachable(jet):
    """Wait until a domain answers."""

    def answers():
        try:
            jet.account_info()
        except js.TwinstreamError:
            return False
        return True

    eventually(answers)


def has(made, key, value):
    """Wait until a bucket has a value; the copy takes its time."""

    def found():
        entry = made.entry(key)
        return entry is not None and entry.value == value

    eventually(found)


def whole(mirror, origin):
    """Use a mirror for everything: it reads its own copy, and writes to the origin."""
    origin.put("a", b"1")
    has(mirror, "a", b"1")
    entry = mirror.get("a")
    assert (entry.key, entry.revision) == ("a", 1)
    assert mirror.put("b", b"2") == 2
    has(mirror, "b", b"2")
    assert mirror.create("c", b"3") == 3
    assert mirror.update("c", b"4", 3) == 4
    with pytest.raises(js.RevisionMismatch):
        mirror.update("c", b"5", 3)
    with pytest.raises(js.KeyExists):
        mirror.create("c", b"5")
    mirror.delete("b")
    assert (origin.entry("b")).operation is js.KeyValueOperation.DELETE
    assert mirror.create("b", b"6") == 6
    has(mirror, "b", b"6")
    assert listed(mirror.keys()) == ["a", "b", "c"]
    assert [each.value for each in mirror.history("c")][-1] == b"4"
    assert sorted(mirror.get_many("a", "b")) == ["a", "b"]
    with mirror.watch("a", "b") as watch:
        assert sorted(state(watch)) == [("a", "put", b"1"), ("b", "put", b"6")]
        origin.put("a", b"7")
        entry = watch.next(30)
        assert (entry.key, entry.value) == ("a", b"7")


def test_a_mirror_in_the_same_domain(opened, name):
    with opened() as jet:
        origin = bucket(jet, name, history=3)
        config = KeyValueConfig(
            bucket=f"{name}_mirror", mirror=StreamSource(name=name), history=3, storage="memory"
        )
        mirror = jet.create_key_value(config)
        assert mirror.cached_status.mirror is not None
        assert mirror.stream.config.mirror.name == f"KV_{name}"
        assert mirror.stream.config.subjects is None
        whole(mirror, origin)
        again = jet.get_key_value(f"{name}_mirror")
        assert (again.get("c")).value == b"4"
        assert f"{name}_mirror" in [each for each in jet.key_value_names()]
        assert f"{name}_mirror" in [each.bucket for each in jet.key_values()]
        # Creating it again is fine.
        jet.create_key_value(config)


def test_a_mirror_does_not_hide_keys_of_its_origin(opened, name):
    """A mirror answers direct gets of its origin, also for keys that it does not copy."""
    with opened() as jet:
        origin = bucket(jet, name)
        for number in range(3):
            filtered = StreamSource(name=name, filter_subject=f"$KV.{name}.only")
            bucket(jet, f"{name}_{number}", mirror=filtered)
        origin.put("only", b"1")
        origin.put("other", b"2")
        for number in range(3):
            has(jet.get_key_value(f"{name}_{number}"), "only", b"1")
        for _ in range(100):
            assert (origin.get("other", stale=True)).value == b"2"
            assert (origin.get("other")).value == b"2"
        origin.stream.purge(subject=f"$KV.{name}.only")
        for _ in range(50):
            assert origin.entry("only") is None


def test_sources_become_keys_of_the_bucket(opened, name):
    with opened() as jet:
        one, two = bucket(jet, f"{name}_1"), bucket(jet, f"{name}_2")
        one.put("a", b"1")
        two.put("x.b", b"2")
        given = [
            StreamSource(name=f"{name}_1"),
            StreamSource(name=f"KV_{name}_2", filter_subject=f"$KV.{name}_2.x.>"),
        ]
        both = bucket(jet, name, sources=given)
        has(both, "a", b"1")
        has(both, "x.b", b"2")
        both.put("own", b"3")
        assert listed(both.keys()) == ["a", "own", "x.b"]
        # What the program gave is as it was.
        assert given[0] == StreamSource(name=f"{name}_1")
        assert len(both.cached_status.config.sources) == 2
        added = StreamSource(
            name=f"KV_{name}_2",
            subject_transforms=[
                SubjectTransform(src=f"$KV.{name}_2.>", dest=f"$KV.{name}_own.from.two.>")
            ],
        )
        own = bucket(jet, f"{name}_own", sources=[added])
        has(own, "from.two.x.b", b"2")


@pytest.mark.parametrize("domain", ["hub", "leaf"])
def test_a_bucket_of_another_domain(leaf, name, domain):
    with js.connect(leaf.url) as connection:
        jet = connection.jetstream(domain=domain, timeout=20)
        near = connection.jetstream(timeout=20)
        reachable(jet)
        # A bucket of the same name in the nearer domain is not in the way.
        bucket(near, f"{name}_decoy")
        made = bucket(jet, name, history=3)
        assert made.put("a", b"1") == 1
        assert made.create("b", b"1") == 2
        assert made.update("b", b"2", 2) == 3
        assert made.delete("a") == 4
        assert made.create("a", b"2") == 5
        with pytest.raises(js.RevisionMismatch):
            made.update("a", b"3", 1)
        assert (made.get("b", revision=2)).value == b"1"
        assert made.purge("b") == 6
        assert listed(made.keys()) == ["a"]
        with made.watch() as watch:
            assert state(watch) == [("a", "put", b"2"), ("b", "purge", None)]
        assert (made.purge_deletes(older_than=0)).removed == 1
        info = made.stream.info()
        assert info.domain == domain


def test_two_buckets_of_one_name_in_two_domains(leaf, name):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        here, there = bucket(near, name), bucket(far, name)
        for number in range(5):
            here.put("a", b"here %d" % number)
        there.put("a", b"there")
        assert (here.get("a")).value == b"here 4"
        assert (there.get("a")).value == b"there"
        assert there.update("a", b"there 2", 1) == 2
        assert (here.get("a")).value == b"here 4"


def test_a_mirror_of_another_domain(leaf, name):
    with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=20), connection.jetstream(domain="hub", timeout=20)
        reachable(far)
        origin = bucket(far, name, history=3)
        mirror = near.create_key_value(
            KeyValueConfig(
                bucket=name,
                history=3,
                storage="memory",
                mirror=StreamSource(name=name, external=ExternalStream(api="$JS.hub.API")),
            )
        )
        whole(mirror, origin)
        with pytest.raises(js.BadArgument, match="or has sources, not both"):
            mirror.change(lambda config: evolve(config, sources=[StreamSource(name="x")]))
