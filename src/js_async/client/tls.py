"""The TLS context for a connection. No other module reads certificate files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.core.client.tls import TlsOptions
from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["tls_context"]


def tls_context(options: TlsOptions) -> SSLContext:
    """Return the TLS context for the options; raises `BadArgument` if a file cannot be used."""
    # Imported late: programs without TLS need not load it.
    import ssl

    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.cert_file is not None:
            context.load_cert_chain(options.cert_file, options.key_file, options.key_password)
    except (OSError, ValueError) as error:
        files = ", ".join(
            file for file in (options.ca_file, options.cert_file, options.key_file) if file
        )
        raise BadArgument(f"the TLS files {files} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
