"""Kill a server when the process that started it ends.

A guard is a shell that waits for the end of its standard input, which is a pipe. Only this process
has the other end of the pipe, so the pipe is closed when the process ends in any way, including
`kill -9`. The parent-death signal of Linux cannot be used, because the kernel sends it when the
*thread* that started the server ends.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

_SCRIPT: Final = 'read -r _; kill -KILL "$1" 2>/dev/null; [ -z "$2" ] || rm -rf -- "$2"'


class Guard:
    """A guard that kills the process `pid` when the current process ends.

    It also removes `folder`, if given. On systems other than POSIX, the guard has no effect.
    """

    def __init__(self, pid: int, folder: Path | None) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if os.name != "posix":
            return
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "guard", str(pid), str(folder or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C at the terminal does not end the guard
        )

    def dismiss(self) -> None:
        """End the guard. The process `pid` continues, and the folder stays."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        shell.kill()
        shell.wait()
        if shell.stdin is not None:
            shell.stdin.close()
