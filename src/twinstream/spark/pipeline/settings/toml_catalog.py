"""Parse the table `[catalog]` of a pipeline's file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final, cast

from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.spark.pipeline.settings.toml_storage import server_url, variable
from twinstream.spark.pipeline.settings.toml_table import TomlTable

__all__ = ["CATALOG_KEYS", "catalog_settings"]

CATALOG_KEYS: Final = (
    *("uri", "warehouse", "namespace", "token_env", "credential_env", "properties"),
)
"""The keys of `[catalog]`."""

# Parts of the names of properties with secrets, and the key to use instead.
_SECRETS: Final[Mapping[str, str]] = {
    "token": "token_env",
    "credential": "credential_env",
    "password": "credential_env",
    "secret": "credential_env",
    "authorization": "token_env",
    "access-key": "access_key_env of [storage]",
    "api-key": "token_env",
    "apikey": "token_env",
}

# Values with these beginnings are keys of Amazon, tokens, and private keys.
_SECRET_VALUE: Final = re.compile(
    r"(?:AKIA|ASIA)[A-Z0-9]{12,}|eyJ[\w-]{10,}\.|(?:Bearer|Basic) |-----BEGIN ", re.ASCII
)

# Names of properties that end so have no secret, although they have the name of one.
_HARMLESS: Final = ("-uri", "-enabled", "-ms", "-type")

# Properties that the pipeline sets, and what sets them.
_OWN: Final[Mapping[str, str]] = {
    "uri": "the key uri of [catalog]",
    "warehouse": "the key warehouse of [catalog]",
    "type": "the pipeline, for which the catalog is a REST catalog",
    "py-io-impl": "the pipeline, which reads and writes with [storage]",
    "py-catalog-impl": "the pipeline, for which the catalog is a REST catalog",
    "snapshot-loading-mode": "the pipeline, which needs all snapshots",
}

# Beginnings of properties that pyiceberg would ignore here, and what to use instead.
_INSTEAD: Final[Mapping[str, str]] = {
    "ssl": "the environment variable REQUESTS_CA_BUNDLE, with the file of certificates",
    "auth": "token_env, credential_env or rest.sigv4-enabled",
}

_SIGNED: Final = "rest.sigv4-enabled"

# Properties of catalogs. pyiceberg ignores others, so a property that is similar is misspelled.
_KNOWN: Final = (
    *(_SIGNED, "rest.signing-name", "rest.signing-region", "rest.sigv4.max-retries"),
    *("oauth2-server-uri", "scope", "audience", "resource", "prefix", "rest-page-size"),
    *("view-endpoints-supported", "namespace-separator", "scan-planning-mode"),
    *("client.region", "client.profile-name", "rest.metrics-reporting-enabled"),
)
_SIMILAR: Final = 0.85
_LEVEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)


def catalog_settings(table: TomlTable) -> CatalogSettings:
    """Return the settings of a catalog. Raises `ConfigError` for the first error in them."""
    table.only({}, *CATALOG_KEYS)
    found = CatalogSettings(
        uri=_uri(table),
        warehouse=table.text("warehouse"),
        namespace=_namespace(table),
        token_env=variable(table, "token_env"),
        credential_env=variable(table, "credential_env"),
        properties=dict(_properties(table.table("properties"))),
    )
    if found.token_env and found.credential_env:
        raise table.fail("credential_env", "cannot be combined with token_env; give one of them")
    if found.is_signed and (found.token_env or found.credential_env):
        key = "token_env" if found.token_env else "credential_env"
        raise table.fail(key, "cannot be combined with rest.sigv4-enabled; give one of them")
    return found


def _uri(table: TomlTable) -> str:
    found = server_url(table, "uri", "https://catalog.example.org/iceberg", has_path=True)
    if not found:
        raise table.fail(
            "uri", 'is required, for example uri = "https://catalog.example.org/iceberg"'
        )
    if found.endswith("/v1"):
        raise table.fail("uri", "must be without the version /v1, which each request adds")
    return found


def _namespace(table: TomlTable) -> tuple[str, ...]:
    text = table.text("namespace")
    if not text:
        raise table.fail(
            "namespace", 'is required: where the tables are, for example namespace = "lake"'
        )
    levels = tuple(text.split("."))
    for level in levels:
        if not _LEVEL.fullmatch(level):
            raise table.fail(
                "namespace",
                f"{text!r} may contain only letters, digits, '-' and '_', and dots between levels",
            )
    return levels


def _properties(table: TomlTable) -> Iterator[tuple[str, str]]:
    for name, value in _flat("", table.rest()):
        if name in _OWN:
            raise table.fail(name, f"cannot be set here, because it is set by {_OWN[name]}")
        instead = _secret(name)
        if instead is not None or _SECRET_VALUE.search(str(value)):
            # The error does not show the value, because the error may be logged.
            raise table.fail(
                name,
                "a secret must not be in this file; name the environment variable that has it:"
                f" {instead or 'token_env'}",
            )
        if (other := _INSTEAD.get(name.partition(".")[0])) is not None:
            raise table.fail(name, f"cannot be set here; use {other}")
        if name not in _KNOWN and (near := get_close_matches(name, _KNOWN, 1, _SIMILAR)):
            raise table.fail(name, f"is not known; did you mean {near[0]!r}?")
        if name == _SIGNED and str(value).lower() not in ("true", "false"):
            raise table.fail(name, f"must be true or false, got {value!r}")
        if isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, str | int):
            yield name, str(value)
        else:
            raise table.fail(name, f"must be text, a whole number, true or false, got {value!r}")


def _secret(name: str) -> str | None:
    """Return the key to use instead of a property with a secret, or `None` for another one."""
    if name.endswith(_HARMLESS):
        return None
    plain = name.lower().replace("_", "-")
    return next((instead for part, instead in _SECRETS.items() if part in plain), None)


def _flat(above: str, values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield keys and values of nested tables, with keys joined by dots.

    TOML parses `rest.signing-name` without quotes as nested tables.
    """
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{above}{key}.", cast("dict[str, object]", value))
        else:
            yield above + key, value
