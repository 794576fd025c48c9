"""Partitions of a table: which values of a row decide into which partition it belongs.

`partition_by` has items such as `day(_timestamp)`, `region`, `subject[2]` and, for a bucket,
`key[1]`. Each is a
`Partition`, with the name and the type of its column in the table. Sinks get the partitions of a
table with its columns, by `partitions_in`, and the partition of a file in `TaskFile.partition`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from twinstream.spark.decode import fields
from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.landing.batch_folders import BATCH_FOLDER

__all__ = [
    "TIME_TRANSFORMS",
    "Partition",
    "changed_partitions",
    "check_partitions",
    "file_columns",
    "marked",
    "other_tokens",
    "parse_partitions",
    "partition_columns",
    "partitions_in",
    "stored_partition",
    "stored_partitions",
    "table_columns",
    "tokens_in",
    "tokens_of",
    "with_names",
    "with_partitions",
]

_KEY: Final = "partition_by"
_CALL: Final = re.compile(r"(\w+)\s*\(\s*([^()]+?)\s*\)")
# Other programs may divide a table by a transform such as `bucket[16](id)`.
_STORED: Final = re.compile(r"(\w+(?:\[\d+\])?)\(([^()]+)\)", re.ASCII)
_TOKEN: Final = re.compile(r"(subject|key)\[(\d{1,4})\]", re.ASCII)

# Names that readers of folders take as they are.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)

# The key in the metadata of a table's columns, and of its files, with the partitions.
_MARK: Final = b"twinstream.partitions"

_FORMS: Final = "year(column), month(column), day(column), hour(column), {}[n] or a column"
_VALUES: Final[Mapping[pa.DataType, str]] = {
    fields.STRING: "text",
    fields.INTEGER: "int",
    fields.LONG: "long",
    fields.BOOLEAN: "boolean",
    fields.DATE: "date",
}
_TYPES: Final = {str(kind): kind for kind in _VALUES}


def _day(times: pa.Array) -> pa.Array:
    return times.cast(fields.DATE, safe=False)


def _text_of(form: str) -> Callable[[pa.Array], pa.Array]:
    return lambda times: pc.strftime(times, format=form)


def _months(times: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(_years(times), 12), pc.subtract(pc.month(times), 1))


def _years(times: pa.Array) -> pa.Array:
    return pc.subtract(pc.year(times), 1970)


def _hours(times: pa.Array) -> pa.Array:
    return pc.divide(pc.floor_temporal(times, unit="hour").cast(fields.LONG), _HOUR)


# What a table in a catalog has for a time: the whole years, months, days or hours since 1970.
_SINCE_1970: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "year": _years,
    "month": _months,
    "day": lambda times: _day(times).cast(fields.INTEGER),
    "hour": _hours,
}

# An hour in microseconds.
_HOUR: Final = 3_600_000_000

# The type of the values of each transform of a time, and how to compute them, in UTC.
_TRANSFORMS: Final[Mapping[str, tuple[pa.DataType, Callable[[pa.Array], pa.Array]]]] = {
    "year": (fields.INTEGER, lambda times: pc.year(times).cast(fields.INTEGER)),
    "month": (fields.STRING, _text_of("%Y-%m")),
    "day": (fields.DATE, _day),
    "hour": (fields.STRING, _text_of("%Y-%m-%d-%H")),
}

TIME_TRANSFORMS: Final = frozenset(_TRANSFORMS)
"""The transforms of a time."""


@frozen(kw_only=True)
class Partition:
    """One item of `partition_by`, `text`.

    `transform` is `year`, `month`, `day`, `hour`, `token` or, for the values of a column as they
    are, `identity`. `source` is the column of the message from which the values come, and `token`
    the number of the token of the subject or key, from 1. `name` and `type` are those of the column
    with the values.

    Values that are `stored` are in the files, or follow from columns there, as in tables in a
    catalog. Others are in the names of folders or in the log.
    """

    text: str
    transform: str
    source: str
    name: str
    type: pa.DataType
    token: int = 0
    stored: bool = False

    @property
    def is_derived(self) -> bool:
        """Whether the values are not those of a column of the message."""
        return self.transform != "identity"

    @property
    def has_column(self) -> bool:
        """Whether the values have a column, which is added to those of the message."""
        return self.transform == "token" or (self.is_derived and not self.stored)

    @property
    def column(self) -> pa.Field:
        """The column with the values."""
        return pa.field(self.name, self.type)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the value of each row. Stored dates and times are numbers, as in a catalog."""
        found = rows.column(self.source)
        if self.transform == "identity":
            is_date = self.stored and pa.types.is_date(found.type)
            return found.cast(fields.INTEGER) if is_date else found
        if self.transform == "token":
            return tokens_of(found, self.token)
        if pa.types.is_timestamp(found.type):
            found = found.cast(pa.timestamp("us"))  # without a zone, so in UTC
        if self.stored:
            return _SINCE_1970[self.transform](found)
        return _TRANSFORMS[self.transform][1](found)


