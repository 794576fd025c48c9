"""Addresses, the server pool, and the pauses between rounds."""

from __future__ import annotations

import math
import pickle
import sys
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest

from tests.tuned import Tuned
from twinstream.core.client.server_pool import (
    ReconnectPolicy,
    Rounds,
    ServerAddress,
    ServerPool,
    parse_servers,
)
from twinstream.errors import BadArgument

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
        ("nats://[fe80::1%25eth0]:1", ServerAddress("fe80::1%eth0", 1)),
        ("nats://[fe80::1%eth0]", ServerAddress("fe80::1%eth0")),
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


def test_port_zero_is_refused() -> None:
    with pytest.raises(BadArgument, match="the port must be from 1 to 65535, got 0"):
        ServerAddress.parse("nats://h:0")


@pytest.mark.parametrize("odd", "/?#")
@pytest.mark.parametrize("password", ["12{}3", "a{}b"])
def test_a_password_that_ends_the_url_is_explained(odd: str, password: str) -> None:
    with pytest.raises(BadArgument, match="in a password write / as %2F"):
        ServerAddress.parse(f"nats://ann:{password.format(odd)}@h")


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:s3cret@h",
        "nats://ann:s3cret@h:x",
        "nats://s3cret@/",
        "nats://:s3cret@h",
        "nats://ann:s3cret/1@h",
        "nats://ann:s3cret#1@h",
        "nats://ann:s3cret?1@h",
        "nats://ann:s3cret\u2100@h",
        "nats://ann:s3cret@[::1",
        "nats://ann:s3cret@a\u2100b",
    ],
)
def test_a_refused_url_keeps_its_secret(url: str) -> None:
    with pytest.raises(BadArgument) as caught:
        ServerAddress.parse(url)
    assert "s3cret" not in str(caught.value)
    # Debuggers and error reporters also show a suppressed context.
    assert caught.value.__context__ is None


def test_an_announced_host_controls_no_terminal() -> None:
    with pytest.raises(BadArgument, match="neither a name nor an address"):
        ServerAddress.parse("a\x1b[2J:4222".replace("[", ""))


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
    ("given", "reason"),
    [
        ({"attempts": None}, "attempts must be a whole number from -1 up, got None"),
        ({"attempts": -2}, "attempts must be a whole number from -1 up, got -2"),
        ({"attempts": 2.5}, "attempts must be a whole number"),
        ({"wait": "1"}, "wait must be a number of seconds >= 0, got '1'"),
        ({"wait": -1}, "wait must be a number of seconds >= 0, got -1"),
        ({"wait": 0}, r"wait must be at least 0\.01 seconds, got 0: .* processor core"),
        ({"wait": 0.001}, r"wait must be at least 0\.01 seconds, got 0\.001"),
        ({"max_wait": timedelta()}, r"max_wait must be at least 0\.01 seconds, got datetime"),
        ({"max_wait": None}, "max_wait must be a number of seconds >= 0, got None"),
        ({"jitter": "0.5"}, "jitter must be a number >= 0, .* got '0.5'"),
        ({"jitter": -0.5}, "jitter must be a number >= 0"),
        ({"jitter": math.nan}, "jitter must be a number >= 0"),
    ],
)
def test_invalid_policy_is_refused_at_once(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
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
        ServerAddress("b", 4223, True, "ann", "s3cret", "a"),
        ServerAddress("::1", 4222, True, "ann", "s3cret", "a"),
    ]
    assert pool.round() == [given, *new]
    assert pool.discover(["b:4223"], given) == []


def test_a_strange_address_among_the_discovered_is_passed_over() -> None:
    pool = ServerPool([A], None)
    too_long = f"{'x' * 64}:4222"
    found = pool.discover(["b:99999", "http://x", "", too_long, "a..b:4222", "c:4222"], A)
    assert [str(each) for each in found] == ["c:4222"]


def test_servers_that_left_the_cluster_are_forgotten() -> None:
    pool, b, c = ServerPool([A], None), A.announced("b", 4222), A.announced("c", 4222)
    assert pool.discover(["b:4222", "a:4222"], A) == [b]
    pool.prefer(b)
    assert pool.discover(["c:4222"], b) == [c]
    # The current one stays, whatever it says of itself; so do those that were given.
    assert pool.round() == [b, A, c]
    pool.prefer(c)
    assert pool.discover(["c:4222"], c) == []
    assert pool.round() == [c, A]
    assert pool.discover([], c) == []
    assert pool.round() == [c, A]
    assert pool.discover(["b:4222", "c:4222"], c) == [b]


