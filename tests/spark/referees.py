"""Other programs that read Iceberg tables: Iceberg's own Java library, and DuckDB's extension.

Both are downloaded into a folder of the environment by the soak tests that use them. The DuckDB of
the environment is newer than the extensions that are packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from pyiceberg.table import Table

from tests.s3_server import S3Server, client_environment
from tests.soak import LONGEST

__all__ = ["duckdb_counts", "duckdb_files", "duckdb_numbers", "java_referee"]

_FOLDER: Final = Path(sys.prefix) / "referees"
_JAVA: Final = "bodo-iceberg-connector==2026.10"
_VERSION: Final = "1.5.5"
_DUCKDB: Final = [
    f"{name}=={_VERSION}"
    for name in (
        "duckdb", "duckdb-extension-httpfs", "duckdb-extension-avro", "duckdb-extension-iceberg",
    )
]  # fmt: skip
_SOURCE: Final = Path(__file__).with_name("IcebergReferee.java")

# Loads the extensions from their packages, and reads numbers of a table by its metadata.
_PROGRAM: Final = """
import os, sys
from pathlib import Path
import duckdb
connection = duckdb.connect()
for name in ("httpfs", "avro", "iceberg"):
    package = Path(duckdb.__file__).parent.parent / f"duckdb_extension_{name}"
    (file,) = package.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
connection.execute(
    "CREATE SECRET (TYPE s3, REGION 'us-east-1', URL_STYLE 'path', USE_SSL false,"
    f" KEY_ID '{os.environ['TEST_S3_KEY']}', SECRET '{os.environ['TEST_S3_SECRET']}',"
    f" ENDPOINT '{sys.argv[1]}')"
)
query = sys.argv[3].replace("TABLE", f"iceberg_scan('{sys.argv[2]}')")
print(*connection.execute(query).fetchone())
"""


def duckdb_counts(s3: S3Server, table: Table) -> tuple[int, int]:
    """Return the rows and the distinct sequences of a table, by DuckDB's `iceberg_scan`."""
    rows, distinct = duckdb_numbers(s3, table, "count(*), count(DISTINCT _seq)")
    return rows, distinct


def duckdb_numbers(s3: S3Server, table: Table, columns: str, wanted: str = "true") -> list[int]:
    """Return a row of numbers that DuckDB's `iceberg_scan` gives for expressions of columns.

    `wanted` is a condition for the rows.
    """
    return list(map(int, _answer(s3, table, f"SELECT {columns} FROM TABLE WHERE {wanted}").split()))


def duckdb_files(s3: S3Server, table: Table, wanted: str) -> int:
    """Return how many files of a table DuckDB reads for a condition."""
    plan = _answer(s3, table, f"EXPLAIN ANALYZE SELECT max(_seq) FROM TABLE WHERE {wanted}")
    (found,) = re.findall(r"Total Files Read: (\d+)", plan)
    return int(found)


def _answer(s3: S3Server, table: Table, query: str) -> str:
    """Return the first row for a query of `TABLE`, as text."""
    folder = _FOLDER / f"duckdb-{_VERSION}"
    if not folder.exists():
        _downloaded(folder, "install", "--target", *_DUCKDB)
    place = s3.url.removeprefix("http://")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, place, table.metadata_location, query],
        env={**os.environ, **client_environment(), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    # Native threads may end the process after its work, so the output counts.
    assert done.stdout, done.stderr[-3000:]
    return done.stdout


def java_referee(
    s3: S3Server, namespace: str, table: str, commits: int, *names: str
) -> subprocess.Popen[str]:
    """Start Iceberg's Java library as a reader and another writer of a table.

    It prints the files and the rows of the table at its start and after each of its commits, and
    the column in which it reads the values that older files have under each of some names.
    """
    folder = _FOLDER / "java"
    if not folder.exists():
        _downloaded(folder, "download", "--dest", _JAVA)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [e for e in archive.namelist() if e.endswith(".jar")])
        wheel.unlink()
    jars = os.pathsep.join(str(jar) for jar in sorted(folder.rglob("*.jar")))
    arguments = [namespace, table, str(commits), *names]
    java = shutil.which("java")
    assert java, "the soak needs a JDK, which runs a program from its source"
    return subprocess.Popen(
        [java, "-cp", jars, str(_SOURCE), s3.catalog_url, s3.url, *arguments],
        env={**os.environ, **client_environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _downloaded(folder: Path, verb: str, where: str, *packages: str) -> None:
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", where, str(unfinished)]
    subprocess.run([*command, *packages], check=True, timeout=900)
    unfinished.rename(folder)
