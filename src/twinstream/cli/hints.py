"""Sentences of errors that name subcommands and options of the command, not Python calls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import click

from twinstream import errors
from twinstream.cli.value_text import as_text
from twinstream.core.client.handshake import NO_CREDENTIALS
from twinstream.models import error_codes

# The options for fields of the configuration of a bucket or store, and of its stream.
_OPTIONS: Final[Mapping[str, str]] = {
    "description": "--description",
    "history": "--history",
    "max_msgs_per_subject": "--history",
    "max_age": "--ttl",
    "ttl": "--ttl",
    "limit_marker_ttl": "--marker-ttl",
    "subject_delete_marker_ttl": "--marker-ttl",
    "num_replicas": "--replicas",
    "max_msg_size": "--max-value-size",
    "max_value_size": "--max-value-size",
    "max_bytes": "--max-bucket-size",
    "storage": "--storage",
    "compression": "--compress",
    "metadata": "--metadata",
    "mirror": "--mirror",
    "sources": "--source",
}

_LENGTHS: Final = frozenset({"max_age", "ttl", "limit_marker_ttl", "subject_delete_marker_ttl"})

# Phrases of the SDK that name Python calls or arguments, and those of the command.
_PHRASES: Final = (
    ("create it with create_key_value", "`twinstream kv add` creates it"),
    ("create it with create_object_store", "`twinstream object add` creates it"),
    ("set its limit_marker_ttl", "set it with `twinstream kv edit --marker-ttl`"),
    ("set limit_marker_ttl of bucket", "set --marker-ttl of bucket"),
    ("revert with in_parts=True", "give --in-parts"),
    (
        "set allow_atomic of the stream (server 2.12)",
        "set it with `twinstream stream edit --allow-batch` (server 2.12)",
    ),
)


def sentence(error: Exception) -> str:
    """Return the text of an error, with commands and options in place of Python calls."""
    area = _area()
    if isinstance(error, errors.StreamExists) and area in ("kv", "object") and error.differences:
        return _exists(error, area)
    text = str(error) or type(error).__name__
    for python, command in _PHRASES:
        text = text.replace(python, command)
    return text


def _area() -> str:
    """Return the name of the command group that runs, for example `kv`; empty without one."""
    context = click.get_current_context(silent=True)
    names: list[str] = []
    while context is not None:
        names.append(context.info_name or "")
        context = context.parent
    return names[-2] if len(names) > 1 else ""


def _exists(error: errors.StreamExists, area: str) -> str:
    what = "bucket" if area == "kv" else "object store"
    differ = [
        f"{_OPTIONS.get(each.field, each.field)} is {_value(each.field, each.actual)}, not"
        f" {_value(each.field, each.wanted)}"
        for each in error.differences
    ]
    return (
        f"{what} {_name(error)} exists with other settings: {'; '.join(differ)}"
        f" (err_code {error.err_code}); `twinstream {area} edit` changes settings,"
        f" `twinstream {area} info` shows them"
    )


def _name(error: errors.StreamExists) -> str:
    """Return the name of the bucket, from the subject of the request that failed."""
    stream = error.subject.rpartition(".")[2]
    return stream.removeprefix("KV_").removeprefix("OBJ_")


def _value(field: str, value: object) -> str:
    if field in _LENGTHS and isinstance(value, int):
        value = timedelta(microseconds=value / 1000)
    return as_text(value) or "not set"


def hint(error: Exception) -> str:
    """Return advice on what to try after an error; an empty string if there is none."""
    match error:
        case errors.AuthenticationFailed() if NO_CREDENTIALS not in str(error):
            return "check the credentials in the options, in TWINSTREAM_... and in the URL"
        case errors.AuthenticationFailed():
            return "give credentials with --user and --password, --token, --creds or --nkey"
        case errors.ConnectionFailed() if "TlsOptions" in str(error):
            return "the options are --tls-ca, --tls-cert and --tls-key, or --tls-first"
        case errors.ConnectionFailed():
            return "--server or TWINSTREAM_URL sets another address"
        case errors.StreamNotFound():
            return _not_found()
        case errors.ConsumerNotFound():
            return "`twinstream consumer ls` shows the consumers of a stream"
        case errors.PermissionDenied():
            return "`twinstream permissions` shows the subjects that a user must be allowed"
        case errors.JetStreamNotEnabled(err_code=error_codes.NOT_ENABLED_FOR_ACCOUNT):
            return "enable JetStream for the account, or set a --domain or --prefix that has it"
        case errors.JetStreamNotEnabled(err_code=0):
            return "--domain and --prefix set another one"
        case errors.JetStreamNotEnabled():
            return "start the server with JetStream: nats-server --jetstream"
        case _:
            return ""


def _not_found() -> str:
    match _area():
        case "kv":
            return "`twinstream kv ls` shows the buckets of this server"
        case "object":
            return "`twinstream object ls` shows the object stores of this server"
        case _:
            return "`twinstream stream ls` shows the streams of this server"
