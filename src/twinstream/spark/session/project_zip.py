"""Pack this project into one zip for executors on which it is not installed.

::

    python -m twinstream.spark.session.project_zip twinstream.zip
    spark-submit --py-files twinstream.zip …

The zip contains the packages of this project and their dependency attrs. pyarrow has compiled code,
so it must be installed on the executors. Spark plans streaming queries in a separate process on the
driver's machine, so put the zip also on the driver's `PYTHONPATH`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from twinstream.spark.errors import SparkSourceError

__all__ = ["PACKAGES", "pack"]

PACKAGES: Final = (
    "twinstream",
    "js_sync",
    "pyspark_jetstream",
    "attr",
    "attrs",
)
"""The import names of the packages in the zip."""

_LEFT_OUT: Final = frozenset({".pyc", ".pyi"})


def pack(target: Path) -> Path:
    """Write the zip to `target` and return this path.

    Equal sources give equal bytes, so that a cluster's cache recognizes the file. Raises
    `SparkSourceError` if a package is not installed.
    """
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path, name in _files(package):
                # `ZipInfo` has a fixed date. With the dates of the files, equal sources would give
                # different bytes.
                archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    return target


def _files(package: str) -> list[tuple[Path, str]]:
    """Return the path of each file of a package or single module, and its name in the zip."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SparkSourceError(f"{package} is not installed here, so it cannot be packed")
    origin = Path(spec.origin)
    if spec.submodule_search_locations is None:
        return [(origin, origin.name)]
    root = origin.parent
    return [
        (path, str(Path(package) / path.relative_to(root)))
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in _LEFT_OUT
    ]


def _main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m twinstream.spark.session.project_zip FILE.zip", file=sys.stderr)
        return 2
    target = pack(Path(arguments[0]))
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
