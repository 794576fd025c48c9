"""How tests run Java: in short programs, optimizing compilation costs more than it saves.

`python -m tests.quick_java` writes an archive of the classes that Spark loads, with which Java
starts in half the CPU time. `make test` does so once. Java ignores an archive of another Java.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["QUICK_JAVA", "quick_session"]

_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ARCHIVE: Final = Path(sys.prefix) / "spark-classes.jsa"
# Java says nothing of an archive that it cannot use.
_SILENT: Final = " -Xlog:cds=off -Xlog:cds+dynamic=off"
_SHARED: Final = f"{_SILENT} -XX:SharedArchiveFile={_ARCHIVE}" if _ARCHIVE.exists() else ""

QUICK_JAVA: Final = {"JAVA_TOOL_OPTIONS": _OPTIONS + _SHARED}
"""The environment of a program that starts Java. `pipeline_java` has the same for a session."""


def quick_session() -> dict[str, str]:
    """Return settings for a session of a pipeline, whose Java uses the archive."""
    from twinstream.spark.session.session import pipeline_java

    return {name: options + _SHARED for name, options in pipeline_java().items()}


# What most of the programs do. Java writes the archive when it ends.
_PROGRAM: Final = """
import sys
from twinstream.spark import local_session
settings = {"spark.driver.extraJavaOptions": sys.argv[1], "spark.ui.enabled": "false"}
spark = local_session("classes", master="local[2]", settings=settings)
spark.range(9).selectExpr("id", "id % 3 as k").write.parquet(sys.argv[2])
rows = spark.read.parquet(sys.argv[2]).groupBy("k").count().orderBy("k")
assert len(rows.collect()) == 3
query = spark.readStream.format("rate").load().writeStream.format("noop")
query = query.trigger(availableNow=True).option("checkpointLocation", sys.argv[3])
query.start().awaitTermination()
spark.stop()
"""


def main() -> None:
    """Write the archive."""
    with TemporaryDirectory(prefix="twinstream-java-") as folder:
        written = Path(folder) / "classes.jsa"
        options = f"{_OPTIONS} -XX:ArchiveClassesAtExit={written}"
        command = [sys.executable, "-c", _PROGRAM, options, f"{folder}/table", f"{folder}/query"]
        # Java has the pipes of its program, so they are open until Java has ended.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not written.exists():
            sys.exit(f"Java wrote no archive of Spark's classes:\n{done.stdout}{done.stderr}")
        beside = _ARCHIVE.with_suffix(".part")
        beside.write_bytes(written.read_bytes())
        os.replace(beside, _ARCHIVE)


if __name__ == "__main__":
    main()
