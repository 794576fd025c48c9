"""Server addresses, and the pool that decides which server to try next and after what pause.

Source: ADR-40 and the connect logic of the official clients. Randomness is injected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Final

from twinstream.core.base.check_arguments import check_whole
from twinstream.core.deadline import Backoff, Seconds, seconds
from twinstream.errors import BadArgument
from twinstream.models.records import field, frozen

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
# Announced addresses beyond this number are ignored: no cluster has as many servers.
_MAX_ANNOUNCED: Final = 1000
# Seconds. With this pause, a local server that is down is tried a hundred times a second.
_MIN_PAUSE: Final = 0.01
_SCHEMES: Final = ("nats", "tls")
# The usual form of a URL: no user, and a name or an address of IPv4.
_PLAIN: Final = r"(?:(nats|tls)://)?([a-z0-9.-]+)(?::([0-9]{1,5}))?/?"
_LAST_PORT: Final = 65535
# Labels of host names are shorter than this.
_LABEL: Final = 64
_NUMBERS: Final = r"[\d.]+|.*:.*"


@frozen
class ServerAddress:
    """The address of one server, and the user info of its URL (hidden in the repr)."""

    host: str
    port: int = DEFAULT_PORT
    tls: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    origin: str | None = None
    """The host given by the caller, if this address was announced by a server."""

    @property
    def name(self) -> str:
        """The host name to expect in the server's certificate.

        Certificates of clusters contain names. An announced IP address is therefore checked against
        the name given by the caller, never against a name chosen by a server.
        """
        if self.origin is not None and _is_number(self.host) and not _is_number(self.origin):
            return certificate_name(self.origin)
        return certificate_name(self.host)

    def announced(self, host: str, port: int) -> ServerAddress:
        """Return the address of a server announced by this one, with the same user info."""
        return ServerAddress(
            host, port, self.tls, self.user, self.password, self.origin or self.host
        )

    @classmethod
    def parse(cls, url: str) -> ServerAddress:
        """Parse `nats://[user[:password]@]host[:port]`, `tls://…` or plain `host[:port]`.

        Raises `BadArgument` without showing the URL.
        """
        plain = re.fullmatch(_PLAIN, url)
        if plain is not None and 0 < int(plain[3] or DEFAULT_PORT) <= _LAST_PORT:
            return cls(_host(plain[2]), int(plain[3] or DEFAULT_PORT), plain[1] == "tls")
        # Any other form. This import takes milliseconds.
        from urllib.parse import unquote, urlsplit

        # The URL may contain a password, so error messages never quote it.
        try:
            parts = urlsplit(url if "://" in url else f"nats://{url}")
        except ValueError:
            raise BadArgument("server URL: the host is neither a name nor an address") from None
        if parts.scheme not in _SCHEMES:
            raise BadArgument(f"server URL scheme {parts.scheme!r}: use nats:// or tls://")
        where = parts.netloc.rpartition("@")[2]
        if where.count(":") > 1 and "[" not in where:
            raise BadArgument("server URL: an IPv6 address needs brackets: nats://[::1]:4222")
        try:
            port = DEFAULT_PORT if parts.port is None else parts.port
        except ValueError:
            # urlsplit takes everything before the first of / ? # as host and port.
            escapes = f"; {_ESCAPES}" if "@" in url else ""
            raise BadArgument(
                f"server URL: the port must be a number up to 65535{escapes}"
            ) from None
        if port == 0:
            raise BadArgument("server URL: the port must be from 1 to 65535, got 0")
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise BadArgument(
                f"server URL: expected nats://host:port and nothing after it; {_ESCAPES}"
            )
        if parts.password and not parts.username:
            raise BadArgument("server URL: a password needs a user; write a token as token@host")
        return cls(
            _host(parts.hostname),
            port,
            parts.scheme == "tls",
            unquote(parts.username) if parts.username else None,
            # An empty password is a password. Without a password, the user is a token.
            unquote(parts.password) if parts.username and parts.password is not None else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _is_number(host: str) -> bool:
    """Return whether a host is an IP address rather than a name."""
    return re.fullmatch(_NUMBERS, host) is not None


def certificate_name(host: str) -> str:
    """Return a host as it is written in certificates: without trailing dot and zone id."""
    return host.partition("%")[0].removesuffix(".")


def _host(host: str) -> str:
    """Return the host of a URL in the form that the resolver accepts; raises `BadArgument`."""
    if ":" in host:
        # RFC 6874: the % before the zone of a link-local address is escaped in a URL.
        number, _, zone = host.partition("%25")
        if not zone:
            return host
        from urllib.parse import unquote

        return f"{number}%{unquote(zone)}"
    if not _is_name(host):
        raise BadArgument("server URL: the host is neither a name nor an address")
    return host


def _is_name(host: str) -> bool:
    """Return whether a host is a name that can be resolved."""
    if host.isascii():
        # The same rules as the codec, whose import takes longer than parsing a URL.
        *labels, last = host.split(".")
        return len(last) < _LABEL and all(0 < len(label) < _LABEL for label in labels)
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _split(urls: str) -> list[str]:
    """Split a comma-separated list of URLs.

    Raises `BadArgument` where a comma may belong to a password: the text before it would be taken
    for a server, and the text after it for a token.
    """
    found = [url.strip() for url in urls.split(",")]
    for before, url in pairwise(found):
        is_part = "://" in before or (":" in before and not before.rpartition(":")[2].isdigit())
        if "@" in url and "://" not in url and is_part and "@" not in before:
            raise BadArgument(
                "server URLs: in a password write a comma as %2C; if the comma separates two"
                " servers, pass a list of URLs"
            )
    return found


def parse_servers(servers: str | Iterable[str]) -> tuple[ServerAddress, ...]:
    """Parse one URL, a comma-separated list of URLs, or an iterable of them."""
    urls = _split(servers) if isinstance(servers, str) else servers
    if isinstance(urls, bytes) or not isinstance(urls, Iterable):
        # The value is not shown, because it may contain a password.
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
    if found < _MIN_PAUSE:
        raise BadArgument(
            f"{name} must be at least {_MIN_PAUSE} seconds, got {value!r}: without a pause,"
            " retrying a server that is down keeps a processor core busy"
        )
    return found


def _wait(value: Seconds) -> float:
    return _pause(value, "wait")


def _max_wait(value: Seconds) -> float:
    return _pause(value, "max_wait")


def _jitter(value: float) -> float:
    if not isinstance(value, float | int) or not 0 <= value < math.inf:
        raise BadArgument(f"jitter must be a number >= 0, a fraction of each pause, got {value!r}")
    return value


@frozen
class ReconnectPolicy:
    """When to reconnect after the connection was lost. Picklable, shared by both twins.

    Raises `BadArgument` for invalid values.
    """

    attempts: int = field(default=60, converter=_attempts)
    """Rounds over the whole pool before the connection closes permanently; -1 means no limit.

    A connection that is lost within `max_wait` seconds counts as a failed round."""
    wait: float = field(default=0.1, converter=_wait)
    """Seconds before the second round, at least 0.01; doubled after each round."""
    max_wait: float = field(default=5.0, converter=_max_wait)
    """Maximum pause in seconds, at least 0.01."""
    jitter: float = field(default=0.25, converter=_jitter)
    """Random part of each pause as a fraction, so that clients do not all reconnect at once."""

    def pause(self, round_: int, random: float) -> float:
        """Return the seconds to wait before a round; the first one, 0, starts immediately."""
        if round_ <= 0:
            return 0.0
        return Backoff(self.wait, self.max_wait).pause(round_) * (1.0 + self.jitter * random)


class Rounds:
    """Counts the rounds of attempts to connect: whether there is another, and after what pause.

    A connection that is lost within `max_wait` seconds counts as a failed round. Otherwise a
    connection that is always lost right after it was established would be retried without pause.
    """

    def __init__(self, policy: ReconnectPolicy) -> None:
        self._policy: Final = policy
        self.count = 0
        """Rounds since the last connection that lasted `max_wait` seconds."""

    def broke(self, served: float) -> None:
        """Record that a connection was lost after `served` seconds."""
        if served >= self._policy.max_wait:
            self.count = 0

    @property
    def is_over(self) -> bool:
        """Return whether all rounds were used."""
        return 0 <= self._policy.attempts <= self.count

    def next_pause(self, random: float) -> float:
        """Start another round; return the seconds to wait before it."""
        self.count += 1
        return self._policy.pause(self.count - 1, random)


class ServerPool:
    """The servers to try, in an order of this client.

    The given servers are shuffled, discovered ones are appended, and the last good one is tried
    first. `discover` is called by the reader of the connection, everything else where connections
    are made, possibly in another thread.
    """

    def __init__(
        self,
        servers: Sequence[ServerAddress],
        shuffle: Callable[[list[ServerAddress]], object] | None,
    ) -> None:
        self._given: Final = tuple(servers)
        self._servers = list(servers)
        # Replaced as a whole, so that `round` in another thread sees a consistent value.
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
        """Move a server that accepted the connection to the front."""
        self._servers = sorted(self.round(), key=lambda server: server != good)

    def demote(self, bad: ServerAddress) -> None:
        """Move a server that ended the connection to the end."""
        self._servers = sorted(self.round(), key=lambda server: server == bad)

    def discover(self, urls: Iterable[str], current: ServerAddress) -> list[ServerAddress]:
        """Store the servers announced by the current one, at most 1,000; return the new ones.

        Servers that were discovered earlier and are no longer announced have left the cluster.
        """
        known = {(each.host, each.port): each for each in (*self._given, *self._found)}
        found: dict[tuple[str, int], ServerAddress] = {}
        for url in islice(urls, _MAX_ANNOUNCED):
            try:
                named = ServerAddress.parse(url)
            except BadArgument:
                # An unusable address is ignored; the connection stays usable.
                continue
            place = named.host, named.port
            found[place] = known.get(place) or current.announced(*place)
        if not found:
            return []
        found.setdefault((current.host, current.port), current)
        given = set(self._given)
        self._found = tuple(each for each in found.values() if each not in given)
        return [each for place, each in found.items() if place not in known and each is not current]
