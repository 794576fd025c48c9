"""Check the names of environment variables and files in the options of a read or write.

On a shared Spark server, users write options, for example in SQL. If an option names a variable or
a file, the driver or an executor reads it, and may send its content to a server that the user
chose. So an option may name only these: variables with the prefix of this package or of NATS, files
with a usual suffix of their kind (such as `.creds`), and the variables, files and folders that the
operator lists in the driver's environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from twinstream.spark.errors import OptionError

__all__ = [
    "CREDENTIALS",
    "FILES_VARIABLE",
    "PEM",
    "SCHEMAS",
    "STREAM_FILES",
    "VARIABLES_VARIABLE",
    "check_file",
    "check_variable",
]

VARIABLES_VARIABLE: Final = "TWINSTREAM_ALLOWED_ENV"
"""The environment variable of the driver with the comma-separated names of the variables that
options may use."""

FILES_VARIABLE: Final = "TWINSTREAM_ALLOWED_FILES"
"""The environment variable of the driver with the files and folders that options may use. They are
separated as in PATH. If a folder is listed, options may use all files below it."""

CREDENTIALS: Final = (".creds",)
PEM: Final = (".pem", ".crt", ".cer", ".key")
SCHEMAS: Final = (".json",)
STREAM_FILES: Final = (".json", ".yaml", ".yml")

_BEGINNINGS: Final = ("NATS_", "TWINSTREAM_")


def check_variable(option: str, name: str) -> None:
    """Raise `OptionError` if an option may not name the environment variable `name`."""
    listed = os.environ.get(VARIABLES_VARIABLE, "").split(",")
    if name.startswith(_BEGINNINGS) or name in map(str.strip, listed):
        return
    raise OptionError(
        option,
        f"may name a variable NATS_… or TWINSTREAM_…, not {name!r}: rename it, or list it in"
        f" {VARIABLES_VARIABLE} in the environment of the driver before it starts",
    )


def check_file(option: str, path: str, endings: tuple[str, ...]) -> None:
    """Raise `OptionError` if an option may not name the file `path`.

    Files with one of the `endings` are allowed, and files that the operator lists.
    """
    if path.lower().endswith(endings):
        return
    whole = Path(os.path.abspath(path))  # `Path.absolute` would keep ".."
    listed = os.environ.get(FILES_VARIABLE, "").split(os.pathsep)
    if any(whole.is_relative_to(os.path.abspath(each)) for each in listed if each):
        return
    raise OptionError(
        option,
        f"may name a file {' or '.join(f'*{each}' for each in endings)}, not {path!r}: rename it,"
        f" or list it or its folder in {FILES_VARIABLE} in the environment of the driver before"
        " it starts",
    )
