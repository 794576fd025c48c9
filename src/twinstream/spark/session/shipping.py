"""One file with everything that executors need of this project, where nothing is installed.

::

    python -m twinstream.spark.session.shipping twinstream.zip
    spark-submit --py-files twinstream.zip …

The zip holds this project's packages and what they need that is pure Python (attrs, cattrs and
typing_extensions). pyarrow, which holds compiled code, must be on the executors already. Streaming
queries also plan in a process beside the driver: put the zip on the driver's ``PYTHONPATH`` too.
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
    "twinstream.models",
    "twinstream.core",
    "js_sync",
    "twinstream.spark",
    "pyspark_jetstream",
    "attr",
    "attrs",
    "cattr",
    "cattrs",
    "typing_extensions",
)
"""What is packed, by import name."""

_LEFT_OUT: Final = frozenset({".pyc", ".pyi"})


def pack(target: Path) -> Path:
    """Write the zip and return its path. Raises `SparkSourceError` for a package that is missing.

    The same sources give the same bytes, so that a cluster's cache recognises the file.
    """
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path, name in _files(package):
                # With a date of its own, not the file's: the zip depends on what is in it alone.
                archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    return target


def _files(package: str) -> list[tuple[Path, str]]:
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
        print("usage: python -m twinstream.spark.session.shipping FILE.zip", file=sys.stderr)
        return 2
    target = pack(Path(arguments[0]))
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
