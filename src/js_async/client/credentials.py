"""The credentials for one attempt at one server. They are read each time, as they may change."""

from __future__ import annotations

from twinstream.core.connect.auth import Credentials
from twinstream.core.connect.handshake import url_credentials
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.connect.server_pool import ServerAddress
from twinstream.errors import BadArgument

__all__ = ["credentials_for"]


def credentials_for(options: ConnectOptions, address: ServerAddress) -> Credentials:
    """Return the credentials for a server: those of the options, else those in the URL.

    Raises `BadArgument` for a credentials file that cannot be read.
    """
    if options.credentials_file is not None:
        return _read(options.credentials_file)
    given = options.credentials() if callable(options.credentials) else options.credentials
    return url_credentials(address) if given.is_empty else given


def _read(name: str) -> Credentials:
    try:
        with open(name, encoding="utf-8") as file:
            return Credentials.parse(file.read(), name)
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgument(f"credentials file {name}: {error}") from None
