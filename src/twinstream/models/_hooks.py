"""How cattrs reads and writes our models.

cattrs generates a function per class; the hooks here add what JetStream needs: exact numbers, no
silent conversion, nanoseconds, open words, base64, and members that have no field.
"""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs
from cattrs import AttributeValidationNote, BaseValidationError, Converter, IterableValidationNote
from cattrs.cols import (
    list_structure_factory,
    mapping_structure_factory,  # pyright: ignore[reportUnknownVariableType]
)

from twinstream.models._json import JsonObject
from twinstream.models._model import Model
from twinstream.models._open_enum import OpenEnum
from twinstream.models._record import Mismatch, Read, record_reader, show, without_none
from twinstream.models.duration import Duration
from twinstream.models.timestamp import Timestamp

M = TypeVar("M", bound=Model)
Write = Callable[[Any], object]


class Hooks:
    """A cattrs converter for models; safe to share between threads."""

    def __init__(self) -> None:
        """Register the hooks; functions for classes are made on first use."""
        self._converter = Converter(detailed_validation=True)
        self._writers: dict[type[Model], list[tuple[str, Write | None]]] = {}
        for kind, read in _READERS.items():
            self._converter.register_structure_hook(kind, read)
        self._converter.register_structure_hook_factory(_is_model, self._reader)
        self._converter.register_structure_hook_factory(_is_list, self._list_reader)
        self._converter.register_structure_hook_factory(_is_map, self._map_reader)

    def structure(self, members: Mapping[str, Any], cls: type[M], *, strict: bool = False) -> M:
        """Return a ``cls`` made of ``members``; ``DecodeError`` lists every place at fault."""
        try:
            model = self._converter.structure(members, cls)
        except (BaseValidationError, Mismatch) as error:
            raise _decode_error(cls, list(_flatten(error, ""))) from None
        if strict:
            typos = list(_unknown(model, ""))
            if typos:
                raise _decode_error(cls, typos)
        return model

    def unstructure(self, model: Model) -> JsonObject:
        """Return the members of ``model``."""
        cls = type(model)
        table = self._writers.get(cls)
        if table is None:
            table = self._writers[cls] = [
                (item.name, self._writer(item.type)) for item in _fields(cls)
            ]
        members: JsonObject = {}
        for name, write in table:
            value = getattr(model, name)
            if value is not None:
                members[name] = value if write is None else write(value)
        for name, value in model.unknown.items():
            members.setdefault(name, value)
        return members

    def _reader(self, cls: type[M]) -> Callable[[Any, Any], M]:
        """Make the function that reads a ``cls``."""
        return record_reader(cls, self._read_of)

    def _read_of(self, hint: Any) -> Read:
        found: Read = self._converter.get_structure_hook(hint)
        return found

    def _list_reader(self, kind: Any) -> Callable[[Any, Any], Any]:
        read = list_structure_factory(kind, self._converter)

        def structure(value: Any, _: object) -> Any:
            if not isinstance(value, (list, tuple)):
                raise Mismatch(f"expected a list, got {show(value)}")
            return read(value, kind)

        return structure

    def _map_reader(self, kind: Any) -> Callable[[Any, Any], Any]:
        read: Callable[[Any, Any], Any] = mapping_structure_factory(kind, self._converter)  # pyright: ignore[reportUnknownVariableType]

        def structure(value: Any, _: object) -> Any:
            if not isinstance(value, Mapping):
                raise Mismatch(f"expected an object, got {show(value)}")
            return read(cast("JsonObject", value), kind)

        return structure

    def _writer(self, hint: Any) -> Write | None:
        """Return the function that writes a value of a field's type, None for as it is."""
        kind = without_none(hint)
        origin = getattr(kind, "__origin__", None)
        if origin is list:
            each = self._writer(kind.__args__[0])
            return list if each is None else lambda items: [each(item) for item in items]
        if origin is dict:
            inner = self._writer(kind.__args__[1])
            if inner is None:
                return dict
            return lambda items: {key: inner(value) for key, value in items.items()}
        if _is_model(kind):
            return self.unstructure
        if _is_open_enum(kind):
            return str.__str__
        return _WRITERS.get(kind)


