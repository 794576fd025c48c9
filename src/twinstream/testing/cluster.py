"""A cluster of real `nats-server` processes on loopback."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import Any, Final, Self
from urllib.parse import urlsplit

from twinstream.testing.config import HOST
from twinstream.testing.placement import places_streams
from twinstream.testing.ports import free_ports
from twinstream.testing.proxy import Proxy
from twinstream.testing.server import NatsServer, ServerStartError

_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_POLL: Final = 0.05


class NatsCluster:
    """A cluster of servers with JetStream, to be used as a context manager.

    `servers` are the nodes; `url` has the addresses of all nodes. The start waits for a leader
    that is connected to every node and knows its storage: it creates a stream with a replica on
    each node, and deletes it. Where anonymous clients may not do that, the leader may refuse
    streams with several replicas for a while ("peer offline", 10005).

    Args:
        size: the number of nodes.
        config: text to append to the configuration of each node.
        version: the version of the servers, by default the installed one.
        domain: the JetStream domain.
        far: seconds that messages between the last node and the other nodes take. If the leader of
            a stream is on another node, the replica on the last node lags by this time.
        separable: whether `isolate` may cut the last node off from the other nodes.
        start_timeout: the maximum duration of the start in seconds.
    """

    def __init__(
        self,
        size: int = 3,
        *,
        config: str = "",
        version: str | None = None,
        domain: str | None = None,
        far: float = 0.0,
        separable: bool = False,
        start_timeout: float = 60.0,
    ) -> None:
        # All ports are chosen first, because the routes are in the configuration of every server.
        ports = free_ports(size)
        self._start_timeout = start_timeout
        self._stack = ExitStack()
        self._proxies = _proxies(ports, far) if far or separable else ()
        self.servers: Final = tuple(
            NatsServer(
                f"{_routes(number, ports, self._proxies)}\n{config}",
                version,
                domain=domain,
                name=f"node-{number}",
            )
            for number in range(1, size + 1)
        )

    @property
    def url(self) -> str:
        """The addresses of all nodes, separated by commas."""
        return ",".join(server.url for server in self.servers)

    def node(self, name: str) -> NatsServer:
        """Return the node with a server name, for example that in `cluster.leader` of an info.

        Raises `ValueError` if no node has that name.

        Args:
            name: Name of the server.
        """
        for server in self.servers:
            if server.name == name:
                return server
        names = ", ".join(server.name for server in self.servers)
        raise ValueError(f"the cluster has no node {name!r}, its nodes are {names}")

    def start(self) -> Self:
        """Start all servers, and return when a leader places streams on all of them.

        Raises `ServerStartError` after `start_timeout`, and stops the servers.
        """
        with ExitStack() as undo:
            undo.callback(self.stop)
            for proxy in self._proxies:
                self._stack.enter_context(proxy)
            for server in self.servers:
                self._stack.enter_context(server)
            self.wait_until_ready()
            undo.pop_all()
        return self

    def wait_until_ready(self) -> None:
        """Return when a running node is the leader and places streams on all running nodes.

        Raises `ServerStartError` after `start_timeout`.
        """
        deadline = time.monotonic() + self._start_timeout
        while not (self._ready() and self._places()):
            if time.monotonic() > deadline:
                raise ServerStartError(
                    f"the cluster had no leader with all nodes within {self._start_timeout:g} s;"
                    f" the end of a log:\n{self.servers[0].log[-2000:]}"
                )
            time.sleep(_POLL)

    def _ready(self) -> bool:
        """Return whether all running servers know the same running leader, and it knows them."""
        running = [server for server in self.servers if server.running]
        names = {server.name for server in running}
        for server in running:
            meta = _meta(server)
            # After a leader has stopped, some nodes still name it as the leader for a while.
            if meta is None or meta.get("leader") not in names:
                return False
            if meta["leader"] == server.name:
                replicas: list[dict[str, Any]] = meta.get("replicas") or []
                online = sum(1 for replica in replicas if not replica.get("offline"))
                if online < len(running) - 1:
                    return False
        return True

    def _places(self) -> bool:
        running = [server for server in self.servers if server.running]
        return bool(running) and places_streams(running[0].port, len(running))

    def isolate(self, *, silently: bool = False) -> None:
        """Cut the last node off from the other nodes. Clients can still connect to the last node.

        The connections between that node and the other nodes end at once. With `silently` they stay
        open and lose all bytes, as if the network dropped all packets. Raises `ValueError` if the
        cluster was created with neither `separable` nor `far`.
        """
        if not self._proxies:
            raise ValueError("this cluster has no node to isolate: make it with separable=True")
        for proxy in self._proxies:
            if silently:
                proxy.black_hole = True
            else:
                proxy.refuse = True
                proxy.cut()

    def rejoin(self) -> None:
        """Let the nodes connect to each other again after `isolate`."""
        for proxy in self._proxies:
            proxy.black_hole = proxy.refuse = False
            # Cut the connections that `silently` kept open, because they have lost bytes.
            proxy.cut()

    def stop(self) -> None:
        """Stop all servers and remove their folders."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _meta(server: NatsServer) -> dict[str, Any] | None:
    try:
        with _OPENER.open(f"{server.monitoring_url}/jsz", timeout=2) as answer:
            found: dict[str, Any] | None = json.loads(answer.read()).get("meta_cluster")
            return found
    except (urllib.error.URLError, OSError, ValueError):
        return None


def _proxies(ports: list[int], far: float) -> tuple[Proxy, ...]:
    """Return a proxy to each node; each delays data by `far` seconds."""
    proxies = tuple(Proxy(f"nats://{HOST}:{port}") for port in ports)
    for proxy in proxies:
        proxy.delay = far
    return proxies


def _routes(number: int, ports: list[int], proxies: tuple[Proxy, ...]) -> str:
    """Return the cluster block of a node's configuration.

    With proxies, the last node connects to the other nodes through the proxies, and vice versa.
    """
    near = [f"{HOST}:{port}" for port in ports]
    known, advertise = near, ""
    if proxies:
        # Connected nodes exchange the addresses of further nodes. Advertise the proxies' addresses,
        # so that no node bypasses the proxies.
        proxied = [urlsplit(proxy.url).netloc for proxy in proxies]
        known = proxied[:-1] if number == len(ports) else near[:-1]
        advertise = f"advertise: '{proxied[number - 1]}',"
    routes = ", ".join(f'"nats-route://{each}"' for each in known)
    return f"cluster {{ name: test, listen: '{near[number - 1]}', {advertise} routes: [{routes}] }}"
