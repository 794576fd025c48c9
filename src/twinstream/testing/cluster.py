"""A cluster of real ``nats-server`` processes on loopback."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import Any, Final, Self
from urllib.parse import urlsplit

from twinstream.testing.config import HOST
from twinstream.testing.ports import free_ports
from twinstream.testing.proxy import Proxy
from twinstream.testing.server import NatsServer, ServerStartError

_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_POLL: Final = 0.05


class NatsCluster:
    """A cluster of servers with JetStream.

    Use it as a context manager. ``servers`` are the nodes; ``url`` has the addresses of all of
    them. ``config`` is appended to each server's configuration, ``version`` selects their release.
    Messages between the last node and the others take ``far`` seconds: its replicas lag that much
    behind a leader on another node. With ``separable``, :meth:`isolate` cuts the last node off from
    the others. The start waits, for at most ``start_timeout`` seconds, for a
    leader that sees every node. On a busy machine the leader may learn the storage of the nodes
    later: until then it refuses streams with several replicas ("peer offline", 10005), and a test
    must retry.
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
        # The routes must be known before the first server starts.
        ports = free_ports(size)
        self._start_timeout = start_timeout
        self._stack = ExitStack()
        self._ways = _ways(ports, far) if far or separable else ()
        self.servers: Final = tuple(
            NatsServer(
                f"{_routes(number, ports, self._ways)}\n{config}",
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
        """Return the server with a name, as in ``cluster.leader`` of the JetStream API."""
        return next(server for server in self.servers if server.name == name)

    def start(self) -> Self:
        """Start all servers and return when JetStream has a leader that sees them all."""
        try:
            for way in self._ways:
                self._stack.enter_context(way)
            for server in self.servers:
                self._stack.enter_context(server)
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def wait_until_ready(self) -> None:
        """Return when one of the running nodes leads them all; raises :class:`ServerStartError`."""
        deadline = time.monotonic() + self._start_timeout
        while not self._ready():
            if time.monotonic() > deadline:
                raise ServerStartError(
                    f"the cluster had no leader with all nodes within {self._start_timeout:g} s;"
                    f" the end of a log:\n{self.servers[0].log[-2000:]}"
                )
            time.sleep(_POLL)

    def _ready(self) -> bool:
        running = [server for server in self.servers if server.running]
        names = {server.name for server in running}
        for server in running:
            meta = _meta(server)
            # For a while some nodes still report a leader that has ended.
            if meta is None or meta.get("leader") not in names:
                return False
            if meta["leader"] == server.name:
                replicas: list[dict[str, Any]] = meta.get("replicas") or []
                online = sum(1 for replica in replicas if not replica.get("offline"))
                if online < len(running) - 1:
                    return False
        return True

    def isolate(self, *, silently: bool = False) -> None:
        """Cut the last node off from the others; clients still reach it.

        The connections between the nodes end at once. With ``silently`` they stay open and lose
        all bytes, as where a network drops packets. Needs ``separable`` or ``far``.
        """
        if not self._ways:
            raise ValueError("this cluster has no node to isolate: make it with separable=True")
        for way in self._ways:
            if silently:
                way.black_hole = True
            else:
                way.refuse = True
                way.cut()

    def rejoin(self) -> None:
        """End what :meth:`isolate` began."""
        for way in self._ways:
            way.black_hole = way.refuse = False
            # A connection that lost bytes is of no use.
            way.cut()

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


def _ways(ports: list[int], far: float) -> tuple[Proxy, ...]:
    """Return a proxy to each node, which delays each message by ``far`` seconds."""
    ways = tuple(Proxy(f"nats://{HOST}:{port}") for port in ports)
    for way in ways:
        way.delay = far
    return ways


def _routes(number: int, ports: list[int], ways: tuple[Proxy, ...]) -> str:
    """Return the cluster block of a node; the last node's routes lead through the proxies."""
    near = [f"{HOST}:{port}" for port in ports]
    known, advertise = near, ""
    if ways:
        # The addresses that nodes exchange later must not bypass the proxies.
        proxied = [urlsplit(way.url).netloc for way in ways]
        known = proxied[:-1] if number == len(ports) else near[:-1]
        advertise = f"advertise: '{proxied[number - 1]}',"
    routes = ", ".join(f'"nats-route://{each}"' for each in known)
    return f"cluster {{ name: test, listen: '{near[number - 1]}', {advertise} routes: [{routes}] }}"