def test_announced_numbers_have_the_name_that_the_user_gave() -> None:
    pool = ServerPool([A, ServerAddress("10.0.0.9")], None)
    (number,) = pool.discover(["10.0.0.1:4222"], A)
    assert (number.name, str(number)) == ("a", "10.0.0.1:4222")
    named, another = pool.discover(["b:4222", "10.0.0.2:4222"], number)
    assert (named.name, another.name) == ("b", "a")
    # A server does not choose the name that another one is verified by.
    (behind,) = pool.discover(["10.0.0.4:4222"], named)
    assert behind.name == "a"
    (other,) = pool.discover(["10.0.0.3:4222"], ServerAddress("10.0.0.9"))
    assert other.name == "10.0.0.3"
    (named,) = pool.discover(["c:4222"], ServerAddress("10.0.0.9"))
    (behind,) = pool.discover(["10.0.0.5:4222"], named)
    assert (named.name, behind.name) == ("c", "10.0.0.5")


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("nats.example.com.", "nats.example.com"),
        ("nats.example.com", "nats.example.com"),
        ("[fe80::1%25eth0]", "fe80::1"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_certificates_hold_no_dot_at_the_end_and_no_zone(host: str, name: str) -> None:
    address = ServerAddress.parse(f"tls://{host}:4222")
    assert address.name == name
    # The resolver gets the dot and the zone: they mean something to it.
    assert address.host == host.strip("[]").replace("%25", "%")


@pytest.mark.parametrize("url", ["nats://::1", "::1", "fe80::1:4222", "tls://ann:pw@2001:db8::1"])
def test_an_address_without_brackets_is_explained(url: str) -> None:
    with pytest.raises(BadArgument, match=r"needs brackets: nats://\[::1\]:4222"):
        ServerAddress.parse(url)


@pytest.mark.parametrize(
    "url", ["nats://ann:s3,cret@h", "nats://ann:12,3@h", "nats://ann,s3cret@h:4222", "ann:s,3@h"]
)
def test_a_comma_in_a_password_is_explained(url: str) -> None:
    with pytest.raises(BadArgument, match="a comma as %2C") as caught:
        parse_servers(url)
    assert "cret" not in str(caught.value)


def test_lists_with_user_infos_are_still_lists() -> None:
    for urls in ("nats://ann:pw@a,nats://ann:pw@b", "nats://ann:pw@a,ann:pw@b", "a,nats://t@b"):
        assert [each.host for each in parse_servers(urls)] == ["a", "b"]
    assert parse_servers(["nats://ann:s3,cret@h"])[0].password == "s3,cret"
    assert parse_servers("nats://ann:s3%2Ccret@h")[0].password == "s3,cret"


def test_invalid_host_label_is_refused() -> None:
    for host in ("x" * 64, "a..b", f"a.{'x' * 64}.c"):
        with pytest.raises(BadArgument, match="neither a name nor an address"):
            ServerAddress.parse(f"nats://{host}")
    assert ServerAddress.parse("nats://x" + "y" * 62).port == 4222


def test_many_announced_servers_cost_little_and_are_bounded() -> None:
    """Each address is compared with a few others at most. Of 20,000 addresses, 1,000 are kept."""
    compared = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal compared
        compared += event == "call" and frame.f_code is ServerAddress.__eq__.__code__

    pool, current = ServerPool([A, B], None), A
    sys.setprofile(count)
    try:
        for turn in range(3):
            urls = [f"10.{turn}.{n // 250}.{n % 250}:4222" for n in range(20_000)]
            assert len(pool.discover(urls, current)) == 1000
            pool.prefer(current)
            assert len(pool.round()) <= 1003
    finally:
        sys.setprofile(None)
    assert 0 < compared < 20_000


def test_a_connection_that_breaks_at_once_counts_as_a_failed_round() -> None:
    rounds = Rounds(ReconnectPolicy(attempts=4, wait=1, max_wait=10, jitter=0))
    pauses = []
    while not rounds.is_over:
        pauses.append(rounds.next_pause(0.0))
        rounds.broke(9.9)
    assert pauses == [0, 1, 2, 4]
    rounds.broke(10)
    assert not rounds.is_over
    assert rounds.next_pause(0.0) == 0
    endless = Rounds(ReconnectPolicy(attempts=-1))
    for _ in range(100):
        endless.next_pause(0.0)
    assert not endless.is_over


def test_servers_are_found_while_others_are_put_in_order() -> None:
    """A thread sorts the servers after a new connection, while another one adds servers."""

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


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1",
        "nats://127.0.0.1:4222",
        "nats://localhost:4222/",
        "tls://a.example.com:1",
        "nats-1:65535",
        "a.",
        "nats://x:00042",
        "nats:4222",
    ],
)
def test_the_usual_form_is_read_as_all_others(url: str, tuned: Tuned) -> None:
    found = ServerAddress.parse(url)
    tuned("plain address", "(?!)")
    assert ServerAddress.parse(url) == found


@pytest.mark.parametrize("url", ["a..b", ".a", f"nats://{'a' * 64}.b", "a:0", "a:65536", "tls://"])
def test_the_usual_form_is_refused_as_all_others(url: str, tuned: Tuned) -> None:
    with pytest.raises(BadArgument) as caught:
        ServerAddress.parse(url)
    tuned("plain address", "(?!)")
    with pytest.raises(BadArgument) as other:
        ServerAddress.parse(url)
    assert str(caught.value) == str(other.value)
