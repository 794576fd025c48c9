"""The README as the index of packages shows it: its links lead to the site of the documentation.

A hook of hatchling, which calls it when it builds the wheel. In the repository the links are paths.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["ReadmeOfIndex", "for_index"]


def for_index(text: str, site: str, name: str) -> str:
    """Return the text of the README with absolute links and the name of the package.

    Args:
        text: The README of the repository.
        site: The address of the site, which ends with a slash.
        name: The name under which the index has the package.
    """
    text = re.sub(r"!\[(.*?)\]\(docs/(.+?)\)", rf"![\1]({site}_images/\2)", text)
    text = re.sub(r"\]\((?:docs/)?([\w-]+)\.md(#[\w-]+)?\)", rf"]({site}\1.html\2)", text)
    return text.replace("'.[", f"'{name}[").replace(", in a clone:", ":")


class ReadmeOfIndex(MetadataHookInterface):
    """Sets the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = for_index(text, metadata["urls"]["Documentation"], metadata["name"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
