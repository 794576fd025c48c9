"""Run the examples of a page: a Python block must print what its `#>` lines show.

Programs of `examples/` show in their docstring what they print.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.quick_java import QUICK_JAVA
from tests.soak import LONGEST
from tests.warm import TWINSTREAM, run_warm
from twinstream.testing import NatsServer

ROOT = Path(__file__).parents[1]
URL = "nats://127.0.0.1:4222"


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of one language."""
    text = page.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(command: list[str], server: NatsServer, folder: Path, *, seconds: float = LONGEST) -> str:
    """Run a command against a server; return its output, or fail with the output."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(server),
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_twinstream(words: list[str], server: NatsServer, folder: Path) -> None:
    """Run a `twinstream` command against a server."""
    _run_warm(TWINSTREAM, words, server, folder)


def check(code: str, server: NatsServer, folder: Path) -> None:
    """Run a Python example and compare its output with its `#>` lines."""
    promised = re.findall(r"^ *#> (.*)$", code, re.MULTILINE)
    assert promised, "the example promises no output"
    printed = _run_warm(code.replace(URL, server.url), ["-c"], server, folder)
    assert printed.splitlines() == promised


def _run_warm(
    code: str, words: list[str], server: NatsServer, folder: Path, *, seconds: float = LONGEST
) -> str:
    done = run_warm(code, words, folder, _environment(server), seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment(server: NatsServer) -> dict[str, str]:
    environment = os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"} | QUICK_JAVA
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment


def check_program(
    program: Path, server: NatsServer, folder: Path, *, seconds: float = LONGEST
) -> None:
    """Run a program and compare its output with that in its docstring.

    It has the server as an argument, if the command in the docstring has one.
    """
    text = ast.get_docstring(ast.parse(program.read_text("utf-8"))) or ""
    usage, _, output = text.partition("\n\nIt prints:\n\n")
    assert output, "the program promises no output"
    arguments = [server.url] if URL in usage else []
    words = [str(program), *arguments]
    printed = _run_warm(program.read_text("utf-8"), words, server, folder, seconds=seconds)
    assert printed == dedent(output) + "\n"
