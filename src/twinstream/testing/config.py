"""The configuration file of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"


def server_config(
    *,
    name: str,
    port: int,
    monitoring_port: int,
    ports_folder: Path,
    store: Path | None,
    domain: str | None,
    jetstream_extra: str,
    extra: str,
) -> str:
    """Return the text of a server's configuration file. With `store=None` JetStream is off."""
    lines = [
        f"server_name: {name}",
        f'listen: "{HOST}:{port}"',
        f'http: "{HOST}:{monitoring_port}"',
        f"ports_file_dir: {_quoted(str(ports_folder))}",
        "logtime_utc: true",
    ]
    if store is not None:
        lines.append("jetstream {")
        lines.append(f"  store_dir: {_quoted(str(store))}")
        if domain is not None:
            lines.append(f"  domain: {_quoted(domain)}")
        lines += [f"  {line}" for line in jetstream_extra.splitlines()]
        lines.append("}")
    lines.append(extra)
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
