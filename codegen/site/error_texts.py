"""The page of the texts of errors: what a program prints, and which class has cause and remedy."""

from __future__ import annotations

import inspect
from typing import Any

from codegen.site.markdown import code, page, plain
from codegen.site.public_names import public_objects
from codegen.site.raised_texts import raised_texts

__all__ = ["error_classes", "error_text_page", "remedy"]

_ABOUT = (
    "What errors say, by their class, so that the search finds them. Names in braces stand for"
    " values. A text may have a name before it, such as that of a stream, and advice after it."
    " Errors that servers answer are on the page of [error codes](error-codes.md)."
)
_MARK = "What to do: "
# Records that errors carry have texts that are shown inside the text of the error.
_INSIDE = {"GuaranteeGap": "UnsuitableSettings"}
_LEFT_OUT = {"AssertionError", "DecodeFailure"}


def error_classes() -> dict[str, tuple[str, type[BaseException]]]:
    """Return the public classes of errors by their name, each with its full name."""
    found: dict[str, tuple[str, type[BaseException]]] = {}
    for named in public_objects():
        for full, value in named.items():
            if isinstance(value, type) and issubclass(value, BaseException):
                found[value.__name__] = full, value
    return dict(sorted(found.items()))


def remedy(cls: type[BaseException]) -> str:
    """Return what the docstring of a class of errors says to do; empty if it says nothing."""
    doc = inspect.getdoc(cls) or ""
    _, mark, text = doc.partition(_MARK)
    return " ".join(text.split("\n\n")[0].split()) if mark else ""


def texts_by_class() -> dict[str, list[str]]:
    """Return the texts by the class of the error."""
    found: dict[str, set[str]] = {}
    for name, texts in raised_texts().items():
        if name not in _LEFT_OUT:
            found.setdefault(_INSIDE.get(name, name), set()).update(texts)
    return {name: sorted(texts) for name, texts in sorted(found.items())}


def error_text_page() -> str:
    """Return the text of the page."""
    classes = error_classes()
    sections = [
        _section(name, texts, classes.get(name)) for name, texts in texts_by_class().items()
    ]
    return page("Texts of errors", _ABOUT, *sections)


def _section(name: str, texts: list[str], known: Any) -> str:
    about = ""
    if known is not None:
        full, cls = known
        cause = (inspect.getdoc(cls) or "").split("\n\n")[0]
        about = f"{{py:exc}}`~{full}`: {plain(cause)} **What to do:** {plain(remedy(cls))}\n\n"
    return f"## {name}\n\n{about}" + "".join(f"- {code(each)}\n" for each in texts)
