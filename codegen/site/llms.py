"""`llms.txt`: the pages of the site with a sentence each, for programs that read documentation."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

__all__ = ["write_llms"]

_CONTENTS: Final = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CAPTION: Final = re.compile(r"^:caption: (.*)$", re.MULTILINE)
_ABOUT: Final = re.compile(r"^\| \[[^\]]*\]\(([\w-]+)\.md\) \| (.*) \|$", re.MULTILINE)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_GUIDE: Final = re.compile(r"^   \.\./([\w-]+)$", re.MULTILINE)
_RST_TITLE: Final = re.compile(r"^(.+)\n=+\n", re.MULTILINE)


def write_llms(sources: Path, site: Path) -> None:
    """Write `llms.txt` into the folder of the site, and beside it the pages in Markdown."""
    front = (sources / "index.md").read_text("utf-8")
    about = dict(_ABOUT.findall((sources / "guides.md").read_text("utf-8")))
    lines = [f"# {_title(front)}", "", f"> {_first_paragraph(front)}", ""]
    for contents in _CONTENTS.findall(front):
        caption = _CAPTION.search(contents)
        listed = [each for each in contents.splitlines() if each and not each.startswith(":")]
        names = [re.sub(r".*<(.*)>$", r"\1", each) for each in listed]
        lines += [f"## {caption[1] if caption else 'Pages'}", ""]
        lines += [_line(sources, site, name, about) for name in names if name != "reference/index"]
        if "reference/index" in names:
            lines += _reference(sources, site, about)
        lines.append("")
    (site / "llms.txt").write_text("\n".join(lines), "utf-8")


def _line(sources: Path, site: Path, name: str, about: dict[str, str]) -> str:
    text = (sources / f"{name}.md").read_text("utf-8")
    target = site / f"{name}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(sources / f"{name}.md", target)
    said = about.get(name) or _first_paragraph(text)
    return f"- [{_title(text)}]({name}.md): {said}"


def _reference(sources: Path, site: Path, about: dict[str, str]) -> list[str]:
    """Return a line for each page of the reference, and for the guides in its contents."""
    folder = sources / "reference"
    guides = _GUIDE.findall((folder / "index.rst").read_text("utf-8"))
    found = [_line(sources, site, name, about) for name in guides]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(sources).with_suffix("").as_posix()
        if path.suffix == ".md":
            found.append(_line(sources, site, name, {}))
        elif path.suffix == ".rst" and path.stem != "index":
            title = _RST_TITLE.search(path.read_text("utf-8"))
            found.append(f"- [{title[1] if title else path.stem}]({name}.html)")
    return found


def _title(text: str) -> str:
    return re.sub(r"^# ", "", next(each for each in text.splitlines() if each.startswith("# ")))


def _first_paragraph(text: str) -> str:
    """Return the first sentence below the title, without its links."""
    body = _COMMENT.sub("", text).partition("# ")[2].partition("\n")[2].strip()
    paragraphs = [each for each in body.split("\n\n") if not each.startswith(("|", "#", "`" * 3))]
    prose = " ".join(paragraphs[0].split())
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose).partition(". ")[0].rstrip(".") + "."
