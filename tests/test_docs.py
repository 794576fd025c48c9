"""Every example of the pages in docs/, in order, each page against a fresh server.

Python blocks print what their ``#>`` lines promise. Of ``sh`` blocks each line is a `twinstream`
command that must succeed; a page that needs another environment marks its blocks ``console``,
which are not run here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from js_testing import NatsServer
from tests.examples import ROOT, blocks, check, run

PAGES = sorted((ROOT / "docs").glob("*.md"))


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
            run(words, server, tmp_path)


def in_order(page: Path) -> list[tuple[str, str]]:
    text = page.read_text("utf-8")
    return re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_are_linked_from_the_readme(page: Path) -> None:
    assert f"docs/{page.name}" in (ROOT / "README.md").read_text("utf-8")
    assert blocks(page, "python") or blocks(page, "sh"), "a page without an example that runs"
