# Generated from src/js_async/client/credentials.py by codegen/twin.py. Edit that file instead.
"""The credentials for one attempt at one server, read anew each time so that they may change."""

from __future__ import annotations

from twinstream.core.connect.auth import Credentials
from twinstream.errors import BadArgument
from twinstream.core.connect.handshake import url_credentials
from twinstream.core.connect.options import ConnectOptions
from twinstream.core.connect.server_pool import ServerAddress

__all__ = ["credentials_for"]


def credentials_for(options: ConnectOptions, address: ServerAddress) -> Credentials:
    """Return what to show a server: the options' credentials, else the URL's user info.

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
