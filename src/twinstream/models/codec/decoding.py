"""Decode records from JSON members, exactly and without loss.

The decoder converts no value silently: an integer field accepts integers only. Durations are
integers in nanoseconds, and bytes are base64 text. An unknown value of an enumeration becomes a new
member of that enumeration. JSON members without a field are stored in `Model.unknown`. Every fault
is reported with its path.

Each class has one decoding function. It iterates over the members of the JSON object, not over the
fields of the class, because responses contain only a few of the fields. The decoder of a field is
created when the field occurs for the first time. Decoded values already have the right types, so
the function stores them in the slots of the record and skips the converters of the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from attrs import NOTHING, fields, fields_dict

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.codec.kinds import Kind, is_enumeration, is_record, kinds_of
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp

__all__ = ["Faults", "read_record", "typos"]

M = TypeVar("M", bound=Model)

Read: TypeAlias = Callable[[Any], Any]
"""A function that converts a JSON value to the value of a field, or raises `Faults`."""


class Faults(ValueError):
    """A JSON value does not match the schema.

    `problems` contains a pair for each wrong value: its path and the reason.
    """

    def __init__(self, *problems: tuple[str, str]) -> None:
        self.problems = problems
        super().__init__(*problems)

    def under(self, step: str) -> list[tuple[str, str]]:
        """Return the problems with `step` before each path. A step is `.name` or `[0]`."""
        return [(step + path, reason) for path, reason in self.problems]


def _wrong(reason: str) -> Faults:
    return Faults(("", reason))


# ---- records


def read_record(cls: type[M], value: object) -> M:
    """Return a JSON object as a record of the class `cls`. Raises `Faults` if it is invalid."""
    made: M = _record_reader(cls)(value)
    return made


_RECORD_READERS: dict[type[Model], Read] = {}


def _record_reader(cls: type[Model]) -> Read:
    """Return the function that decodes records of the class `cls`."""
    read = _RECORD_READERS.get(cls)
    if read is None:
        read = _RECORD_READERS[cls] = _make_record_reader(cls)
    return read


def _make_record_reader(cls: type[M]) -> Callable[[object], M]:
    """Return a function that decodes a JSON object to an instance of `cls`."""
    kinds = {name: kind for name, kind in kinds_of(cls).items() if name != "unknown"}
    # An absent optional field becomes None. This is also its default, except for `type`, whose
    # default is a constant. The constant is not used, so that an absent `type` stays absent.
    required = [each.name for each in fields(cls) if each.init and each.default is NOTHING]
    setter_of = {name: _slot(cls, name).__set__ for name in kinds}
    setters = list(setter_of.values())
    set_unknown, new = _slot(cls, "unknown").__set__, object.__new__
    # For each field: the class whose instances are stored unchanged (None if there is none), the
    # setter of the slot, the decoder, and whether null is valid.
    table: dict[str, tuple[type | None, Callable[[Any, Any], None], Read, bool]] = {}
    field_of = table.get

    def structure(data: object) -> M:
        if type(data) is not dict and not isinstance(data, Mapping):
            raise _wrong(f"expected an object, got {_show(data)}")
        given = cast("Mapping[str, Any]", data)
        model = new(cls)
        for put in setters:
            put(model, None)
        unknown: dict[str, Any] = {}
        problems: list[tuple[str, str]] = []
        for name, value in given.items():
            field = field_of(name)
            if field is None:
                kind = kinds.get(name)
                if kind is None:
                    unknown[name] = value
                    continue
                # Most fields contain strings, integers or booleans. Such a value is stored
                # unchanged if its class is right.
                plain = kind.cls if not kind.form and kind.cls in _PLAIN else None
                field = table[name] = (plain, setter_of[name], _reader(kind), kind.is_optional)
            plain, put, read, optional = field
            if type(value) is plain:
                put(model, value)
            elif value is None and optional:
                unknown[name] = None
            else:
                try:
                    put(model, read(value))
                except Faults as faults:
                    problems += faults.under(f".{name}")
        problems += [(f".{name}", "missing") for name in required if name not in given]
        if problems:
            raise Faults(*problems)
        set_unknown(model, unknown)
        return model

    return structure


def _slot(cls: type, name: str) -> Any:
    """Return the slot descriptor of a field from `cls` or one of its base classes."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


# ---- values


def _reader(kind: Kind) -> Read:
    """Return the function that decodes values of `kind`."""
    each = _reader(kind.cls) if isinstance(kind.cls, Kind) else _value_reader(kind.cls)
    if kind.form == "list":
        return _list_reader(each)
    return _map_reader(each) if kind.form == "dict" else each


