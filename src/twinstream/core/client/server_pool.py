"""Server addresses, and the order and the pauses in which a client tries to connect to servers.

Source: ADR-40 and the connect logic of the official clients. The caller passes random values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Final, TypeVar

from attrs import field, frozen

from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.deadline import Backoff, Seconds, seconds
from twinstream.errors import BadArgument
from twinstream.models.codec.settings import Settings

__all__ = [
    "ReconnectPolicy",
    "Rounds",
    "ServerAddress",
    "ServerPool",
    "certificate_name",
    "parse_servers",
]

T = TypeVar("T")

DEFAULT_PORT: Final = 4222
_ESCAPES: Final = "in a password write / as %2F, ? as %3F, # as %23 and a comma as %2C"
# Further announced addresses are ignored. No cluster has this many servers.
_MAX_ANNOUNCED: Final = 1000
# Seconds. With this pause, a client makes a hundred attempts a second to connect to a local server
# that is down.
_MIN_PAUSE: Final = 0.01
_SCHEMES: Final = ("nats", "tls")
# The usual form of a URL, with a name or an IPv4 address and without user info.
_PLAIN: Final = r"(?:(nats|tls)://)?([a-z0-9.-]+)(?::([0-9]{1,5}))?/?"
_LAST_PORT: Final = 65535
# Labels, the parts of a host name between dots, are shorter than this.
_LABEL: Final = 64
_NUMBERS: Final = r"[\d.]+|.*:.*"


@frozen
class ServerAddress:
    """The address of one server, with the user info of its URL, which the repr does not show."""

    host: str
    port: int = DEFAULT_PORT
    tls: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    origin: str | None = None
    """The host that the caller gave, if a server announced this address; else None."""

    @property
    def name(self) -> str:
        """The host name or IP address that the server's certificate must contain.

        This is `host`, with one exception: if a server announced this address as an IP address, it
        is the name that the caller gave, because certificates of clusters usually contain names.
        """
        if self.origin is not None and _is_number(self.host) and not _is_number(self.origin):
            return certificate_name(self.origin)
        return certificate_name(self.host)

    def announced(self, host: str, port: int) -> ServerAddress:
        """Return the address of a server that this server announced, with the same user info."""
        return ServerAddress(
            host, port, self.tls, self.user, self.password, self.origin or self.host
        )

    @classmethod
    def parse(cls, url: str) -> ServerAddress:
        """Parse `nats://[user[:password]@]host[:port]`, `tls://…` or plain `host[:port]`.

        Raises `BadArgument` for another form; its message does not contain the URL.
        """
        plain = re.fullmatch(_PLAIN, url)
        if plain is not None and 0 < int(plain[3] or DEFAULT_PORT) <= _LAST_PORT:
            return cls(_host(plain[2]), int(plain[3] or DEFAULT_PORT), plain[1] == "tls")
        # The import takes milliseconds, so it is omitted for the usual form.
        from urllib.parse import unquote, urlsplit

        # The URL may contain a password, so error messages never quote it. The errors of `urlsplit`
        # do, so no error is raised while one of them is handled: it would be the context.
        parts = _parsed(lambda: urlsplit(url if "://" in url else f"nats://{url}"))
        if parts is None:
            raise BadArgument("server URL: the host is neither a name nor an address")
        if parts.scheme not in _SCHEMES:
            raise BadArgument(f"server URL scheme {parts.scheme!r}: use nats:// or tls://")
        host_and_port = parts.netloc.rpartition("@")[2]
        if host_and_port.count(":") > 1 and "[" not in host_and_port:
            raise BadArgument("server URL: an IPv6 address needs brackets: nats://[::1]:4222")
        port = _parsed(lambda: DEFAULT_PORT if parts.port is None else parts.port)
        if port is None:
            # A password with / ? or # causes this error, since urlsplit ends host and port there.
            escapes = f"; {_ESCAPES}" if "@" in url else ""
            raise BadArgument(f"server URL: the port must be a number up to 65535{escapes}")
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
            # An empty password counts as a password. A user without any password is a token.
            unquote(parts.password) if parts.username and parts.password is not None else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _parsed(parse: Callable[[], T]) -> T | None:
    """Return the result of `parse`, None if it raises ValueError."""
    try:
        return parse()
    except ValueError:
        return None


def _is_number(host: str) -> bool:
    """Return whether a host is an IP address and not a name."""
    return re.fullmatch(_NUMBERS, host) is not None


def certificate_name(host: str) -> str:
    """Return a host as certificates contain it, without a zone id and a trailing dot."""
    return host.partition("%")[0].removesuffix(".")


def _host(host: str) -> str:
    """Return the host of a URL for the resolver; raises `BadArgument` if it is invalid."""
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
    if not host.isprintable():
        return False
    if host.isascii():
        # These are the rules of the IDNA codec, whose import takes longer than parsing a URL.
        *labels, last = host.split(".")
        return len(last) < _LABEL and all(0 < len(label) < _LABEL for label in labels)
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _split(urls: str) -> list[str]:
    """Split a comma-separated list of URLs.

    Raises `BadArgument` if a comma may be part of a password. A split there would take the text
    before the comma for a server, and the rest of the password for a token.
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
    """Return the addresses of one URL, a comma-separated list of URLs, or an iterable of URLs.

    Raises `BadArgument` for an invalid URL, or if `urls` contains no URL.
    """
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
class ReconnectPolicy(Settings):
    """The pauses and the number of attempts to reconnect after the connection was lost.

    It is picklable. Raises `BadArgument` for invalid values.
    """

    attempts: int = field(default=-1, converter=_attempts)
    """Rounds over all servers before the connection closes permanently; -1 means no limit.

    Without a limit, the connection still closes if one server refuses the same credentials twice
    in an outage. A connection that is lost within `max_wait` seconds counts as a failed round."""
    wait: float = field(default=0.1, converter=_wait)
    """Seconds before the second round, at least 0.01. Each further pause is twice as long."""
    max_wait: float = field(default=5.0, converter=_max_wait)
    """Maximum pause in seconds, at least 0.01."""
    jitter: float = field(default=0.25, converter=_jitter)
    """Maximum random addition to a pause, as a fraction of it.

    It prevents all clients of a server from reconnecting at the same time."""

    def pause(self, round_: int, random: float) -> float:
        """Return the seconds to wait before round number `round_`. Round 0 starts immediately.

        `random` is from 0 to 1.
        """
        if round_ <= 0:
            return 0.0
        return Backoff(self.wait, self.max_wait).pause(round_) * (1.0 + self.jitter * random)


