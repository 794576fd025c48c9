"""A second opinion on Iceberg tables: pyiceberg with its own files, and DuckDB."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from attrs import evolve
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table

from tests.proxy_faults import request_limit
from tests.s3_proxy import Fault
from tests.s3_server import S3Server
from tests.spark.pipelines import counted_by_duckdb
from twinstream.lake.objects.client import bucket_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.settings.toml_partitions import in_catalog

__all__ = [
    "catalog_of",
    "iceberg_table",
    "landed_in_catalog",
    "misled_on_iceberg",
    "on_iceberg",
    "tables_in",
]


def on_iceberg(
    config: PipelineConfig,
    s3: S3Server,
    name: str,
    *,
    url: str = "",
    catalog_url: str = "",
    fault: Fault = "",
) -> PipelineConfig:
    """Return a pipeline with a lake and a namespace of its own, perhaps behind proxies.

    `fault` is what goes wrong there.
    """
    folder = s3.folder(name, url or None, timeout=request_limit(fault))
    catalog = s3.catalog(f"ns_{name.replace('/', '_')}", catalog_url or None)
    return in_catalog(evolve(config, sink="iceberg", path=folder, catalog=catalog))


def misled_on_iceberg(
    config: PipelineConfig, s3: S3Server, name: str, urls: Sequence[str]
) -> PipelineConfig:
    """Return the pipeline of `on_iceberg` behind proxies that answer some requests wrongly."""
    url, catalog_url = urls
    return on_iceberg(config, s3, name, url=url, catalog_url=catalog_url, fault="time-out")


def catalog_of(config: PipelineConfig) -> Catalog:
    """Return pyiceberg's client of the catalog, as its documentation describes it."""
    assert config.catalog is not None
    assert isinstance(config.path, ObjectFolder)
    key, secret = os.environ["TEST_S3_KEY"], os.environ["TEST_S3_SECRET"]
    settings = {f"{part}.{name}": value for part in ("s3", "client") for name, value in (
        ("access-key-id", key), ("secret-access-key", secret), ("region", "us-east-1"),
    )}  # fmt: skip
    return load_catalog(
        "judge",
        **config.catalog.properties,
        **settings,
        type="rest",
        uri=config.catalog.uri,
        warehouse=config.catalog.warehouse,
        **{"s3.endpoint": config.path.storage.endpoint, "rest.signing-region": "us-east-1"},
    )


def iceberg_table(config: PipelineConfig, name: str = "orders") -> Table:
    assert config.catalog is not None
    return catalog_of(config).load_table((*config.catalog.namespace, name))


def tables_in(config: PipelineConfig) -> list[str]:
    """Return the names of the tables of a pipeline."""
    assert config.catalog is not None
    try:
        return sorted(name for *_, name in catalog_of(config).list_tables(config.catalog.namespace))
    except NoSuchNamespaceError:
        return []


def landed_in_catalog(config: PipelineConfig, folder: Path) -> tuple[int, int]:
    """Return the rows and the distinct sequences of a lake's tables.

    pyiceberg reads the tables, and DuckDB reads copies of their files in `folder`.
    """
    assert isinstance(config.path, ObjectFolder)
    rows, distinct = 0, 0
    for name in tables_in(config):
        table = iceberg_table(config, name)
        seqs = table.scan(selected_fields=("_seq",)).to_arrow().column("_seq").to_pylist()
        files = [each.file.file_path for each in table.scan().plan_files()]
        copies = [_copied(config.path, url, folder) for url in files]
        found = counted_by_duckdb(copies) if copies else (0, 0)
        assert found == (len(seqs), len(set(seqs))), name
        rows, distinct = rows + found[0], distinct + found[1]
    return rows, distinct


def _copied(lake: ObjectFolder, url: str, folder: Path) -> str:
    parts = urlsplit(url)
    bucket = bucket_of(evolve(lake, bucket=parts.netloc, prefix=""))
    copy = folder / uuid.uuid4().hex
    copy.write_bytes(obstore.get(bucket, parts.path.removeprefix("/")).bytes())
    return str(copy)
