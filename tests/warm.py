"""Run short programs as forks of a process that has imported the SDK and the command line.

Imports take most of the CPU time of such a program. Each program still has a process, a `__main__`,
an environment and a folder of its own, and ends as programs do.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final

__all__ = ["TWINSTREAM", "run_warm"]

TWINSTREAM: Final = "from twinstream.cli.main import main; main()"
"""The code of the command."""


def run_warm(
    code: str, words: list[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run Python code, which finds `words` in `sys.argv`, and return what it printed."""
    process = _started()
    assert process.stdin is not None
    assert process.stdout is not None
    with TemporaryDirectory(prefix="twinstream-warm-") as place:
        out, err = Path(place, "out"), Path(place, "err")
        asked = {
            "code": code,
            "words": words,
            "folder": str(folder),
            "environment": dict(environment),
            "out": str(out),
            "err": str(err),
        }
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        if not select([process.stdout], [], [], seconds)[0]:
            _started.cache_clear()
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"still running after {seconds} s: {code}\n{err.read_text()}")
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(words, status, out.read_text(), err.read_text())


@cache
def _started() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=pipe, stdout=pipe, text=True, start_new_session=True
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    with process:  # closes the pipes, at which the process ends, and waits
        pass


def _import_all() -> None:
    import click

    import js_async
    import js_sync
    from twinstream.cli.groups import twinstream

    def load(group: click.Group) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                load(command)

    for package in (js_async, js_sync):
        for name in package.__all__:
            getattr(package, name)
    load(twinstream)
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would lack the other threads"


def _fork(asked: dict[str, Any]) -> bool:
    """Fork. Return whether this is the fork, which is as a process that just started."""
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        return False
    for number, (path, flags) in enumerate(
        (
            (os.devnull, os.O_RDONLY),
            (asked["out"], os.O_WRONLY | os.O_CREAT),
            (asked["err"], os.O_WRONLY | os.O_CREAT),
        )
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - without what the other has read
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["words"]
    sys.path[0] = "" if asked["words"][0] == "-c" else str(Path(asked["words"][0]).parent)
    return True


def _main() -> None:
    _import_all()
    # Otherwise the garbage collector of each fork would write into all objects at its end, and so
    # copy the whole memory.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        if _fork(asked):
            main = sys.modules["__main__"] = ModuleType("__main__")
            if asked["words"][0].endswith(".py"):
                main.__file__ = asked["words"][0]
            exec(compile(asked["code"], asked["words"][0], "exec"), main.__dict__)
            return


if __name__ == "__main__":
    _main()
