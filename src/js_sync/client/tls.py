# Generated from src/js_async/client/tls.py by codegen/twin.py. Edit that file instead.
"""Building a TLS context from options: the one place that reads certificate files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.errors import BadArgument
from twinstream.core.connect.tls import TlsOptions

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["tls_context"]


def tls_context(options: TlsOptions) -> SSLContext:
    """Return the context; raises `BadArgument` for files that cannot be used."""
    # Programs without TLS do not pay for importing it.
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
