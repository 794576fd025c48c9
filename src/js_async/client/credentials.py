"""The credentials for one connect attempt. Each attempt reads them, because they may change."""

from __future__ import annotations

from twinstream.core.connect.auth import Credentials
from twinstream.core.connect.handshake import url_credentials
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.connect.server_pool import ServerAddress
from twinstream.errors import BadArgument

__all__ = ["credentials_for"]


def credentials_for(options: ConnectOptions, address: ServerAddress) -> Credentials:
    """Return the credentials of the options, or the URL's if the options have none.

    Raises `BadArgument` if the credentials file cannot be read.
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
