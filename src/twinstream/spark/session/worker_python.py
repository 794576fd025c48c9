"""Let Spark's Python processes use the installed PySpark, which starts faster than Spark's zip.

Spark puts a zip of PySpark's sources first on the path of its Python processes. Python does not
cache compiled modules from a zip, so each process first compiles some 300 modules. A query starts
several processes. The start of a process takes 2.0 seconds of CPU time with the zip, and 0.5 with
the installed package.

If PySpark is also installed as a package, this module writes a program that removes the zip from
the path and starts the interpreter. The saved time also matters because the process that plans a
streaming query must start within ten seconds. No setting of Spark changes this limit.

Spark forks its workers from a process that has loaded little more than Python itself. So each
worker imports PySpark, Arrow and this package, which takes 0.3 seconds of CPU time, and after each
task it searches the objects of all these modules for garbage. With the program, the process from
which workers are forked has the modules. They open no connection and start no thread of Python. No
setting of Spark covers the workers that plan a read or a write.
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

# The workers do not search for garbage in what was there before the fork. Without the package, they
# import what they can: the driver may find it in another way than by its environment.
_DAEMON: Final = """\
import gc
gc.disable()
try:
    import pyspark.worker
    import pyspark.sql.worker.commit_data_source_write
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.sql.worker.write_into_data_source
    import twinstream.spark.data_source
except ImportError:
    pass
from pyspark.daemon import manager
gc.freeze()
gc.enable()
manager()
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
