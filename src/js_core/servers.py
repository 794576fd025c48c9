"""Server addresses, and the pool that decides which one to try next and after what pause.

Source: ADR-40 and the connect logic of the official clients. Randomness is injected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from attrs import field, frozen

from js_core.deadline import Seconds, seconds
from js_core.errors import BadArgument
from js_core.given import check_whole

__all__ = ["ReconnectPolicy", "ServerAddress", "ServerPool", "parse_servers"]

DEFAULT_PORT: Final = 4222
_ESCAPES: Final = "in a password write / as %2F, ? as %3F and # as %23"
# Seconds. A server on the same machine that is down is tried a hundred times a second then.
_SHORTEST_PAUSE: Final = 0.01
_SCHEMES: Final = ("nats", "tls")
_NUMBERS: Final = re.compile(r"[\d.]+|.*:.*")


@frozen
class ServerAddress:
    """Where one server listens, and the user info of its URL (never shown)."""

    host: str
    port: int = DEFAULT_PORT
    tls: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    alias: str | None = None
    """The name of the server that told of this one, if `host` is an IP address."""

    @property
    def name(self) -> str:
        """The name to expect in its certificate: those of clusters hold names, not addresses."""
        return self.alias or self.host

    def told(self, host: str, port: int) -> ServerAddress:
        """Return the address of another server that this one told, with the same user info."""
        has_name = _NUMBERS.fullmatch(self.name) is None
        alias = self.name if has_name and _NUMBERS.fullmatch(host) else None
        return ServerAddress(host, port, self.tls, self.user, self.password, alias)

    @classmethod
    def parse(cls, url: str) -> ServerAddress:
        """Read `nats://[user[:password]@]host[:port]`, `tls://…` or plain `host[:port]`."""
        # The URL itself may hold a password, so errors show host and port at most.
        try:
            parts = urlsplit(url if "://" in url else f"nats://{url}")
        except ValueError:
            raise BadArgument("server URL: the host is neither a name nor an address") from None
        if parts.scheme not in _SCHEMES:
            raise BadArgument(f"server URL scheme {parts.scheme!r}: use nats:// or tls://")
        try:
            port = DEFAULT_PORT if parts.port is None else parts.port
        except ValueError:
            # What stands before the first of / ? # is taken for host and port.
            escapes = f"; {_ESCAPES}" if "@" in url else ""
            raise BadArgument(
                f"server URL: the port must be a number up to 65535{escapes}"
            ) from None
        if port == 0:
            raise BadArgument("server URL: the port must be from 1 to 65535, got 0")
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise BadArgument(
                f"server URL: expected nats://host:port and nothing behind it; {_ESCAPES}"
            )
        if parts.password and not parts.username:
            raise BadArgument("server URL: a password needs a user; a token stands alone, token@")
        return cls(
            parts.hostname,
            port,
            parts.scheme == "tls",
            unquote(parts.username) if parts.username else None,
            # An empty password is a password; without any, the user is a token.
            unquote(parts.password) if parts.username and parts.password is not None else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_servers(servers: str | Iterable[str]) -> tuple[ServerAddress, ...]:
    """Read one URL, several separated by commas, or a list of them."""
    urls = servers.split(",") if isinstance(servers, str) else servers
    if isinstance(urls, bytes) or not isinstance(urls, Iterable):
        # The value is not shown: it may hold a password.
        raise BadArgument(f"servers must be a URL or a list of them, got {type(urls).__name__}")
    urls = tuple(urls)
    for url in urls:
        if not isinstance(url, str):
            raise BadArgument(f"servers must be URLs, got {type(url).__name__} in the list")
    found = tuple(ServerAddress.parse(url.strip()) for url in urls if url.strip())
    if not found:
        raise BadArgument("no server given: pass at least one URL such as nats://127.0.0.1:4222")
    return found


def _attempts(value: int) -> int:
    return check_whole(value, "attempts", -1)


def _pause(value: Seconds, name: str) -> float:
    found = seconds(value, name)
    if found < _SHORTEST_PAUSE:
        raise BadArgument(
            f"{name} must be at least {_SHORTEST_PAUSE} seconds, got {value!r}: without a pause,"
            " trying a server that is down takes a whole core"
        )
    return found


def _wait(value: Seconds) -> float:
    return _pause(value, "wait")


def _max_wait(value: Seconds) -> float:
    return _pause(value, "max_wait")


def _jitter(value: float) -> float:
    if not isinstance(value, float | int) or not 0 <= value < math.inf:
        raise BadArgument(f"jitter must be a number from 0 up, a part of each pause, got {value!r}")
    return value


@frozen
class ReconnectPolicy:
    """When to try again after the link broke. Pickles, shared by both twins.

    Raises `BadArgument` for what would fail only then.
    """

    attempts: int = field(default=60, converter=_attempts)
    """Rounds over the whole pool before the connection closes for good; -1 is for ever."""
    wait: float = field(default=0.1, converter=_wait)
    """Seconds before the second round, 0.01 at least; doubles each round."""
    max_wait: float = field(default=5.0, converter=_max_wait)
    """Longest pause in seconds, 0.01 at least."""
    jitter: float = field(default=0.25, converter=_jitter)
    """Random part of each pause, so that many clients do not come back at once."""

    def pause(self, round_: int, random: float) -> float:
        """Return the seconds to wait before a round (0 is the first: at once)."""
        if round_ <= 0:
            return 0.0
        base = min(self.max_wait, self.wait * 2.0 ** min(round_ - 1, 30))
        return base * (1.0 + self.jitter * random)


class ServerPool:
    """The servers to try, in the order of this client.

    The given ones are shuffled, discovered ones are added behind, the last good one is tried first.
    `discover` is called where the link is read, all else where links are made, perhaps in another
    thread.
    """

    def __init__(
        self,
        servers: Sequence[ServerAddress],
        shuffle: Callable[[list[ServerAddress]], object] | None,
    ) -> None:
        self._given: Final = tuple(servers)
        self._servers = list(servers)
        # Always replaced as a whole: a round that is being put in order does not change under it.
        self._found: tuple[ServerAddress, ...] = ()
        if shuffle is not None:
            shuffle(self._servers)

    def round(self) -> list[ServerAddress]:
        """Return the servers for one round of attempts."""
        ordered, found = self._servers, self._found
        there = [each for each in ordered if each in self._given or each in found]
        return [*there, *(each for each in found if each not in ordered)]

    def prefer(self, good: ServerAddress) -> None:
        """Put a server that took the connection first."""
        self._servers = sorted(self.round(), key=lambda server: server != good)

    def demote(self, bad: ServerAddress) -> None:
        """Put a server that ended the connection last."""
        self._servers = sorted(self.round(), key=lambda server: server == bad)

    def discover(self, urls: Iterable[str], current: ServerAddress) -> list[ServerAddress]:
        """Take the servers that the current one named; return the new ones.

        Servers that were discovered earlier and are not named now have left the cluster.
        """
        known = {(each.host, each.port): each for each in (*self._given, *self._found)}
        found: dict[tuple[str, int], ServerAddress] = {}
        for url in urls:
            try:
                named = ServerAddress.parse(url)
            except BadArgument:
                # An address that nobody can use is no reason to give up the link it came over.
                continue
            place = named.host, named.port
            found[place] = known.get(place) or current.told(named.host, named.port)
        if not found:
            return []
        found.setdefault((current.host, current.port), current)
        self._found = tuple(each for each in found.values() if each not in self._given)
        return [each for place, each in found.items() if place not in known and each is not current]
