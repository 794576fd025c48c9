"""Let Spark's Python processes use the installed PySpark, which starts faster than Spark's zip.

Spark puts a zip of PySpark's sources first on the path of its Python processes. Python does not
cache compiled modules from a zip, so each process first compiles some 300 modules. A query starts
several processes. The start of a process takes 2.0 seconds of CPU time with the zip, and 0.5 with
the installed package.

If PySpark is also installed as a package, this module writes a program that removes the zip from
the path and starts the interpreter. The saved time also matters because the process that plans a
streaming query must start within ten seconds. No setting of Spark changes this limit.

The program also replaces the process from which Spark forks its workers, see `worker_daemon`. No
setting of Spark covers those that plan a read or a write.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from twinstream.spark.session.cache_folder import cache_folder

__all__ = ["worker_python"]

_LAUNCHER: Final = """\
#!/bin/sh
# Starts Python without the zip of PySpark on its path: the same PySpark is installed, compiled.
archive={archive}
path=":$PYTHONPATH:"
while [ "$path" != "${{path#*":$archive:"}}" ]; do  # Spark names it several times
  path="${{path%%":$archive:"*}}:${{path#*":$archive:"}}"
done
path="${{path#:}}"
export PYTHONPATH="${{path%:}}"
if [ "$1 $2" = "-m pyspark.daemon" ]; then
  shift 2
  exec {python} -c {daemon} "$@"
fi
exec {python} "$@"
"""

# Only the program of the driver may know where this package is.
_DAEMON: Final = """\
try:
    from twinstream.spark.session.worker_daemon import main
except ImportError:
    from pyspark.daemon import manager as main
main()
"""


def worker_python() -> str:
    """Return the path of a program for `PYSPARK_PYTHON` that removes the zip from the path.

    Return the path of this interpreter on systems other than POSIX, and if Spark does not run from
    the installed package. In the second case, the zip may contain another version of PySpark.
    """
    archive = _archive()
    if archive is None or os.name != "posix":
        return sys.executable
    script = _LAUNCHER.format(
        archive=_quote(archive), python=_quote(sys.executable), daemon=_quote(_DAEMON)
    )
    key = hashlib.sha256(script.encode()).hexdigest()[:16]
    program = cache_folder() / f"python-{key}"
    if not program.is_file():
        _write(program, script)
    return str(program)


def _archive() -> str | None:
    """Return the path of the zip as Spark puts it on the path of its Python processes.

    Return `None` if there is no zip, or if it does not belong to the installed package.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    home = os.environ.get("SPARK_HOME") or str(Path(spec.origin).parent)
    archive = Path(home) / "python" / "lib" / "pyspark.zip"
    installed = Path(spec.origin).parent / "python" / "lib" / "pyspark.zip"
    if not archive.is_file() or archive.resolve() != installed.resolve():
        return None
    return str(archive)


def _write(program: Path, script: str) -> None:
    """Write the program to a temporary file, and rename the file.

    So a process never starts an incomplete program, even if several processes write it.
    """
    number, building = tempfile.mkstemp(prefix=".python-", dir=program.parent)
    with os.fdopen(number, "w") as file:
        file.write(script)
    Path(building).chmod(0o755)
    Path(building).replace(program)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