def tokens_in(column: str) -> str:
    """Return what has the tokens, `subject` or `key`, for the column with it."""
    return column.lstrip("_")


def other_tokens(column: str, number: int) -> str:
    """Return the reason for an error if tokens of the other one, a subject or a key, are named."""
    word = tokens_in(column)
    whose = "a stream has subjects" if word == "subject" else "a bucket has keys"
    return f"{whose}, so write {word}[{number}]"


def tokens_of(subjects: pa.Array, number: int) -> pa.Array:
    """Return a token of each subject, counted from 1; null for a subject with fewer tokens."""
    found = subjects.dictionary_encode()
    parts = (each.split(".") for each in found.dictionary.to_pylist())
    tokens = [each[number - 1] if number <= len(each) else None for each in parts]
    return pa.array(tokens, pa.string()).take(found.indices)


def parse_partitions(
    texts: Sequence[str], columns: pa.Schema, subject: str, seq: str
) -> tuple[Partition, ...]:
    """Return the partitions of a table with these columns.

    `subject` and `seq` are the columns with the subject and the sequence, or with the key and the
    revision. Raises `OptionError` for an item that is unknown, or that a table cannot have.
    """
    found = tuple(_parse(text, columns, subject, seq) for text in texts)
    taken = {each.lower(): each for each in columns.names}
    names = set[str]()
    for each in found:
        lower = each.name.lower()
        if lower in names:
            raise OptionError(_KEY, f"has {each.text} twice; remove one of them")
        names.add(lower)
        if f"{lower}=" == BATCH_FOLDER:
            raise OptionError(_KEY, f"{each.text} has the name of the folders of batches")
        if each.is_derived and lower in taken:
            raise OptionError(
                _KEY,
                f"{each.text} needs a column {each.name}, and the table has a column"
                f" {taken[lower]!r}, which is another; leave it out of the schema (it is kept in"
                " _extra)",
            )
        if not _NAME.fullmatch(each.name):
            raise OptionError(
                _KEY, f"column {each.name!r} may have only letters, digits, '-' and '_' in its name"
            )
    if len(columns) <= sum(not each.is_derived for each in found):
        raise OptionError(_KEY, "leaves no other column in the files; remove one of the columns")
    return found


def _parse(text: str, columns: pa.Schema, subject: str, seq: str) -> Partition:
    text = text.strip()
    token = _TOKEN.fullmatch(text)
    if token is not None:
        word, number = token[1], int(token[2])
        if not number:
            raise OptionError(_KEY, f"{word}[0]: tokens are counted from 1")
        if word != tokens_in(subject):
            raise OptionError(_KEY, f"{text}: {other_tokens(subject, number)}")
        name = f"{word}_{number}"
        return Partition(
            text=text, transform="token", source=subject, name=name, type=pa.string(), token=number
        )
    call = _CALL.fullmatch(text)
    if call is None:
        return _identity(text, columns, subject, seq)
    transform, name = call[1], call[2]
    if transform not in _TRANSFORMS:
        forms = _FORMS.format(tokens_in(subject))
        raise OptionError(_KEY, f"{text}: there is no transform {transform!r}; an item is {forms}")
    kind = _column(text, name, columns, subject).type
    is_time = pa.types.is_timestamp(kind)
    if not (is_time or (kind == fields.DATE and transform != "hour")):
        times = [each.name for each in columns if pa.types.is_timestamp(each.type)]
        wanted = "times" if transform == "hour" else "times or dates"
        raise OptionError(
            _KEY,
            f"{text}: {transform} needs a column of {wanted}, and {name!r} is {kind}; the columns"
            f" of times are {', '.join(times)}",
        )
    return Partition(
        text=f"{transform}({name})",
        transform=transform,
        source=name,
        name=_derived_name(transform, name),
        type=_TRANSFORMS[transform][0],
    )


def _derived_name(transform: str, source: str) -> str:
    return f"{source.lstrip('_')}_{transform}"


def stored_partition(transform: str, source: str) -> Partition:
    """Return a partition of a table in a catalog by its transform and the column in the files.

    A column of tokens is a column as others are.
    """
    is_identity = transform == "identity"
    text = source if is_identity else f"{transform}({source})"
    name = source if is_identity else _derived_name(transform, source)
    kind = pa.string()
    return Partition(
        text=text, transform=transform, source=source, name=name, type=kind, stored=True
    )


