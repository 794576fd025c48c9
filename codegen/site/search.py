"""An extension of Sphinx: what the search finds besides the words of a page."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

__all__ = ["setup"]

_TABLE: Final = Path(__file__).parents[2] / "docs" / "site" / "search_words.toml"
_PHRASES: Final[dict[str, list[str]]] = tomllib.loads(_TABLE.read_text())


class _Words(SearchEnglish):
    """English, in which `ack_wait` is also found by `ack` and by `wait`."""

    # Without single letters, as the one of "Ctrl-C": results would have each of them highlighted.
    js_splitter_code = r"""
var splitQuery = (query) => query.split(/[^\p{L}\p{N}_]+/u).filter((word) => word.length > 1);
"""

    def split(self, input: str) -> list[str]:
        words = super().split(input)
        return words + [part for word in words if "_" in word for part in word.split("_") if part]


def _add_phrases(app: Sphinx, page: nodes.document) -> None:
    """Add the phrases of the table to a page, which shows nothing of them.

    As index entries they are found first; as keywords, each word counts as one of the page.
    """
    for phrase in _PHRASES.get(app.env.docname, []):
        page += addnodes.index(entries=[("single", phrase, "", "main", None)])
        page += nodes.meta(name="keywords", content=",".join(phrase.split()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Set the language of the search, and add the phrases of pages."""
    app.add_search_language(_Words)
    app.connect("doctree-read", _add_phrases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
