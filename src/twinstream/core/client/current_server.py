"""The server of a connection, what it reported, and the servers to try if it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.core.client.handshake import ServerInfo
from twinstream.core.client.server_pool import ReconnectPolicy, Rounds, ServerAddress, ServerPool

__all__ = ["CurrentServer"]


class CurrentServer:
    """The server to which a connection is established, or was last, and the servers to try next.

    All times are monotonic seconds.
    """

    def __init__(
        self,
        servers: tuple[ServerAddress, ...],
        policy: ReconnectPolicy | None,
        shuffle: Callable[[list[ServerAddress]], object] | None,
    ) -> None:
        self._pool: Final = ServerPool(servers, shuffle)
        self.rounds: Final = Rounds(policy or ReconnectPolicy())
        """The counter of the rounds of reconnect attempts; a round tries every server once."""
        self.address: ServerAddress = servers[0]
        """The address of the current server, or of the last one if not connected."""
        self.info = ServerInfo({})
        """The server's latest INFO."""
        self._is_trusted = False
        # When the connection was established or lost; None before the first connect.
        self._changed_at: float | None = None

    def round(self) -> list[ServerAddress]:
        """Return the servers for one round of attempts, in order."""
        return self._pool.round()

    def heard(self, info: ServerInfo) -> None:
        """Process an INFO of the server."""
        self.info = info
        self._is_trusted = True

    def distrust(self) -> None:
        """Ignore the addresses in the last INFO. Without TLS, an attacker may have changed it."""
        self._is_trusted = False

    def discover(self) -> list[ServerAddress]:
        """Add the servers that the last INFO announces; return the new ones."""
        urls = self.info.connect_urls if self._is_trusted else ()
        return self._pool.discover(urls, self.address)

    def accepted(self, address: ServerAddress) -> None:
        """Record that the server at an address has accepted the client's credentials."""
        self.address = address

    def connected(self, now: float) -> float:
        """Record that the connection was established; return the seconds for which it was lost."""
        outage = 0.0 if self._changed_at is None else now - self._changed_at
        self._changed_at = now
        return outage

    def prefer(self) -> None:
        """Try the current server first from now on."""
        self._pool.prefer(self.address)

    def lost(self, now: float) -> None:
        """Record that the connection was lost. The other servers are tried first."""
        self._pool.demote(self.address)
        self.rounds.broke(now - (self._changed_at or now))
        self._changed_at = now
