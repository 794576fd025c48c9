"""Parse the table `[storage]` of a pipeline's file, and a `path` on an object store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from twinstream.lake.objects.folder import Encryption, ObjectFolder, StorageSettings
from twinstream.spark.pipeline.settings.toml_table import TomlTable

__all__ = ["STORAGE_KEYS", "object_folder", "server_url", "variable"]

STORAGE_KEYS: Final = (
    *("endpoint", "region", "access_key_env", "secret_key_env", "session_token_env", "profile"),
    *("encryption", "kms_key", "timeout", "lease"),
)
"""The keys of `[storage]`."""

# Keys that people try for secrets, without underscores and in lower case, and the key to use
# instead.
_SECRETS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("accesskey", "accesskeyid", "awsaccesskeyid", "keyid"), "access_key_env"),
    **dict.fromkeys(
        ("secretkey", "secretaccesskey", "awssecretaccesskey", "secret", "password"),
        "secret_key_env",
    ),
    **dict.fromkeys(
        ("sessiontoken", "awssessiontoken", "token", "securitytoken"), "session_token_env"
    ),
}
_ENCRYPTIONS: Final[tuple[Encryption, ...]] = ("AES256", "aws:kms")
# An owner of the lock renews it three times in a lease, also if the server is slow.
_SHORTEST_LEASE: Final = 3.0

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/", re.ASCII)


def object_folder(top: TomlTable, path: str) -> ObjectFolder | None:
    """Return the folder of an object store that `path` names, or `None` for any other path.

    Raises `ConfigError` for other schemes than `s3:` and `file:`, for a wrong key of `[storage]`,
    and for `[storage]` with a path on a file system.
    """
    scheme = _URL.match(path)
    if scheme is not None and scheme[1].lower() not in ("s3", "file"):
        raise top.fail(
            "path",
            f"{path!r}: {scheme[1]}: is not supported; give a folder of a file system, or"
            " s3://bucket/folder on a server that speaks S3",
        )
    if not path.lower().startswith("s3:"):
        if top.has("storage"):
            raise top.fail("storage", 'is for a path such as "s3://bucket/lake"; remove the table')
        return None
    try:
        return ObjectFolder.parse(path, _storage(top.table("storage")))
    except ValueError as error:
        raise top.fail("path", str(error)) from error


def _storage(table: TomlTable) -> StorageSettings:
    for key in table.keys:
        instead = _SECRETS.get(key.replace("_", "").replace("-", "").lower())
        if instead is not None:
            # The error does not show the value, because the error may be logged.
            raise table.fail(
                key,
                "a key of the store must not be in this file; name the environment variable that"
                f' has it: {instead} = "…", or a profile',
            )
    table.only({}, *STORAGE_KEYS)
    found = StorageSettings(
        endpoint=server_url(table, "endpoint", "https://s3.example.org"),
        region=table.text("region"),
        access_key_env=variable(table, "access_key_env"),
        secret_key_env=variable(table, "secret_key_env"),
        session_token_env=variable(table, "session_token_env"),
        profile=table.text("profile"),
        encryption=table.word("encryption", _ENCRYPTIONS) if table.has("encryption") else "",
        kms_key=table.text("kms_key"),
        timeout=table.seconds("timeout", 30.0),
        lease=table.seconds("lease", 30.0),
    )
    _check_pairs(table, found)
    return found


def _check_pairs(table: TomlTable, found: StorageSettings) -> None:
    if bool(found.access_key_env) != bool(found.secret_key_env):
        missing = "secret_key_env" if found.access_key_env else "access_key_env"
        raise table.fail(missing, "is required with the other one of the two")
    if found.session_token_env and not found.access_key_env:
        raise table.fail("session_token_env", "needs access_key_env and secret_key_env")
    if found.profile and found.access_key_env:
        raise table.fail("profile", "cannot be combined with access_key_env; give one of them")
    if found.lease < _SHORTEST_LEASE:
        raise table.fail("lease", f"must be at least {_SHORTEST_LEASE:g}s")
    if found.kms_key and found.encryption != "aws:kms":
        raise table.fail("kms_key", 'needs encryption = "aws:kms"')


def server_url(table: TomlTable, key: str, example: str, *, has_path: bool = False) -> str:
    """Return the URL of a server, or an empty text if the key is missing.

    Raises `ConfigError` for another text, for a user or a password in it, and for a path unless
    `has_path`.
    """
    text = table.text(key).rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise table.fail(key, "is not the URL of a server") from None
    if parts.username or parts.password:
        instead = "name environment variables" if has_path else "name a profile"
        raise table.fail(key, f"must have no user and no password; {instead}")
    has_more = parts.query or parts.fragment or (parts.path and not has_path)
    if not is_address or has_more:
        raise table.fail(key, f'must be the URL of a server such as "{example}"')
    return text


def variable(table: TomlTable, key: str) -> str:
    """Return the name of an environment variable, or an empty text if the key is missing.

    Raises `ConfigError` for another text.
    """
    text = table.text(key)
    if text and not _VARIABLE.fullmatch(text):
        # The error does not show the value, which may be a key.
        raise table.fail(key, "must be the name of an environment variable")
    return text
