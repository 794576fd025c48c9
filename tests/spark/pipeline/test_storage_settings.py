"""A lake on S3 in a pipeline's file: what it means, and what is said of mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.lake.objects.folder import ObjectFolder, StorageSettings
from twinstream.spark.errors import ConfigError
from twinstream.spark.pipeline import PipelineConfig, read_config
from twinstream.spark.pipeline.settings.folders import Folders

SOURCE = '[[source]]\nstream = "ORDERS"\n[nats]\nservers = "nats://h"\n'


def read(folder: Path, path: str, storage: str = "", sink: str = "delta") -> PipelineConfig:
    file = folder / "orders.toml"
    file.write_text(f'path = "{path}"\nsink = "{sink}"\n{storage}\n{SOURCE}')
    return read_config(file)


def test_a_lake_on_s3(tmp_path: Path) -> None:
    config = read(tmp_path, "s3://bucket/a/lake/")
    assert config.path == ObjectFolder("bucket", "a/lake", StorageSettings())
    assert (str(config.path), config.path.name) == ("s3://bucket/a/lake", "lake")
    assert str(read(tmp_path, "s3://bucket").path) == "s3://bucket"
    config = read(
        tmp_path,
        "s3://bucket/lake",
        """[storage]
endpoint = "http://127.0.0.1:9000/"
region = "eu-west-1"
access_key_env = "LAKE_KEY"
secret_key_env = "LAKE_SECRET"
session_token_env = "LAKE_TOKEN"
encryption = "aws:kms"
kms_key = "alias/lake"
timeout = "5s"
lease = "10s"
""",
    )
    assert isinstance(config.path, ObjectFolder)
    assert config.path.storage == StorageSettings(
        endpoint="http://127.0.0.1:9000",
        region="eu-west-1",
        access_key_env="LAKE_KEY",
        secret_key_env="LAKE_SECRET",
        session_token_env="LAKE_TOKEN",
        encryption="aws:kms",
        kms_key="alias/lake",
        timeout=5.0,
        lease=10.0,
    )
    by_profile = read(tmp_path, "s3://bucket/lake", '[storage]\nprofile = "lake"')
    assert by_profile.path == ObjectFolder("bucket", "lake", StorageSettings(profile="lake"))


def test_locks_of_a_lake_on_s3_are_files_of_the_machine(tmp_path: Path) -> None:
    one = Folders.of(read(tmp_path, "s3://bucket/lake").path)
    same = Folders.of(read(tmp_path, "s3://bucket/lake/").path)
    others = [
        Folders.of(read(tmp_path, path, storage).path)
        for path, storage in (
            ("s3://bucket/other", ""),
            ("s3://bucket/lake", '[storage]\nendpoint = "http://h:1"'),
        )
    ]
    assert one.lock == same.lock
    assert len({one.lock, *(each.lock for each in others)}) == 3


@pytest.mark.parametrize(
    "url",
    ["gs://b/x", "az://c/x", "abfss://c@a/x", "hdfs://h/x", "s3a://b/x", "dbfs:/x", "HDFS://h/x"],
)
def test_other_schemes_are_refused(tmp_path: Path, url: str) -> None:
    scheme = url.partition(":")[0]
    message = f"orders.toml: path: '{url}': {scheme}: is not supported; give .* or s3://bucket"
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, url)


@pytest.mark.parametrize("url", ["s3:/b/x", "s3://", "s3://B/x", "s3://b!/x", "S3://bucket/x"])
def test_what_is_no_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"path: .* is not a URL such as s3://bucket/lake"):
        read(tmp_path, url)


@pytest.mark.parametrize("part", ["..", ".", "a b", "ä", "a%20b", "a#b", "a?b"])
def test_folders_that_some_readers_change_are_refused(tmp_path: Path, part: str) -> None:
    with pytest.raises(ConfigError, match=r"path: .* has a folder .*; its letters, digits and"):
        read(tmp_path, f"s3://bucket/{part}/x")


def test_parquet_tables_cannot_be_on_s3(tmp_path: Path) -> None:
    message = 'sink: parquet tables cannot be on S3, .*; set sink = "delta"'
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, "s3://bucket/lake", sink="parquet")


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("access_key", "access_key_env"),
        ("access_key_id", "access_key_env"),
        ("AWS_ACCESS_KEY_ID", "access_key_env"),
        ("secret_key", "secret_key_env"),
        ("secret_access_key", "secret_key_env"),
        ("aws_secret_access_key", "secret_key_env"),
        ("session_token", "session_token_env"),
        ("token", "session_token_env"),
    ],
)
def test_keys_in_the_file_are_refused_without_showing_them(
    tmp_path: Path, key: str, instead: str
) -> None:
    with pytest.raises(ConfigError, match=f"{key}: a key of the store .*: {instead} = ") as caught:
        read(tmp_path, "s3://bucket/lake", f'[storage]\n{key} = "hush"')
    assert "hush" not in str(caught.value)


def test_a_key_in_place_of_the_name_of_a_variable_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="secret_key_env: must be the name of") as caught:
        read(tmp_path, "s3://bucket/lake", '[storage]\nsecret_key_env = "hu/sh+"')
    assert "hu/sh" not in str(caught.value)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ('access_key_env = "A"', "secret_key_env: is required with the other one"),
        ('secret_key_env = "A"', "access_key_env: is required with the other one"),
        ('session_token_env = "A"', "session_token_env: needs access_key_env and"),
        (
            'profile = "p"\naccess_key_env = "A"\nsecret_key_env = "B"',
            "profile: cannot be combined with access_key_env",
        ),
        ('kms_key = "k"', 'kms_key: needs encryption = "aws:kms"'),
        ('encryption = "AES"', "encryption: must be one of AES256, aws:kms, got 'AES'"),
        ('endpoint = "h:9000"', "endpoint: must be the URL of a server"),
        ('endpoint = "http://h/path"', "endpoint: must be the URL of a server"),
        ('endpoint = "http://h:x"', "endpoint: is not the URL of a server"),
        ('endpoint = "http://u:p@h"', "endpoint: must have no user and no password"),
        ('lease = "2s"', "lease: must be at least 3s"),
        ('timeout = "5"', "timeout: must be a duration"),
        ('endpont = "http://h"', "endpont: is not known; did you mean 'endpoint'"),
    ],
)
def test_mistakes_in_storage_are_named(tmp_path: Path, storage: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"orders.toml: \[storage\]: {message}"):
        read(tmp_path, "s3://bucket/lake", f"[storage]\n{storage}")


def test_keys_in_a_wrong_place_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='storage: is for a path such as "s3://bucket/lake"'):
        read(tmp_path, "lake", '[storage]\nregion = "x"', sink="parquet")
    with pytest.raises(ConfigError, match=r"endpoint: .* it belongs into the table \[storage\]"):
        read(tmp_path, "s3://bucket/lake", 'endpoint = "http://h"')
