"""The handshake over a new TCP connection: INFO, TLS if required, authentication."""

from __future__ import annotations

from typing import Final

from js_async.client.keepalive import KeepAlive
from js_async.client.tls import tls_context
from js_async.runtime.concurrency import Signal
from js_async.runtime.socket_link import Link
from twinstream.core.client.addresses import Shuffle
from twinstream.core.client.auth import Credentials
from twinstream.core.client.handshake import (
    NO_CREDENTIALS,
    ServerInfo,
    connect_fields,
    server_error,
)
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ServerAddress, certificate_name
from twinstream.core.client.tls import TlsOptions
from twinstream.core.deadline import Deadline
from twinstream.core.wire.protocol import PING, connect_command
from twinstream.errors import AuthenticationFailed, ConnectionFailed

__all__ = ["Handshake"]

_BEGIN_WITH_TLS: Final = " (if the server begins with TLS: TlsOptions(handshake_first=True))"


class Handshake:
    """The handshake of a session. The session passes the server's replies to this object."""

    def __init__(
        self, options: ConnectOptions, link: Link, pings: KeepAlive, shuffle: Shuffle | None
    ) -> None:
        self._options: Final = options
        self._shuffle: Final = shuffle
        self._link: Final = link
        self._pings: Final = pings
        self._info = ServerInfo({})
        self._heard = Signal()
        self._refusal = ""
        self.secrets: tuple[str, ...] = ()
        """The secrets that were sent to authenticate. Error messages must mask them."""
        self._end: BaseException | None = None

    # ---- called by the session

    def heard(self, info: ServerInfo) -> None:
        """Process the server's INFO."""
        self._info = info
        self._heard.set()

    def refused(self, text: str) -> None:
        """Record that the server refused the handshake; `text` is its reason."""
        self._refusal = text
        self._wake()

    def broken(self, end: BaseException | None) -> None:
        """Record that the TCP connection ended."""
        self._end = end
        self._wake()

    def _wake(self) -> None:
        self._heard.set()
        self._pings.wake()

    # ---- the handshake

    async def open(self, address: ServerAddress, deadline: Deadline) -> bool:
        """Open the TCP connection, wait for INFO and establish TLS if it is required.

        Return True if the connection uses TLS, but INFO arrived in plain text before TLS was
        established. An attacker in the network may have changed such an INFO.
        """
        self._heard = Signal()
        self._refusal = ""
        self._end = None
        tls = self._options.tls
        first = tls is not None and tls.handshake_first
        own_name = None if tls is None else tls.server_name
        name = address.name if own_name is None else certificate_name(own_name)
        context = tls_context(tls) if tls is not None and first else None
        await self._link.open(address.host, address.port, deadline, context, name, self._shuffle)
        await self._wait(self._heard, deadline, "INFO")
        info = self._info
        wants_tls = tls is not None or address.tls or info.tls_required
        if wants_tls and not first:
            if not (info.tls_required or info.tls_available):
                raise ConnectionFailed("TLS was requested, but the server does not offer it")
            await self._link.start_tls(tls_context(tls or TlsOptions()), name, deadline)
            return True
        return False

    async def log_in(self, credentials: Credentials, deadline: Deadline) -> None:
        """Send CONNECT with the credentials; return when the server has accepted them."""
        fields = connect_fields(self._options.name, credentials, self._info.nonce)
        self.secrets = credentials.secrets
        pong = self._pings.restart()
        self._link.write(connect_command(fields) + PING)
        try:
            await self._wait(pong, deadline, "PONG")
        except AuthenticationFailed as error:
            if not credentials.is_empty:
                raise
            raise AuthenticationFailed(f"{error} ({NO_CREDENTIALS})") from None

    async def _wait(self, signal: Signal, deadline: Deadline, what: str) -> None:
        is_set = await self._link.wait(signal, deadline)
        if self._refusal:
            raise server_error(self._refusal, self.secrets)
        if self._end is not None or not self._link.is_open:
            end = self._end or "closed"
            raise ConnectionFailed(f"the connection broke before {what} came: {end}")
        if not is_set:
            tls = self._options.tls
            silent = what == "INFO" and (tls is None or not tls.handshake_first)
            hint = _BEGIN_WITH_TLS if silent else ""
            raise ConnectionFailed(f"no {what} within {self._options.connect_timeout:g} s{hint}")
