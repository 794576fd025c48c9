"""Convert YAML text to values with positions, using PyYAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from twinstream.models.files.document import (
    MAX_DEPTH,
    Document,
    Fault,
    Lines,
    Place,
    TextError,
    member,
)
from twinstream.models.files.reading import show

MAX_NODES = 100_000
"""The maximum number of values. Aliases and merges (`<<`) can expand a few lines to millions."""

MAX_PATHS = 50_000_000
"""The maximum total length of all paths. Aliases can repeat a long key in many paths."""

_MERGE = "tag:yaml.org,2002:merge"

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_NULL = "tag:yaml.org,2002:null"
_BINARY = "tag:yaml.org,2002:binary"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

# Octal and base-60 numbers in YAML 1.1, which are easily mistaken for decimal numbers.
_UNMARKED = re.compile(r"[-+]?(0[0-7_]*[1-7]|[0-9_]+:)")


def read_yaml(text: str) -> list[Document]:
    """Return the non-empty YAML documents in `text`. Raises `TextError` if it is invalid."""
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
        position = error.problem_mark or error.context_mark
        place = lines.place(position.index) if position else (1, 1)
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
    """Return a value to compare keys: the text of a scalar, a unique number for other keys."""
    key = pair[0]
    return key.value if isinstance(key, yaml.ScalarNode) else id(key)


class _Builder:
    """A converter from the nodes of one YAML document to values with positions."""

    def __init__(self, loader: yaml.SafeLoader, lines: Lines) -> None:
        self.loader = loader
        self.lines = lines
        self.read = Document(None, {}, has_units=True)
        self.nodes = 0
        self.letters = 0
        self.merged: dict[int, list[_Pair]] = {}
        """The result of `_pairs` for each mapping, by the id of its node."""

    def document(self, node: yaml.Node) -> Document:
        self.read.value = self._value(node, "", 0)
        return self.read

    def _count(self, place: Place, values: int = 1) -> None:
        self.nodes += values
        if self.nodes > MAX_NODES:
            raise TextError(Fault(place, f"more than {MAX_NODES} values, counting aliases."))

    def _value(self, node: yaml.Node, path: str, depth: int) -> Any:
        """Return the value of a node, and record its position for `path`.

        Raises `TextError` for too many or too deeply nested values, which aliases multiply.
        """
        place = self.lines.place(node.start_mark.index)
        if depth > MAX_DEPTH:
            raise TextError(Fault(place, f"nested more than {MAX_DEPTH} levels deep."))
        self._count(place)
        # Each alias adds paths with all keys above it, so that a short text could fill the memory.
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
        """Return the members of a mapping, with those that `<<` merges.

        A key that occurs twice is recorded as a fault, and its last value counts.
        """
        own_keys = {id(key) for key, _ in node.value}
        members: dict[str, Any] = {}
        for key, value in self._pairs(node):
            place = self.lines.place(key.start_mark.index)
            if not isinstance(key, yaml.ScalarNode):
                raise TextError(Fault(place, "a key must be text."))
            name = str(key.value)
            here = member(path, name)
            # A key that `<<` merges may occur again. A key of the mapping itself must be unique.
            if id(key) in own_keys:
                if here in self.read.keys:
                    fault = Fault(place, f"the key {name!r} occurs twice.", "Keep one.")
                    self.read.faults.append(fault)
                self.read.keys[here] = place
            members[name] = self._value(value, here, depth + 1)
        return members

    def _pairs(self, node: yaml.MappingNode) -> list[_Pair]:
        """Return the keys and values of a mapping, after those that `<<` merges into it.

        A later value of the same key overrides an earlier one.
        """
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
        """Return the mappings that `<<` merges, in order of increasing priority."""
        given: list[yaml.Node] = value.value if isinstance(value, yaml.SequenceNode) else [value]
        found: list[yaml.MappingNode] = []
        for one in given:
            if not isinstance(one, yaml.MappingNode):
                place = self.lines.place(one.start_mark.index)
                raise TextError(Fault(place, "<< merges a mapping, or a list of mappings."))
            found.append(one)
        return found[::-1]

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        # Keep times and binary values as text. For times, PyYAML would drop the nanoseconds and
        # convert the time zone to UTC.
        if node.tag in (_TIMESTAMP, _BINARY):
            return str(node.value)
        try:
            value = self.loader.construct_object(node)  # type: ignore[no-untyped-call, unused-ignore]
            self.read.oddities.extend(_other_base(node, value, place))
            return value
        except (ArithmeticError, LookupError, ValueError):
            kind = node.tag.rpartition(":")[2]
            raise TextError(Fault(place, f"{show(node.value)} is not a !!{kind}.")) from None


def _other_base(node: yaml.Node, value: Any, place: Place) -> Iterator[Fault]:
    """Yield a fault for a number that is octal or base 60 in YAML 1.1 without a clear prefix."""
    text = str(node.value)
    if node.tag in _NUMBERS and _UNMARKED.match(text):
        what = f"YAML reads {show(text)} as {show(value)}."
        yield Fault(place, what, "Write it as a decimal number, or put it into quotes.")


def _is_nothing(node: yaml.Node) -> bool:
    """Whether `node` is an empty document, such as the one after a final `---`."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL and not node.value