def stored_partitions(columns: pa.Schema) -> list[Partition]:
    """Return the partitions of a table in a catalog with these columns, or of a file there."""
    found: list[Partition] = []
    for text, column in partitions_in(columns):
        call = _STORED.fullmatch(text)
        pair = ("identity", column.name) if call is None else (call[1], call[2])
        found.append(stored_partition(*pair))
    return found


def _identity(text: str, columns: pa.Schema, subject: str, seq: str) -> Partition:
    kind = _column(text, text, columns, subject).type
    if kind not in _VALUES:
        able = [each.name for each in columns if each.type in _VALUES and each.name != seq]
        raise OptionError(
            _KEY,
            f"column {text!r} is {kind}; a partition needs text, whole numbers, booleans or dates,"
            f" as the columns {', '.join(able)}, or a transform such as day(column)",
        )
    if text == seq:
        raise OptionError(_KEY, f"with {text!r}, each message would be a partition of its own")
    return Partition(text=text, transform="identity", source=text, name=text, type=kind)


def _column(text: str, name: str, columns: pa.Schema, subject: str) -> pa.Field:
    if name not in columns.names:
        near = difflib.get_close_matches(name, columns.names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(
            _KEY,
            f"{text}: there is no column {name!r}{hint}; an item is"
            f" {_FORMS.format(tokens_in(subject))}, and the columns are {', '.join(columns.names)}",
        )
    return columns.field(name)


def table_columns(columns: pa.Schema, partitions: Sequence[Partition]) -> pa.Schema:
    """Return the columns of a table, with those that are derived for its partitions at the end."""
    derived = [each.column for each in partitions if each.has_column]
    return marked(pa.schema([*columns, *derived]), partitions)


def file_columns(columns: pa.Schema, partitions: Sequence[Partition]) -> pa.Schema:
    """Return the columns that are in the files of a table: those without the partitions' values.

    Files have the values that are stored.
    """
    stored = tuple(each for each in partitions if each.stored)
    names = {each.name for each in partitions if not each.stored}
    found = [each for each in table_columns(columns, stored) if each.name not in names]
    return marked(pa.schema(found), partitions)


def marked(columns: pa.Schema, partitions: Sequence[Partition]) -> pa.Schema:
    """Return the columns with a note of the partitions, which files keep."""
    return _noted(columns, [(each.text, each.column) for each in partitions])


def with_names(columns: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return the columns of a table with a note of its partitions, whose items are unknown."""
    return _noted(columns, [(name, columns.field(name)) for name in names])


def _noted(columns: pa.Schema, partitions: Sequence[tuple[str, pa.Field]]) -> pa.Schema:
    if not partitions:
        return columns
    note = [[text, column.name, str(column.type)] for text, column in partitions]
    return columns.with_metadata({_MARK: json.dumps(note).encode()})


def partitions_in(columns: pa.Schema) -> list[tuple[str, pa.Field]]:
    """Return the partitions of a table with these columns, or of a file with this schema.

    Each has its item of `partition_by`, and the column with the values.
    """
    note = (columns.metadata or {}).get(_MARK, b"[]")
    return [(text, pa.field(name, _TYPES[kind])) for text, name, kind in json.loads(note)]


def with_partitions(columns: pa.Schema) -> pa.Schema:
    """Return the columns of a table for those of its files."""
    added = [field for _, field in partitions_in(columns) if field.name not in columns.names]
    return pa.schema([*columns, *added], columns.metadata)


def partition_columns(columns: pa.Schema) -> list[str]:
    """Return the names of the columns with the values of partitions."""
    return [field.name for _, field in partitions_in(columns)]


def check_partitions(table: str, known: pa.Schema, new: pa.Schema) -> None:
    """Raise `SchemaError` if the files of a table have other partitions than new files."""
    before, now = partitions_in(known), partitions_in(new)
    if before != now:
        raise changed_partitions(table, _named(before), _named(now))


def changed_partitions(table: str, before: Sequence[str], now: Sequence[str]) -> SchemaError:
    """Return the error for a table whose partitions would change."""
    return SchemaError(
        f"the table {table} was landed {_listed(before)}, and partition_by says {_listed(now)} now:"
        " the partitions of a table cannot be changed; set them as before, or name another table"
    )


def _named(partitions: Sequence[tuple[str, pa.Field]]) -> list[str]:
    return [f"{text} ({_VALUES[field.type]})" for text, field in partitions]


def _listed(names: Sequence[str]) -> str:
    return f"with the partitions {', '.join(names)}" if names else "without partitions"
