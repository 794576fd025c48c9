"""Every example of the README, run against a real server.

A line ``#> text`` in a Python example is what the example prints. Shell examples that call
``twinstream`` run; those that install or call make are named here, for they are proved elsewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from js_testing import NatsServer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
URL = "nats://127.0.0.1:4222"
NOT_RUN_HERE = {"make demo", "make test"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(command: list[str], server: NatsServer, folder: Path) -> str:
    environment = os.environ | {"TWINSTREAM_URL": server.url, "NO_COLOR": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def books(server_factory: Callable[[], NatsServer], tmp_path: Path) -> NatsServer:
    """A server that has the stream that the examples after the twins look at."""
    server = server_factory()
    script = next(code for code in blocks("python") if "js_sync.connect" in code)
    run([sys.executable, "-c", script.replace(URL, server.url)], server, tmp_path)
    return server


def check(code: str, server: NatsServer, folder: Path) -> None:
    promised = re.findall(r"^ *#> (.*)$", code, re.MULTILINE)
    assert promised, "the example promises no output"
    printed = run([sys.executable, "-c", code.replace(URL, server.url)], server, folder)
    assert printed.splitlines() == promised


@pytest.mark.parametrize("package", ["js_sync", "js_async"])
def test_the_twins_print_what_they_say(
    package: str, server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
    code = next(code for code in blocks("python") if f"{package}.connect" in code)
    check(code, server_factory(), tmp_path)


@pytest.mark.parametrize("code", [code for code in blocks("python") if "connect(" not in code])
def test_other_examples_print_what_they_say(code: str, books: NatsServer, tmp_path: Path) -> None:
    check(code, books, tmp_path)


def test_shell_examples_run(books: NatsServer) -> None:
    commands = [line for code in blocks("sh") for line in code.splitlines()]
    assert set(commands) >= NOT_RUN_HERE
    for command in commands:
        if command not in NOT_RUN_HERE:
            words = shlex.split(command)
            assert words[0] == "twinstream", f"not run by any test: {command}"
            run(words, books, ROOT)


def test_the_twins_differ_only_in_colour() -> None:
    blocking, in_loop = (
        next(code for code in blocks("python") if f"{package}.connect" in code)
        for package in ("js_sync", "js_async")
    )
    plain = in_loop.replace("js_async", "js_sync").replace("import asyncio\n", "")
    plain = re.sub(r"\b(async|await) ", "", plain).replace("asyncio.run(main())", "main()")
    assert plain == blocking
