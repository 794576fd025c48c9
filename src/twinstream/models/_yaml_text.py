"""YAML with places; the parser is PyYAML's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from twinstream.models._document import MAX_DEPTH, Document, Fault, Lines, Place, TextError, member
from twinstream.models._reading import show

MAX_NODES = 100_000
"""Aliases and merges (``<<``) can make a few lines mean millions of values."""

MAX_PATHS = 50_000_000
"""Letters of all paths together; aliases can repeat a long key in each."""

_MERGE = "tag:yaml.org,2002:merge"

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_NULL = "tag:yaml.org,2002:null"
_BINARY = "tag:yaml.org,2002:binary"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

_UNMARKED = re.compile(r"[-+]?(0[0-7_]*[1-7]|[0-9_]+:)")
"""Numbers to the base 8 or 60, which look like others; 0x and 0b say what they are."""


def read_yaml(text: str) -> list[Document]:
    """Return the documents in ``text``; ``TextError`` where it is not YAML."""
    lines = Lines(text)
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        place = lines.place(error.position)
        raise TextError(Fault(place, f"not YAML: {error.reason}.")) from None
    documents: list[Document] = []
    try:
        while loader.check_node():  # type: ignore[no-untyped-call, unused-ignore]
            node = loader.get_node()  # type: ignore[no-untyped-call, unused-ignore]
            if node is not None and not _is_nothing(node):
                documents.append(_Builder(loader, lines).document(node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = lines.place(mark.index) if mark else (1, 1)
        what = error.problem or error.context or "not YAML"
        raise TextError(Fault(place, f"not YAML: {what}.")) from None
    except yaml.YAMLError as error:
        raise TextError(Fault((1, 1), f"not YAML: {str(error).splitlines()[0]}.")) from None
    except RecursionError:
        raise TextError(Fault((1, 1), "nested too deeply.")) from None
    finally:
        loader.dispose()  # type: ignore[no-untyped-call, unused-ignore]
    return documents


_Pair: TypeAlias = tuple[yaml.Node, yaml.Node]


def _name(pair: _Pair) -> object:
    """Return what tells a key from others."""
    key = pair[0]
    return key.value if isinstance(key, yaml.ScalarNode) else id(key)


class _Builder:
    """Turns the nodes of one document into values."""

    def __init__(self, loader: yaml.SafeLoader, lines: Lines) -> None:
        self.loader = loader
        self.lines = lines
        self.read = Document(None, {})
        self.nodes = 0
        self.letters = 0
        self.merged: dict[int, list[_Pair]] = {}
        """The members of mappings, with those that came with ``<<``."""

    def document(self, node: yaml.Node) -> Document:
        self.read.value = self._value(node, "", 0)
        return self.read

    def _count(self, place: Place, values: int = 1) -> None:
        self.nodes += values
        if self.nodes > MAX_NODES:
            raise TextError(Fault(place, f"more than {MAX_NODES} values, counting aliases."))

    def _value(self, node: yaml.Node, path: str, depth: int) -> Any:
        place = self.lines.place(node.start_mark.index)
        if depth > MAX_DEPTH:
            raise TextError(Fault(place, f"nested more than {MAX_DEPTH} levels deep."))
        self._count(place)
        self.letters += len(path)
        if self.letters > MAX_PATHS:
            raise TextError(Fault(place, "aliases repeat long keys too often."))
        self.read.places[path] = place
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._value(item, f"{path}[{index}]", depth + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        own = {id(key) for key, _ in node.value}
        members: dict[str, Any] = {}
        for key, value in self._pairs(node):
            place = self.lines.place(key.start_mark.index)
            if not isinstance(key, yaml.ScalarNode):
                raise TextError(Fault(place, "a key must be text."))
            name = str(key.value)
            here = member(path, name)
            # A key that came with << may be overridden; one that stands there twice may not.
            if id(key) in own:
                if here in self.read.keys:
                    fault = Fault(place, f"the key {name!r} stands twice.", "Keep one.")
                    self.read.faults.append(fault)
                self.read.keys[here] = place
            members[name] = self._value(value, here, depth + 1)
        return members

    def _pairs(self, node: yaml.MappingNode) -> list[_Pair]:
        """Return keys and values, after those of merged mappings, which they override."""
        known = self.merged.get(id(node))
        if known is not None:
            return known
        merged: dict[object, _Pair] = {}
        own: list[_Pair] = []
        for key, value in node.value:
            if key.tag != _MERGE:
                own.append((key, value))
                continue
            for source in self._merged_by(value):
                pairs = self._pairs(source)
                self._count(self.lines.place(key.start_mark.index), len(pairs))
                merged |= {_name(pair): pair for pair in pairs}
        self.merged[id(node)] = found = [*merged.values(), *own]
        return found

    def _merged_by(self, value: yaml.Node) -> list[yaml.MappingNode]:
        """Return what stands behind ``<<``, the strongest last."""
        given: list[yaml.Node] = value.value if isinstance(value, yaml.SequenceNode) else [value]
        found: list[yaml.MappingNode] = []
        for one in given:
            if not isinstance(one, yaml.MappingNode):
                place = self.lines.place(one.start_mark.index)
                raise TextError(Fault(place, "<< merges a mapping, or a list of mappings."))
            found.append(one)
        return found[::-1]

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        # Times stay text: YAML would drop their nanoseconds and put them into UTC.
        if node.tag in (_TIMESTAMP, _BINARY):
            return str(node.value)
        try:
            value = self.loader.construct_object(node)  # type: ignore[no-untyped-call, unused-ignore]
            self.read.oddities.extend(_other_base(node, value, place))
            return value
        except (ArithmeticError, LookupError, ValueError):
            kind = node.tag.rpartition(":")[2]
            raise TextError(Fault(place, f"{show(node.value)} is no !!{kind}.")) from None


def _other_base(node: yaml.Node, value: Any, place: Place) -> Iterator[Fault]:
    """Tell of a number that YAML 1.1, which this is, does not count by tens without saying so."""
    text = str(node.value)
    if node.tag in _NUMBERS and _UNMARKED.match(text):
        what = f"YAML reads {show(text)} as {show(value)}."
        yield Fault(place, what, "Write it by tens, or put it into quotes.")


def _is_nothing(node: yaml.Node) -> bool:
    """Whether a document is empty, such as the one behind a last ``---``."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL and not node.value