def _value_reader(cls: Any) -> Read:
    if is_record(cls):
        return _record_reader(cls)
    if is_enumeration(cls):
        return _word_reader(cls)
    return _READERS[cls]


def _list_reader(each: Read) -> Read:
    """Return a function that decodes a JSON array, and each item with `each`."""

    def read(value: object) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise _wrong(f"expected a list, got {_show(value)}")
        items = cast("list[Any]", value)
        try:
            return [each(item) for item in items]
        except Faults:
            places = [(f"[{index}]", each, item) for index, item in enumerate(items)]
            raise _all_faults(places) from None

    return read


def _map_reader(each: Read) -> Read:
    """Return a function that decodes a JSON object to a dictionary, and each value with `each`."""

    def read(value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _wrong(f"expected an object, got {_show(value)}")
        found = cast("JsonObject", value)
        try:
            return {_read_text(key): each(item) for key, item in found.items()}
        except Faults:
            # Decode again to collect the faults of all members, not only the first one.
            keys = [(f".{key}", _read_text, key) for key in found]
            places = [(f".{key}", each, item) for key, item in found.items()]
            raise _all_faults([*keys, *places]) from None

    return read


def _all_faults(places: Iterable[tuple[str, Read, Any]]) -> Faults:
    """Decode each item of a list or map again, and return all faults.

    The first attempt to decode the list or map stopped at its first fault. `places` contains the
    path step, the decoder and the JSON value of each item.
    """
    problems: list[tuple[str, str]] = []
    for step, read, item in places:
        try:
            read(item)
        except Faults as faults:
            problems += faults.under(step)
    return Faults(*problems)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(f"expected text, got {_show(value)}")
    # Convert subclasses of str, such as `EscapedText` and members of enumerations, to plain str.
    return str.__str__(value)


def _read_integer(value: Any) -> int:
    if type(value) is not int:
        raise _wrong(f"expected a whole number, got {_show(value)}")
    return value


def _read_flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(f"expected true or false, got {_show(value)}")
    return value


def _read_duration(value: Any) -> Duration:
    if type(value) is not int:
        raise _wrong(f"expected a whole number of nanoseconds, got {_show(value)}")
    try:
        return Duration.from_ns(value)
    except OverflowError:
        raise _wrong(f"{_show(value)} nanoseconds is out of range") from None


def _read_timestamp(value: Any) -> Timestamp:
    if not isinstance(value, str):
        raise _wrong(f"expected a time as text, got {_show(value)}")
    try:
        return Timestamp.parse(value)
    except ValueError as error:
        raise _wrong(str(error)) from None


def _read_bytes(value: Any) -> bytes:
    import base64

    if not isinstance(value, str):
        raise _wrong(f"expected base64 text, got {_show(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise _wrong(f"not base64: {error}") from None


def _word_reader(cls: type[OpenEnum]) -> Read:
    # A look-up in the table is five times as fast as a call of the enumeration.
    known = cls._value2member_map_.get

    def read(value: Any) -> object:
        if not isinstance(value, str):
            raise _wrong(f"expected a word, got {_show(value)}")
        return known(value) or cls(value)

    return read


_READERS: dict[Any, Read] = {
    str: _read_text,
    int: _read_integer,
    bool: _read_flag,
    Duration: _read_duration,
    Timestamp: _read_timestamp,
    bytes: _read_bytes,
}

_PLAIN: frozenset[Any] = frozenset({str, int, bool})


def _show(value: object) -> str:
    """Return a JSON value as text for an error message, at most 60 characters long."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- members without a field


def typos(model: Model, path: str = "") -> list[tuple[str, str]]:
    """Return the path and the reason for each member of `model` that has no field.

    The records in the fields of `model` are searched too. `path` is the prefix of the paths.
    """
    found: list[tuple[str, str]] = []
    names = [name for name in fields_dict(type(model)) if name != "unknown"]
    for name in model.unknown:
        if name not in names:
            found.append((f"{path}{name}", f"no such field{suggest(name, names)}"))
    for name in names:
        value = getattr(model, name)
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for index, part in enumerate(parts):
            if isinstance(part, Model):
                place = f"{name}[{index}]" if isinstance(value, list) else name
                found += typos(part, f"{path}{place}.")
    return found


def suggest(word: str, known: list[str]) -> str:
    """Return `; did you mean 'x'?` if a name in `known` is similar, else an empty string."""
    from twinstream.models.names.near_names import name_advice

    advice = name_advice([word], known)
    return f"; {advice}" if advice else ""
