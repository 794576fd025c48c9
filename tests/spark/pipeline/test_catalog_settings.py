"""An Iceberg catalog in a pipeline's file: what it means, and what is said of mistakes in it."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from twinstream.lake.errors import StorageError, StorageUnusable
from twinstream.lake.iceberg.catalog import catalog_properties, open_catalog
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.folder import StorageSettings
from twinstream.spark.errors import ConfigError
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.pipeline import PipelineConfig, read_config

NATS = '[nats]\nservers = "nats://h"\n'
SOURCE = f'[[source]]\nstream = "ORDERS"\n{NATS}'
CATALOG = 'uri = "https://h/iceberg"\nnamespace = "lake"\n'


def read(
    folder: Path, catalog: str, path: str = "s3://bucket/lake", source: str = SOURCE
) -> PipelineConfig:
    file = folder / "orders.toml"
    file.write_text(f'path = "{path}"\nsink = "iceberg"\n{catalog}\n{source}')
    return read_config(file)


def test_a_catalog(tmp_path: Path) -> None:
    config = read(tmp_path, f"[catalog]\n{CATALOG}")
    assert config.catalog == CatalogSettings(uri="https://h/iceberg", namespace=("lake",))
    config = read(
        tmp_path,
        """[catalog]
uri = "http://127.0.0.1:8181/"
namespace = "raw.orders"
warehouse = "s3://warehouse"
credential_env = "CATALOG_CLIENT"
[catalog.properties]
oauth2-server-uri = "https://h/token"
scope = "PRINCIPAL_ROLE:ALL"
rest.metrics-reporting-enabled = false
"view-endpoints-supported" = true
token-exchange-enabled = 1
""",
    )
    assert config.catalog == CatalogSettings(
        uri="http://127.0.0.1:8181",
        namespace=("raw", "orders"),
        warehouse="s3://warehouse",
        credential_env="CATALOG_CLIENT",
        properties={
            "oauth2-server-uri": "https://h/token",
            "scope": "PRINCIPAL_ROLE:ALL",
            "rest.metrics-reporting-enabled": "false",
            "view-endpoints-supported": "true",
            "token-exchange-enabled": "1",
        },
    )


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        ('namespace = "a"', "uri: is required, for example"),
        ('uri = "https://h"', "namespace: is required: where the tables are"),
        (f'{CATALOG}urj = "x"', "urj: is not known; did you mean 'uri'"),
        (f'{CATALOG}token = "hush"', "token: is not known; did you mean 'token_env'"),
        ('uri = "h:8181"\nnamespace = "a"', "uri: must be the URL of a server such as"),
        ('uri = "https://h/v1/"\nnamespace = "a"', "uri: must be without the version /v1"),
        ('uri = "https://u:p@h"\nnamespace = "a"', "uri: must have no user and no password"),
        ('uri = "https://h?token=hush"\nnamespace = "a"', "uri: must be the URL of a server"),
        ('uri = "https://h"\nnamespace = "a b"', "namespace: 'a b' may contain only letters"),
        ('uri = "https://h"\nnamespace = "a..b"', r"namespace: 'a\.\.b' may contain only"),
        (f'{CATALOG}token_env = "hu/sh"', "token_env: must be the name of an environment"),
        (
            f'{CATALOG}token_env = "A"\ncredential_env = "B"',
            "credential_env: cannot be combined with token_env",
        ),
        (
            f'{CATALOG}token_env = "A"\nproperties = {{"rest.sigv4-enabled" = true}}',
            "token_env: cannot be combined with rest.sigv4-enabled",
        ),
    ],
)
def test_mistakes_in_a_catalog_are_named(tmp_path: Path, catalog: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"orders.toml: \[catalog\]: {message}") as caught:
        read(tmp_path, f"[catalog]\n{catalog}")
    assert "hush" not in str(caught.value)
    assert "hu/sh" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("token", "hush", "token_env"),
        ("credential", "hush", "credential_env"),
        ("client.secret-access-key", "hush", "credential_env"),
        ("s3.access-key-id", "hush", "access_key_env of"),
        ("header.Authorization", "hush", "token_env"),
        ("header.X-Key", "Bearer hush", "token_env"),
        ("header.X-Api-Key", "hush", "token_env"),
        ("scope", "AKIAHUSHHUSHHUSHHUSH", "token_env"),
        ("note", "eyJhbGciOiJIUzI1NiJ9.hush", "token_env"),
    ],
)
def test_secrets_in_properties_are_refused_without_showing_them(
    tmp_path: Path, name: str, value: str, instead: str
) -> None:
    text = f'[catalog]\n{CATALOG}[catalog.properties]\n"{name}" = "{value}"'
    with pytest.raises(ConfigError, match=f"a secret must not be .*: {instead}") as caught:
        read(tmp_path, text)
    assert "hush" not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rest.sigv4-enabld", True, "is not known; did you mean 'rest.sigv4-enabled'"),
        ("oauth2-server-url", "https://h", "is not known; did you mean 'oauth2-server-uri'"),
        ("rest.sigv4-enabled", "yes", "must be true or false, got 'yes'"),
        ("ssl.cabundle", "ca.pem", "cannot be set here; use the environment variable REQUESTS_CA"),
        ("auth.type", "basic", "cannot be set here; use token_env, credential_env or rest.sigv4"),
    ],
)
def test_properties_that_would_be_ignored_are_refused(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    text = json.dumps(value)
    with pytest.raises(ConfigError, match=f"{name}: {message}"):
        read(tmp_path, f"[catalog]\n{CATALOG}[catalog.properties]\n{name} = {text}")


@pytest.mark.parametrize(
    "name", ["uri", "warehouse", "type", "py-io-impl", "py-catalog-impl", "snapshot-loading-mode"]
)
def test_properties_that_the_pipeline_sets_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: cannot be set here, because it is set by"):
        read(tmp_path, f'[catalog]\n{CATALOG}[catalog.properties]\n"{name}" = "x"')


def test_iceberg_needs_a_catalog_and_an_object_store(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='catalog: is required with sink = "iceberg"'):
        read(tmp_path, "")
    message = (
        'iceberg tables need a catalog and an object store, .*; on a file system, set sink = "del'
    )
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, f"[catalog]\n{CATALOG}", path="lake")
    file = tmp_path / "delta.toml"
    file.write_text(f'path = "lake"\nsink = "delta"\n[catalog]\n{CATALOG}\n{SOURCE}')
    with pytest.raises(ConfigError, match='catalog: is for sink = "iceberg"; remove the table'):
        read_config(file)


def test_keys_in_a_wrong_place_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"namespace: .* it belongs into the table \[catalog\]"):
        read(tmp_path, 'namespace = "lake"')


@pytest.mark.parametrize(
    "sources",
    [
        '[[source]]\nstream = "a-b"\n[[source]]\nstream = "a_b"\n',
        '[[source]]\nstream = "orders"\n[[source]]\nstream = "dead_letters_orders"\n',
    ],
)
def test_tables_have_different_names_in_the_catalog(tmp_path: Path, sources: str) -> None:
    with pytest.raises(ConfigError, match=r"table: '.*' is used more than once"):
        read(tmp_path, f"[catalog]\n{CATALOG}", source=sources + NATS)


def test_credentials_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = CatalogSettings(uri="https://h", namespace=("a",), token_env="T")
    with pytest.raises(StorageUnusable, match=r"variable T, which \[catalog\] names, is not set"):
        catalog_properties(settings, StorageSettings())
    monkeypatch.setenv("T", "hush")
    found = catalog_properties(settings, StorageSettings())
    assert found == {"uri": "https://h", "token": "hush", "snapshot-loading-mode": "all"}
    monkeypatch.setenv("K", "key")
    monkeypatch.setenv("S", "secret")
    signed = CatalogSettings(
        uri="https://h", namespace=("a",), properties={"rest.sigv4-enabled": "true"}
    )
    storage = StorageSettings(region="eu-west-1", access_key_env="K", secret_key_env="S")
    assert catalog_properties(signed, storage) == {
        "uri": "https://h",
        "rest.sigv4-enabled": "true",
        "rest.signing-region": "eu-west-1",
        "client.region": "eu-west-1",
        "client.access-key-id": "key",
        "client.secret-access-key": "secret",
        "snapshot-loading-mode": "all",
    }


@contextmanager
def answering(answer: object) -> Generator[str]:
    """Yield the URL of a server with the same answer to each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_POST = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def opened(settings: CatalogSettings) -> object:
    storage = StorageSettings(region="us-east-1")
    return open_catalog(settings, storage, catalog_properties(settings, storage))


