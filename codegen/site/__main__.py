"""Build the site: `make docs`, or `python -m codegen.site`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from codegen.site.llms import write_llms
from codegen.site.reference import pages

_ROOT: Final = Path(__file__).parents[2]
_BUILD: Final = _ROOT / "build"
# Pages that stand beside README in the repository, and in the site beside the guides.
_BESIDE: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")

# Where the front page shows a program.
_PROGRAM: Final = "<!-- The first program of README stands here. -->"


def collect(folder: Path) -> None:
    """Write the sources of the site into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_ROOT / "docs", folder, ignore=shutil.ignore_patterns("site"))
    shutil.copytree(_ROOT / "docs" / "site", folder, dirs_exist_ok=True)
    shutil.copytree(_ROOT / "examples", folder / "examples")
    for name in _BESIDE:
        text = (_ROOT / name).read_text().replace("](docs/", "](")
        (folder / name).write_text(text)
    for page in folder.glob("*.md"):
        text = page.read_text()
        for name in _BESIDE:
            text = text.replace(f"](../{name}", f"]({name}")
        # The site offers the programs as downloads.
        text = text.replace("](../examples/", "](examples/")
        page.write_text(text)
    front, readme = folder / "index.md", folder / "README.md"
    program = re.search(r"^```python\n.*?^```$", readme.read_text(), re.MULTILINE | re.DOTALL)
    assert program is not None, "README has no program"
    front.write_text(front.read_text().replace(_PROGRAM, program[0]))
    for path, text in pages().items():
        target = folder / "reference" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def build(builder: str, sources: Path, target: Path, doctrees: Path, *more: str) -> int:
    """Let Sphinx build the sources. Return its exit code: 1 for any warning, as a broken link.

    `more` are further options of Sphinx.
    """
    options = ["-b", builder, "-W", "--keep-going", "-q", "-j", "2", "-d", doctrees, *more]
    # The folder of the repository is on the path of the program, for its extension in codegen/.
    command = [sys.executable, "-m", "sphinx", *options, sources, target]
    return subprocess.run(command, cwd=_ROOT).returncode


def main() -> int:
    """Build the site into build/site, and return the exit code."""
    sources, site = _BUILD / "docs", _BUILD / "site"
    collect(sources)
    code = build("html", sources, site, _BUILD / "doctrees")
    if code == 0:
        write_llms(sources, site)
        # A browser lets no page of file:// read another, so results would have no excerpts.
        folder = f"{_BUILD.name}/site"
        print(f"the site is in {folder}. To look at it: python -m http.server -d {folder}")
    return code


if __name__ == "__main__":
    sys.exit(main())
