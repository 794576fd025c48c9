"""The entries of the reference: a name with its signatures, its docstring and its members."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum, EnumType
from textwrap import indent
from typing import Any, Final

import attrs
from attrs import frozen
from codegen.site.attribute_docs import attribute_docs
from codegen.site.signatures import is_coroutine, signature
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring

from twinstream.core.arguments.nats_py_names import ATTRIBUTES, GUESSES

__all__ = ["Member", "Named", "entry", "members", "shown_signature"]

_CONFIG: Final[Any] = Config(
    napoleon_use_param=True, napoleon_use_rtype=False, napoleon_use_ivar=True
)

_SENTENCES: Final = re.compile(r"\n\n|\n- |(?<=\.)\s+(?=[A-Z`])")
# A class with more methods begins with a line of links to them.
_FEW: Final = 5

Named = dict[str, Any]
"""The forms of one object by their full names, such as those of both twins."""


def entry(named: Named) -> str:
    """Return the entry of a function, class, alias or constant."""
    value = next(iter(named.values()))
    if inspect.isfunction(value):
        return _function("function", named)
    if isinstance(value, type):
        return _class(named)
    return _directive("data", named, {}, _plain_doc(value))


def _class(named: Named) -> str:
    cls = next(iter(named.values()))
    kind = "exception" if issubclass(cls, BaseException) else "class"
    forms = {f"{name}{shown_signature(each)}": each for name, each in named.items()}
    owners = _owners(named)
    body = _rst(inspect.getdoc(cls) or "") + _overview(next(iter(owners)), cls)
    return "".join([_directive(kind, forms, {}, body), *_members(owners, cls)])


def _overview(name: str, cls: type) -> str:
    """Return a line with links to the methods of a class, if there are many."""
    methods = [each.name for each in members(cls) if each.function is not None]
    links = [f":py:meth:`{each} <{name}.{each}>`" for each in methods]
    return f"\n\nMethods: {', '.join(links)}\n" if len(links) > _FEW else ""


def shown_signature(cls: type) -> str:
    """Return the signature of a class that programs construct, otherwise nothing."""
    if issubclass(cls, BaseException | Enum) or getattr(cls, "_is_protocol", False):
        return ""
    if cls.__module__.startswith(("js_async.", "js_sync.")):
        first = next((each.name for each in inspect.signature(cls).parameters.values()), "")
        is_made_here = "Created by" in (inspect.getdoc(cls) or "")
        return signature(cls) if first == "jet" and not is_made_here else ""
    return signature(cls)


def _owners(named: Named) -> Named:
    """Return the names below which the members are listed: one, unless each twin has its class."""
    shared = [name for name in named if name.startswith("twinstream.")]
    return {shared[0]: named[shared[0]]} if shared else named


def _members(named: Named, cls: type) -> Iterator[str]:
    for member in members(cls):
        name = member.name
        forms = {f"{full}.{name}": getattr(each, name, None) for full, each in named.items()}
        match member.kind:
            case "property":
                yield _attribute(forms, member.source, "return", _rst(member.doc))
            case "word":
                yield _directive("attribute", forms, {"value": member.value}, _rst(member.doc))
            case "field":
                yield _attribute(forms, cls, name, _rst(member.doc))
            case _:
                yield _function("method", forms)


@frozen
class Member:
    """A public member of a class: what it is, and its docstring."""

    name: str
    kind: str
    doc: str
    source: Any = None
    value: str = ""

    @property
    def function(self) -> Any:
        """The function of a method, otherwise None."""
        return self.source if self.kind == "method" else None


def members(cls: type) -> Iterator[Member]:
    """Yield the public members of a class: the fields in their order, then the others."""
    docs = attribute_docs(cls)
    for name in _member_names(cls):
        value = inspect.getattr_static(cls, name, None)
        if isinstance(value, property):
            yield Member(name, "property", inspect.getdoc(value) or "", value.fget)
        elif isinstance(cls, EnumType) and isinstance(value, cls):
            yield Member(name, "word", docs.get(name, ""), value=repr(value.value))
        elif name in _fields(cls) or name in docs:
            yield Member(name, "field", docs.get(name) or _said_of(name, cls))
        elif callable(getattr(cls, name, None)):
            found = getattr(cls, name)
            yield Member(name, "method", inspect.getdoc(found) or "", found)


def _said_of(name: str, cls: type) -> str:
    """Return what the docstring of a class says of a field: its entry, or the sentences with it."""
    doc = inspect.getdoc(cls) or ""
    if entry := re.search(rf"^    {name}: (.*(?:\n     .*)*)", doc, re.MULTILINE):
        return inspect.cleandoc(entry[1])
    parts = (" ".join(each.split()).removeprefix("- ") for each in _SENTENCES.split(doc))
    said = [each.rstrip(";") for each in parts if f"`{name}`" in each]
    listed = [each for each in said if each.startswith(f"`{name}`:")]
    return " ".join(listed or [each for each in said if not each.startswith("What to do:")])


def _member_names(cls: type) -> list[str]:
    """Return the names of the public members: the fields in their order, then the others."""
    if issubclass(cls, BaseException):
        # The members of the base class are in the entry of that class.
        inherited = {*attribute_docs(cls.__base__ or object), *dir(cls.__base__)}
    else:
        inherited = set()
    found = dict.fromkeys([*_fields(cls), *attribute_docs(cls)])
    for each in sorted(set(dir(cls)) - _hints(cls)):
        owner = next((base for base in cls.__mro__ if each in vars(base)), cls)
        if _is_ours(owner) and not isinstance(getattr(cls, each), type):
            found[each] = None
    return [each for each in found if not each.startswith("_") and each not in inherited]


def _fields(cls: type) -> list[str]:
    """Return the names of the fields of a record or an error, in their order."""
    if attrs.has(cls):
        return [each.name for each in attrs.fields(cls) if each.name != "unknown"]
    return list(getattr(cls, "_fields", ()))


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith(("twinstream", "js_sync", "js_async"))


def _hints(cls: type) -> set[str]:
    """Return the names that exist only to say how a name of another client is spelled here."""
    names = [each.__name__ for each in cls.__mro__]
    tables = (table.get(each, {}) for table in (ATTRIBUTES, GUESSES) for each in names)
    return {hint for table in tables for hint in table}


def _attribute(forms: Named, source: Any, name: str, doc: str) -> str:
    """Return the entry of an attribute whose type is the annotation `name` of `source`."""
    sources = inspect.getmro(source) if isinstance(source, type) else (source,)
    kinds = [vars(each).get("__annotations__", {}).get(name) for each in sources]
    kind = next((each for each in kinds if isinstance(each, str)), "")
    return _directive("attribute", forms, {"type": kind.strip("'\"")} if kind else {}, doc)


def _function(kind: str, named: Named) -> str:
    forms = {f"{name}{signature(each)}": each for name, each in named.items()}
    options = {"coroutine": ""} if any(map(is_coroutine, named.values())) else {}
    doc = _rst(inspect.getdoc(next(iter(named.values()))) or "")
    return _directive(f"twin{kind}", forms, options, doc)


def _directive(kind: str, forms: Named, options: dict[str, str], body: str) -> str:
    first, *more = forms
    head = f".. py:{kind}:: {first}\n"
    head += "".join(f"{'':{len(kind) + 10}}{each}\n" for each in more)
    head += "".join(f"   :{name}: {value}\n" for name, value in options.items())
    return f"{head}\n{indent(body, '   ')}\n\n"


def _rst(doc: str) -> str:
    """Return a docstring with sections as the project writes them, as reStructuredText."""
    return str(GoogleDocstring(doc, _CONFIG))


def _plain_doc(value: object) -> str:
    """Return the text of an alias or constant: what it is."""
    text = str(value).replace("typing.", "").replace("twinstream.", "")
    return f"``{text}``" if len(text) < 400 else ""