class Rounds:
    """A counter of rounds of attempts to connect. It determines the pauses and the last round.

    A connection that is lost within `max_wait` seconds counts as a failed round. If it did not, a
    client whose connection is always lost immediately would reconnect without a pause.
    """

    def __init__(self, policy: ReconnectPolicy) -> None:
        self._policy: Final = policy
        self.count = 0
        """The number of rounds since the last connection that lasted `max_wait` seconds."""

    def broke(self, served: float) -> None:
        """Record that a connection was lost `served` seconds after it was established."""
        if served >= self._policy.max_wait:
            self.count = 0

    @property
    def is_over(self) -> bool:
        """Whether all rounds were used."""
        return 0 <= self._policy.attempts <= self.count

    def next_pause(self, random: float) -> float:
        """Start another round; return the seconds to wait before it."""
        self.count += 1
        return self._policy.pause(self.count - 1, random)


class ServerPool:
    """The servers to connect to, in the order in which this client tries them.

    The servers that the caller gave are shuffled once if there is a `shuffle` function. Discovered
    servers follow them. The last server that accepted the connection is first. The reader of the
    connection calls `discover`. The code that connects calls the other methods, possibly in another
    thread.
    """

    def __init__(
        self,
        servers: Sequence[ServerAddress],
        shuffle: Callable[[list[ServerAddress]], object] | None,
    ) -> None:
        self._given: Final = tuple(servers)
        self._servers = list(servers)
        # A tuple that is replaced in one step, so that `round` in another thread sees all of it.
        self._found: tuple[ServerAddress, ...] = ()
        if shuffle is not None:
            shuffle(self._servers)

    def round(self) -> list[ServerAddress]:
        """Return the servers for one round of attempts, in order."""
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
        """Store the servers that the server `current` announced; return the new ones.

        At most 1,000 announced addresses are read, and invalid ones are ignored. Servers that were
        discovered earlier and are no longer announced have left the cluster and are removed. If no
        announced address is valid, nothing changes.
        """
        known = {(each.host, each.port): each for each in (*self._given, *self._found)}
        found: dict[tuple[str, int], ServerAddress] = {}
        for url in islice(urls, _MAX_ANNOUNCED):
            try:
                named = ServerAddress.parse(url)
            except BadArgument:
                # An invalid address is ignored, so that the connection stays usable.
                continue
            place = named.host, named.port
            found[place] = known.get(place) or current.announced(*place)
        if not found:
            return []
        found.setdefault((current.host, current.port), current)
        given = set(self._given)
        self._found = tuple(each for each in found.values() if each not in given)
        return [each for place, each in found.items() if place not in known and each is not current]