_PLAIN = {int: "a whole number", bool: "true or false"}


def _read_text(value: Any, _: object) -> str:
    if not isinstance(value, str):
        raise Mismatch(f"expected text, got {show(value)}")
    # Text with escapes comes out of files as a class of its own, words come out of enumerations.
    return str.__str__(value)


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def read(value: Any, _: object) -> Any:
        if type(value) is kind:
            return value
        raise Mismatch(f"expected {_PLAIN[kind]}, got {show(value)}")

    return read


def _read_duration(value: Any, _: object) -> Duration:
    if type(value) is not int:
        raise Mismatch(f"expected a whole number of nanoseconds, got {show(value)}")
    try:
        return Duration.from_ns(value)
    except OverflowError:
        raise Mismatch(f"{show(value)} nanoseconds is out of range") from None


def _read_timestamp(value: Any, _: object) -> Timestamp:
    if not isinstance(value, str):
        raise Mismatch(f"expected a time as text, got {show(value)}")
    try:
        return Timestamp.parse(value)
    except ValueError as error:
        raise Mismatch(str(error)) from None


def _read_bytes(value: Any, _: object) -> bytes:
    if not isinstance(value, str):
        raise Mismatch(f"expected base64 text, got {show(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise Mismatch(f"not base64: {error}") from None


def _read_word(value: Any, cls: type[OpenEnum]) -> OpenEnum:
    if not isinstance(value, str):
        raise Mismatch(f"expected a word, got {show(value)}")
    # The table of the enumeration first: calling it takes five times as long.
    return cls._value2member_map_.get(value) or cls(value)  # type: ignore[return-value]


_READERS: dict[Any, Callable[[Any, Any], Any]] = {
    str: _read_text,
    **{kind: _exactly(kind) for kind in _PLAIN},
    Duration: _read_duration,
    Timestamp: _read_timestamp,
    bytes: _read_bytes,
    OpenEnum: _read_word,
}
"""By class: the hook of the nearest base is taken, so words do not end up as plain text."""

_WRITERS: dict[Any, Write] = {
    Duration: lambda value: value.ns,
    Timestamp: lambda value: value.rfc3339(),
    bytes: lambda value: base64.b64encode(value).decode(),
}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is list


def _is_map(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is dict


def _is_open_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, OpenEnum)


def _fields(cls: type[Model]) -> list[Any]:
    return [item for item in attrs.fields(attrs.resolve_types(cls)) if item.name != "unknown"]


def _flatten(error: BaseException, path: str) -> list[tuple[str, str]]:
    """Turn the nested groups that cattrs raises into paths and reasons."""
    if not isinstance(error, BaseValidationError):
        return [(path, _reason(error))]
    found: list[tuple[str, str]] = []
    for inner in error.exceptions:
        found += _flatten(inner, path + _step(inner, path))
    return found


def _step(error: BaseException, path: str) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}" if path else note.name
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]" if isinstance(note.index, int) else f".{note.index}"
    return ""


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return "missing"
    return str(error)


def _unknown(model: Model, path: str) -> list[tuple[str, str]]:
    """List the members of ``model`` and of its parts that have no field."""
    found: list[tuple[str, str]] = []
    names = [item.name for item in _fields(type(model))]
    for name in model.unknown:
        if name not in names:
            found.append((f"{path}{name}", f"no such field{suggest(name, names)}"))
    for name in names:
        value = getattr(model, name)
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for index, part in enumerate(parts):
            if isinstance(part, Model):
                place = f"{name}[{index}]" if isinstance(value, list) else name
                found += _unknown(part, f"{path}{place}.")
    return found


def suggest(word: str, known: list[str]) -> str:
    """Return ``; did you mean 'x'?`` where a known word is close, else nothing."""
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _decode_error(cls: type[Model], problems: list[tuple[str, str]]) -> Exception:
    from twinstream.models.codec import DecodeError

    return DecodeError(cls.__name__, problems)
