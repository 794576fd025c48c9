"""Paths of this machine, and URLs of other file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.disk.local_path import local_path
from twinstream.errors import BadArgument


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("lake", "lake"),
        ("/lake/a b", "/lake/a b"),
        ("~/lake", "~/lake"),
        ("C:\\lake", "C:\\lake"),
        ("c:/lake", "c:/lake"),
        ("./s3a:/x", "./s3a:/x"),
        ("a:b", "a:b"),
        ("file:///lake/50%=x", "/lake/50%=x"),
        ("file:/lake", "/lake"),
        ("FILE://localhost/lake", "/lake"),
        (Path("/lake"), "/lake"),
    ],
)
def test_paths_are_accepted(given: str | Path, path: str) -> None:
    assert local_path(given) == Path(path)


@pytest.mark.parametrize(
    "given",
    [
        "s3a://lake/orders",
        "hdfs://host/orders",
        "hdfs:///orders",
        "abfss://a@b.c/orders",
        "dbfs:/orders",
        "gs://x",
        "file://host/orders",
        "file:////host/orders",
        Path("s3a://lake/orders"),
    ],
)
def test_other_file_systems_are_refused(given: str | Path) -> None:
    with pytest.raises(BadArgument, match=r"folder .*: is not supported, only folders"):
        local_path(given, "folder")


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(BadArgument, match="path must be text or a path, got 3"):
        local_path(3)
