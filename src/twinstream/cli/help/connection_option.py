"""The kind of the options for the connection to a server."""

from __future__ import annotations

import click


class ConnectionOption(click.Option):
    """An option for the connection, which help pages show in a section of its own at their end."""
