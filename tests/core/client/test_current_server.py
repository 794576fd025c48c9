"""The server of a connection: what it announced, and which servers are tried after it failed."""

from __future__ import annotations

from twinstream.core.client.current_server import CurrentServer
from twinstream.core.client.handshake import ServerInfo
from twinstream.core.client.server_pool import ReconnectPolicy, ServerAddress, parse_servers

GIVEN = parse_servers("nats://a:4222,nats://b:4222")
ANNOUNCING = ServerInfo({}, connect_urls=("c:4222",))


def hosts(servers: list[ServerAddress]) -> list[str]:
    return [each.host for each in servers]


def test_servers_of_an_info_that_an_attacker_may_have_changed_are_not_tried() -> None:
    server = CurrentServer(GIVEN, None, None)
    assert server.discover() == []
    server.heard(ANNOUNCING)
    server.distrust()
    assert server.discover() == []
    server.heard(ANNOUNCING)
    assert hosts(server.discover()) == ["c"]
    assert hosts(server.round()) == ["a", "b", "c"]


def test_server_that_accepted_is_tried_first_until_its_connection_is_lost() -> None:
    server = CurrentServer(GIVEN, None, None)
    server.accepted(GIVEN[1])
    assert server.connected(100.0) == 0.0
    server.prefer()
    assert hosts(server.round()) == ["b", "a"]
    server.lost(160.0)
    assert hosts(server.round()) == ["a", "b"]
    assert server.connected(163.5) == 3.5


def test_connection_that_lasted_begins_the_count_of_rounds_again() -> None:
    server = CurrentServer(GIVEN, ReconnectPolicy(max_wait=5.0), None)
    server.rounds.next_pause(0.0)
    server.connected(100.0)
    server.lost(104.0)
    assert server.rounds.count == 1
    server.connected(105.0)
    server.lost(110.0)
    assert server.rounds.count == 0
