"""The credentials for one connect attempt. Each attempt reads them, because they may change."""

from __future__ import annotations

from twinstream.core.client.auth import Credentials
from twinstream.core.client.handshake import url_credentials
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ServerAddress
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
    from twinstream.models.files.bounded_read import SMALL, read_small_text

    try:
        return Credentials.parse(read_small_text(name, SMALL), name)
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgument(f"credentials file {name}: {error}") from None
