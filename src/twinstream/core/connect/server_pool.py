"""Server addresses, and the pool that decides which one to try next and after what pause.

Source: ADR-40 and the connect logic of the official clients. Randomness is injected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Final
from urllib.parse import unquote, urlsplit

from attrs import field, frozen

from twinstream.core.deadline import Seconds, seconds
from twinstream.errors import BadArgument
from twinstream.core.base.check_arguments import check_whole

__all__ = [
    "ReconnectPolicy",
    "Rounds",
    "ServerAddress",
    "ServerPool",
    "certificate_name",
    "parse_servers",
]

DEFAULT_PORT: Final = 4222
_ESCAPES: Final = "in a password write / as %2F, ? as %3F, # as %23 and a comma as %2C"
# Announced addresses beyond that many are passed over: a cluster has fewer servers.
_MOST_ANNOUNCED: Final = 1000
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
    origin: str | None = None
    """The host that the user gave, if this address was announced by a server."""

    @property
    def name(self) -> str:
        """The name to expect in its certificate.

        Certificates of clusters hold names. An announced IP address is held against the name that
        the user gave, never against one that a server chose.
        """
        if self.origin is not None and _is_number(self.host) and not _is_number(self.origin):
            return certificate_name(self.origin)
        return certificate_name(self.host)

    def announced(self, host: str, port: int) -> ServerAddress:
        """Return the address of another server that this one announced, with the same user info."""
        return ServerAddress(
            host, port, self.tls, self.user, self.password, self.origin or self.host
        )

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
        where = parts.netloc.rpartition("@")[2]
        if where.count(":") > 1 and "[" not in where:
            raise BadArgument("server URL: an IPv6 address stands in brackets: nats://[::1]:4222")
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
            _host(parts.hostname),
            port,
            parts.scheme == "tls",
            unquote(parts.username) if parts.username else None,
            # An empty password is a password; without any, the user is a token.
            unquote(parts.password) if parts.username and parts.password is not None else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _is_number(host: str) -> bool:
    """Tell whether a host is an IP address rather than a name."""
    return _NUMBERS.fullmatch(host) is not None


def certificate_name(host: str) -> str:
    """Return a host as certificates name it: without the dot behind an absolute name, or a zone."""
    return host.partition("%")[0].removesuffix(".")


def _host(host: str) -> str:
    """Return the host of a URL as the resolver takes it; raises `BadArgument`."""
    if ":" in host:
        # RFC 6874: what stands before the zone of a link-local address is escaped.
        number, _, zone = host.partition("%25")
        return f"{number}%{unquote(zone)}" if zone else host
    try:
        host.encode("idna")
    except UnicodeError:
        raise BadArgument("server URL: the host is neither a name nor an address") from None
    return host


def _split(urls: str) -> list[str]:
    """Return the URLs of a list with commas.

    Raises `BadArgument` where a comma may belong to a password: the text before it would be taken
    for a server, and the text behind it for a token.
    """
    found = [url.strip() for url in urls.split(",")]
    for before, url in pairwise(found):
        is_part = "://" in before or (":" in before and not before.rpartition(":")[2].isdigit())
        if "@" in url and "://" not in url and is_part and "@" not in before:
            raise BadArgument(
                "server URLs: in a password write a comma as %2C; if it was meant to separate two"
                " servers, give a list of them"
            )
    return found


def parse_servers(servers: str | Iterable[str]) -> tuple[ServerAddress, ...]:
    """Read one URL, several separated by commas, or a list of them."""
    urls = _split(servers) if isinstance(servers, str) else servers
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
    """Rounds over the whole pool before the connection closes for good; -1 is for ever.

    A connection that breaks within `max_wait` seconds counts as a failed round."""
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


class Rounds:
    """The rounds of attempts of one connection: whether there is another, and after what pause.

    A connection that breaks within `max_wait` seconds counts as a failed round: else one that
    breaks whenever it was made would be made again without any pause, for ever.
    """

    def __init__(self, policy: ReconnectPolicy) -> None:
        self._policy: Final = policy
        self.count = 0
        """Rounds since a connection served for a while."""

    def broke(self, served: float) -> None:
        """Note that a connection broke after `served` seconds."""
        if served >= self._policy.max_wait:
            self.count = 0

    @property
    def is_over(self) -> bool:
        """Tell whether all rounds were made."""
        return 0 <= self._policy.attempts <= self.count

    def next_pause(self, random: float) -> float:
        """Begin another round; return the seconds to wait before it."""
        self.count += 1
        return self._policy.pause(self.count - 1, random)


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
        there, known = {*self._given, *found}, set(ordered)
        return [
            *(each for each in ordered if each in there),
            *(each for each in found if each not in known),
        ]

    def prefer(self, good: ServerAddress) -> None:
        """Put a server that took the connection first."""
        self._servers = sorted(self.round(), key=lambda server: server != good)

    def demote(self, bad: ServerAddress) -> None:
        """Put a server that ended the connection last."""
        self._servers = sorted(self.round(), key=lambda server: server == bad)

    def discover(self, urls: Iterable[str], current: ServerAddress) -> list[ServerAddress]:
        """Take the servers that the current one named, 1,000 at most; return the new ones.

        Servers that were discovered earlier and are not named now have left the cluster.
        """
        known = {(each.host, each.port): each for each in (*self._given, *self._found)}
        found: dict[tuple[str, int], ServerAddress] = {}
        for url in islice(urls, _MOST_ANNOUNCED):
            try:
                named = ServerAddress.parse(url)
            except BadArgument:
                # An address that nobody can use is no reason to give up the link it came over.
                continue
            place = named.host, named.port
            found[place] = known.get(place) or current.announced(*place)
        if not found:
            return []
        found.setdefault((current.host, current.port), current)
        given = set(self._given)
        self._found = tuple(each for each in found.values() if each not in given)
        return [each for place, each in found.items() if place not in known and each is not current]
