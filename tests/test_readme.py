"""Every example of the README, run against a real server.

A line `#> text` in a Python example is what the example prints. Shell examples that call
`twinstream` are run. Examples that install or call make are listed here, because other tests
cover them.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples import ROOT, URL, blocks, check, run
from twinstream.testing import NatsServer

README = ROOT / "README.md"
NOT_RUN_HERE = {"make demo", "make test"}


@pytest.fixture
def books(server_factory: Callable[[], NatsServer], tmp_path: Path) -> NatsServer:
    """A server with the stream that the later examples use."""
    server = server_factory()
    script = next(code for code in blocks(README, "python") if "js_sync.connect" in code)
    run([sys.executable, "-c", script.replace(URL, server.url)], server, tmp_path)
    return server


@pytest.mark.parametrize("package", ["js_sync", "js_async"])
def test_the_twins_print_what_they_say(
    package: str, server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
    code = next(code for code in blocks(README, "python") if f"{package}.connect" in code)
    check(code, server_factory(), tmp_path)


@pytest.mark.parametrize(
    "code", [code for code in blocks(README, "python") if "connect(" not in code]
)
def test_other_examples_print_what_they_say(code: str, books: NatsServer, tmp_path: Path) -> None:
    check(code, books, tmp_path)


def test_shell_examples_run(books: NatsServer) -> None:
    commands = [line for code in blocks(README, "sh") for line in code.splitlines()]
    assert set(commands) >= NOT_RUN_HERE
    for command in commands:
        if command not in NOT_RUN_HERE:
            words = shlex.split(command)
            assert words[0] == "twinstream", f"not run by any test: {command}"
            run(words, books, ROOT)


def test_the_twins_differ_only_in_colour() -> None:
    blocking, in_loop = (
        next(code for code in blocks(README, "python") if f"{package}.connect" in code)
        for package in ("js_sync", "js_async")
    )
    plain = in_loop.replace("js_async", "js_sync").replace("import asyncio\n", "")
    plain = re.sub(r"\b(async|await) ", "", plain).replace("asyncio.run(main())", "main()")
    assert plain == blocking
