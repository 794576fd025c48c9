"""Addresses, the pool and the pauses between rounds."""

from __future__ import annotations

import math
import pickle
from datetime import timedelta
from typing import Any

import pytest

from js_core.errors import BadArgument
from js_core.servers import ReconnectPolicy, ServerAddress, ServerPool, parse_servers

A, B, C = (ServerAddress(name) for name in "abc")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("nats://localhost", ServerAddress("localhost")),
        ("localhost", ServerAddress("localhost")),
        ("localhost:1234", ServerAddress("localhost", 1234)),
        ("tls://h:1", ServerAddress("h", 1, tls=True)),
        ("nats://h/", ServerAddress("h")),
        ("nats://ann:p%40ss@h:1", ServerAddress("h", 1, user="ann", password="p@ss")),
        ("nats://t0ken@h", ServerAddress("h", user="t0ken")),
        ("nats://ann:@h", ServerAddress("h", user="ann", password="")),
        ("nats://:@h", ServerAddress("h")),
        ("[::1]:4223", ServerAddress("::1", 4223)),
        ("nats://[fe80::1]", ServerAddress("fe80::1")),
    ],
)
def test_a_url_is_read_as_an_address(url: str, wanted: ServerAddress) -> None:
    assert ServerAddress.parse(url) == wanted
    assert pickle.loads(pickle.dumps(wanted)) == wanted


