"""Clusters of real servers, as a test suite uses them."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.soak import LONGEST
from twinstream.testing import NatsCluster, NatsServer
from twinstream.testing.config import HOST


def meta_group(server: NatsServer) -> dict[str, Any]:
    """Return what a server reports of the group that leads JetStream."""
    with urllib.request.urlopen(f"{server.monitoring_url}/jsz", timeout=60) as answer:
        group: dict[str, Any] = json.load(answer)["meta_cluster"]
    return group


def leader_and_others(server: NatsServer) -> tuple[str, set[str]]:
    """Return the leader of JetStream and the nodes that a server reports as online."""
    meta = meta_group(server)
    replicas = meta.get("replicas") or []
    return meta["leader"], {each["name"] for each in replicas if not each.get("offline")}


def leads_without(majority: Sequence[NatsServer], alone: str) -> bool:
    """Whether a node of the majority leads and no longer hears from the isolated node."""
    for server in majority:
        meta = meta_group(server)
        if meta.get("leader") == server.name:
            replicas = {each["name"]: each for each in meta.get("replicas") or []}
            return not replicas[alone]["current"]
    return False


def eventually(condition: Callable[[], bool], patience: float = LONGEST) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


def test_a_started_cluster_has_a_leader_that_sees_all(cluster: NatsCluster) -> None:
    names = {server.name for server in cluster.servers}
    assert cluster.url.split(",") == [server.url for server in cluster.servers]
    leader, _ = leader_and_others(cluster.servers[0])
    node = cluster.node(leader)
    assert node.name == leader
    assert leader_and_others(node)[1] == names - {leader}
    with pytest.raises(ValueError, match="its nodes are node-1"):
        cluster.node("another")


def test_cluster_continues_without_its_leader_and_accepts_it_back() -> None:
    with NatsCluster(3) as cluster:
        first, _ = leader_and_others(cluster.servers[0])
        cluster.node(first).kill()
        cluster.wait_until_ready()
        left = next(server for server in cluster.servers if server.running)
        second, _ = leader_and_others(left)
        assert second != first
        cluster.node(first).restart()
        cluster.wait_until_ready()
    assert not any(server.running for server in cluster.servers)


@pytest.mark.parametrize("silently", [False, True])
def test_a_node_is_isolated_and_rejoins(silently: bool) -> None:
    with NatsCluster(3, separable=True) as cluster:
        *majority, alone = cluster.servers
        # While the isolated node leads, the others must elect another leader to go on.
        cluster.isolate(silently=silently)
        eventually(lambda: leads_without(majority, alone.name))
        with socket.create_connection((HOST, urlsplit(alone.url).port or 0), timeout=60) as link:
            assert link.recv(4) == b"INFO"
        cluster.rejoin()
        cluster.wait_until_ready()


def test_only_a_separable_cluster_is_separated() -> None:
    with pytest.raises(ValueError, match="separable=True"):
        NatsCluster(2).isolate()


def test_nothing_is_left_of_a_cluster_that_does_not_start() -> None:
    cluster = NatsCluster(2, config="no_such_option: true")
    with pytest.raises(Exception, match="no_such_option"):
        cluster.start()
    assert not any(server.running for server in cluster.servers)
    with pytest.raises(RuntimeError):
        _ = cluster.servers[0].folder


def test_the_way_to_a_far_node_leads_through_proxies() -> None:
    with NatsCluster(3, far=0.05) as cluster:
        assert leader_and_others(cluster.servers[-1])[0]
        for server in cluster.servers:
            with urllib.request.urlopen(f"{server.monitoring_url}/routez", timeout=60) as answer:
                routes = json.load(answer)["routes"]
            assert {each["remote_name"] for each in routes} == {
                other.name for other in cluster.servers if other is not server
            }
        host, port = urlsplit(cluster.servers[-1].url).netloc.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as link:
            assert link.recv(4) == b"INFO"
