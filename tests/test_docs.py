"""Every example of the pages in docs/, in order, each page against a new server.

Python blocks must print what their `#>` lines show. Each line of an `sh` block is a
`twinstream` command that must succeed. Blocks that need another environment are marked `console`
and are not run here, but `twinstream` commands in them must have the options that they use.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.examples import ROOT, blocks, check, run_twinstream
from tests.sources import PACKAGES
from twinstream.cli.groups import twinstream
from twinstream.testing import NatsServer

PAGES = sorted((ROOT / "docs").glob("*.md"))
# The page for readers of the code, whose calls tests/test_architecture.py runs, and the one with
# tables that tests/test_comparison.py checks.
WITHOUT_EXAMPLES = {"architecture", "comparison", "guides"}
TEXTS = [*sorted(ROOT.glob("*.md")), ROOT / "schema" / "README.md", *PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_do_what_they_say(
    page: Path, server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
    server = server_factory()
    for language, code in in_order(page):
        if language == "python":
            check(code, server, tmp_path)
            continue
        for command in code.splitlines():
            words = shlex.split(command)
            assert words[0] == "twinstream", f"not run by any test: {command}"
            run_twinstream(words, server, tmp_path)


def in_order(page: Path) -> list[tuple[str, str]]:
    text = page.read_text("utf-8")
    return re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_examples_import_public_packages_alone() -> None:
    for page in [*TEXTS, *(ROOT / "examples").glob("*.py")]:
        for imported in re.findall(r"^(?:from|import) ([\w.]+)", page.read_text("utf-8"), re.M):
            top, _, inner = imported.partition(".")
            if top in ("js_async", "js_sync") and inner:
                assert inner in PACKAGES, f"{page.name}: {imported}"
            assert not imported.startswith("twinstream.core"), f"{page.name}: {imported}"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


def test_the_places_that_read_stored_data_have_their_tests() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    table = page.partition("| tested by |")[2].partition("\n\n")[0]
    named = re.findall(r"`((?:\w+/)*test_\w+)`", table)
    assert named
    for name in named:
        assert any((ROOT / "tests").glob(f"**/{name}.py")), name


def console_commands() -> list[tuple[str, str]]:
    return [
        (page.stem, line)
        for page in PAGES
        for code in blocks(page, "console")
        for line in re.findall(r"^(?:\$ )?(twinstream .*?)(?: >.*)?$", code, re.MULTILINE)
    ]


@pytest.mark.parametrize(("page", "command"), console_commands())
def test_commands_that_are_not_run_have_what_they_name(page: str, command: str) -> None:
    words = shlex.split(command)[1:]
    found: click.Command = twinstream
    while isinstance(found, click.Group):
        name = words.pop(0)
        subcommand = found.get_command(click.Context(found), name)
        assert subcommand is not None, name
        found = subcommand
    options = {name for each in found.params for name in each.opts}
    assert {word for word in words if word.startswith("-")} <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_are_linked_from_the_guides(page: Path) -> None:
    assert page.stem == "guides" or f"({page.name})" in (ROOT / "docs" / "guides.md").read_text(
        "utf-8"
    )
    if page.stem not in WITHOUT_EXAMPLES and "<!-- Generated from" not in page.read_text("utf-8"):
        assert blocks(page, "python") or blocks(page, "sh"), "a page without an example that runs"