def test_an_answer_with_a_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", "id:secret")
    with answering({"access_token": "hush"}) as url:
        settings = CatalogSettings(
            uri=url,
            namespace=("a",),
            credential_env="T",
            properties={"oauth2-server-uri": f"{url}/token"},
        )
        with pytest.raises(
            StorageError, match=r"not that of a catalog .*token_type\); ch"
        ) as caught:
            opened(settings)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_an_answer_of_another_server_is_explained() -> None:
    with (
        answering({"defaults": {}, "overrides": [1]}) as url,
        pytest.raises(StorageError, match=r"not that of a catalog .*overrides.*; check uri of"),
    ):
        opened(CatalogSettings(uri=url, namespace=("a",)))
    with (
        answering({"defaults": None, "overrides": {}}) as url,
        pytest.raises(StorageUnusable, match=r"cannot open the catalog http.*; check the prop"),
    ):
        opened(CatalogSettings(uri=url, namespace=("a",)))


def test_signed_requests_need_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    properties = {"rest.sigv4-enabled": "true", "rest.signing-name": "s3tables"}
    with (
        answering({}) as url,
        pytest.raises(StorageUnusable, match="no credentials; set access_key_env and"),
    ):
        opened(CatalogSettings(uri=url, namespace=("a",), properties=properties))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'partition_by = ["year(timestamp)", "subject[2]", "hour(timestamp)"]',
            r"partition_by: year\(timestamp\) and hour\(timestamp\): .* keep the shorter of both",
        ),
        (
            'table = "Orders_{subject[2]}"',
            r"table: 'Orders_' is the beginning .* lower-case",
        ),
        (
            'table = "orders-{subject[2]}"',
            r"table: 'orders-' is the beginning .* lower-case",
        ),
    ],
)
def test_tables_that_iceberg_cannot_have_are_refused(
    tmp_path: Path, line: str, message: str
) -> None:
    source = f'[[source]]\nstream = "ORDERS"\n{line}\n{NATS}'
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, f"[catalog]\n{CATALOG}", source=source)


def test_names_and_files_are_those_of_a_catalog(tmp_path: Path) -> None:
    line = 'table = "orders_{subject[2]}"\npartition_by = ["day(timestamp)", "subject[2]"]'
    source = f'[[source]]\nstream = "ORDERS"\n{line}\n{NATS}'
    (found,) = read(tmp_path, f"[catalog]\n{CATALOG}", source=source).sources
    assert found.files.in_catalog
    columns = TableSplit(found.source_options, found.tables, 0).columns("orders_a")
    assert columns.names[-2:] == ["_batch_id", "subject_2"]