@pytest.mark.parametrize(
    "url",
    [
        "http://h:1",
        "ws://h:1",
        "nats://",
        "nats://:4222",
        "nats://h:99999",
        "nats://h:port",
        "nats://h/path",
        "nats://h?x=1",
        "nats://ann:12#3@h",
        "nats://:pw@h",
        "nats://[::1",
        "",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(BadArgument, match="server"):
        parse_servers([url])


def test_no_port_stands_for_another() -> None:
    with pytest.raises(BadArgument, match="the port must be from 1 to 65535, got 0"):
        ServerAddress.parse("nats://h:0")


@pytest.mark.parametrize("odd", "/?#")
@pytest.mark.parametrize("password", ["12{}3", "a{}b"])
def test_a_password_that_ends_the_url_is_explained(odd: str, password: str) -> None:
    with pytest.raises(BadArgument, match="in a password write / as %2F"):
        ServerAddress.parse(f"nats://ann:{password.format(odd)}@h")


@pytest.mark.parametrize(
    "url", ["http://ann:s3cret@h", "nats://ann:s3cret@h:x", "nats://s3cret@/", "nats://:s3cret@h"]
)
def test_a_refused_url_keeps_its_secret(url: str) -> None:
    with pytest.raises(BadArgument) as caught:
        ServerAddress.parse(url)
    assert "s3cret" not in str(caught.value)


def test_an_address_keeps_its_secret() -> None:
    address = ServerAddress.parse("nats://ann:s3cret@h:1")
    assert "s3cret" not in repr(address) + str(address)
    assert str(address) == "h:1"
    assert str(ServerAddress("::1", 1)) == "[::1]:1"


def test_several_servers_come_as_text_or_as_a_list() -> None:
    assert parse_servers("a, b,") == parse_servers(["a", "b"]) == (A, B)
    for nothing in ("", " , ", []):
        with pytest.raises(BadArgument, match="no server given"):
            parse_servers(nothing)


def test_pauses_double_up_to_the_longest() -> None:
    policy = ReconnectPolicy(wait=0.1, max_wait=1.0, jitter=0.5)
    assert [policy.pause(n, 0.0) for n in range(7)] == [0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert policy.pause(1, 1.0) == pytest.approx(0.15)
    assert policy.pause(100_000, 1.0) == pytest.approx(1.5)
    assert policy.pause(-1, 1.0) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"attempts": None}, "attempts must be a whole number from -1 up, got None"),
        ({"attempts": -2}, "attempts must be a whole number from -1 up, got -2"),
        ({"attempts": 2.5}, "attempts must be a whole number"),
        ({"wait": "1"}, "wait must be a number of seconds from 0 up, got '1'"),
        ({"wait": -1}, "wait must be a number of seconds from 0 up, got -1"),
        ({"wait": 0}, r"wait must be at least 0\.01 seconds, got 0: .* a whole core"),
        ({"wait": 0.001}, r"wait must be at least 0\.01 seconds, got 0\.001"),
        ({"max_wait": timedelta()}, r"max_wait must be at least 0\.01 seconds, got datetime"),
        ({"max_wait": None}, "max_wait must be a number of seconds from 0 up, got None"),
        ({"jitter": "0.5"}, "jitter must be a number from 0 up, .* got '0.5'"),
        ({"jitter": -0.5}, "jitter must be a number from 0 up"),
        ({"jitter": math.nan}, "jitter must be a number from 0 up"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_before_a_link_breaks(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadArgument, match=told):
        ReconnectPolicy(**given)


def test_waits_of_a_policy_may_be_durations() -> None:
    policy = ReconnectPolicy(wait=timedelta(seconds=1), max_wait=timedelta(seconds=3), jitter=0)
    assert [policy.pause(n, 1.0) for n in range(4)] == [0, 1, 2, 3]
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_the_pool_keeps_its_order() -> None:
    assert ServerPool([A, B, C], None).round() == [A, B, C]
    assert ServerPool([A, B, C], lambda servers: servers.reverse()).round() == [C, B, A]


def test_good_servers_first_bad_ones_last() -> None:
    pool = ServerPool([A, B, C], None)
    pool.prefer(C)
    assert pool.round() == [C, A, B]
    pool.demote(C)
    assert pool.round() == [A, B, C]
    pool.round().clear()
    assert len(pool.round()) == 3


def test_discovered_servers_inherit_credentials() -> None:
    given = ServerAddress("a", 4222, True, "ann", "s3cret")
    pool = ServerPool([given], None)
    new = pool.discover(["a:4222", "b:4223", "b:4223", "[::1]:4222"], given)
    assert new == [
        ServerAddress("b", 4223, True, "ann", "s3cret"),
        ServerAddress("::1", 4222, True, "ann", "s3cret", "a"),
    ]
    assert pool.round() == [given, *new]
    assert pool.discover(["b:4223"], given) == []


def test_a_strange_address_among_the_discovered_is_passed_over() -> None:
    pool = ServerPool([A], None)
    assert pool.discover(["b:99999", "http://x", "", "c:4222"], A) == [C]


def test_servers_that_left_the_cluster_are_forgotten() -> None:
    pool = ServerPool([A], None)
    assert pool.discover(["b:4222", "a:4222"], A) == [B]
    pool.prefer(B)
    assert pool.discover(["c:4222"], B) == [C]
    # The current one stays, whatever it says of itself; so do those that were given.
    assert pool.round() == [B, A, C]
    pool.prefer(C)
    assert pool.discover(["c:4222"], C) == []
    assert pool.round() == [C, A]
    assert pool.discover([], C) == []
    assert pool.round() == [C, A]
    assert pool.discover(["b:4222", "c:4222"], C) == [B]


def test_numbers_that_a_server_tells_have_its_name() -> None:
    pool = ServerPool([A, ServerAddress("10.0.0.9")], None)
    (number,) = pool.discover(["10.0.0.1:4222"], A)
    assert (number.name, str(number)) == ("a", "10.0.0.1:4222")
    named, another = pool.discover(["b:4222", "10.0.0.2:4222"], number)
    assert (named.name, another.name) == ("b", "a")
    (other,) = pool.discover(["10.0.0.3:4222"], ServerAddress("10.0.0.9"))
    assert other.name == "10.0.0.3"


def test_servers_are_found_while_others_are_put_in_order() -> None:
    """Whoever makes a link puts them in order, whoever reads it finds others."""

    class Good:
        def __ne__(self, other: object) -> bool:
            pool.discover(["b:1", "c:1"], A)
            return other != B

        __hash__ = None  # type: ignore[assignment]

    pool = ServerPool([A, B], None)
    pool.prefer(Good())  # type: ignore[arg-type]
    assert [str(server) for server in pool.round()] == ["b:4222", "a:4222", "b:1", "c:1"]
    pool.demote(B)
    assert [str(server) for server in pool.round()] == ["a:4222", "b:1", "c:1", "b:4222"]
