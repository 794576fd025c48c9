"""Convert the rows of a write to messages, and check their columns and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from pyspark.sql.types import DataType, StructType

from twinstream.core.publish.request import publish_headers
from twinstream.errors import BadArgument
from twinstream.records.copied_headers import is_copied
from twinstream.records.header_names import INCREMENT, TTL
from twinstream.records.publish_request import PublishRequest
from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OutMessage", "RowReader"]

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "subject": ("string",),
    "data": ("binary", "string"),
    "headers": ("map<string,array<string>>", "map<string,string>"),
    "msg_id": ("string",),
    "ttl": ("bigint", "int"),
}

# The types that a column which identifies rows may have. Their values have the same text in every
# session. The text of a timestamp would depend on the session's time zone.
_IDENTITIES: Final = ("string", "bigint", "int")

# Columns of a raw read that the sink ignores, so that the rows of a read can be written unchanged.
_IGNORED: Final = frozenset({"stream", "seq", "timestamp"})


@frozen
class OutMessage:
    """The message to publish for a row.

    `ttl` is in seconds. `identity` is the value of the column that identifies rows, as text, or
    `None` without a value.
    """

    subject: str
    data: bytes
    headers: Mapping[str, list[str]] | None
    ttl: int | None
    identity: str | None


class RowReader:
    """A converter of the rows of a write to messages.

    The rows have a column `data` (binary or string), and optionally `subject`, `headers`,
    `msg_id` (ID of the row), `ttl` (seconds) and the column that the option `idColumn` names.
    Headers that only a server may set, and headers of an earlier publication, are dropped
    (`copied_headers`).

    Raises `SchemaError` for columns that are missing, unknown or of
    another type, and `OptionError` if the columns do not match the
    options `subject` and `idColumn`.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Check the columns of `schema`, as the docstring of the class says."""
        self._default: Final = options.subject
        self._identity: Final = options.id_column or "msg_id"
        known: dict[str, tuple[str, ...]] = {**_TYPES}
        if options.id_column is not None:
            known.setdefault(options.id_column, _IDENTITIES)
        for field in schema:
            _check_column(field.name, field.dataType, known)
            if field.name == options.id_column:
                _check_identity(field.name, field.dataType)
        names = frozenset(schema.names)
        if "data" not in names:
            raise SchemaError("the rows have no column 'data' (binary or string) to publish")
        if "subject" not in names and options.subject is None:
            raise OptionError("subject", "is required if the rows have no column 'subject'")
        if options.id_column is not None and options.id_column not in names:
            raise OptionError("idColumn", f"the rows have no column {options.id_column!r}")
        self._must_identify: Final = options.id_column is not None
        if "msg_id" in names and options.idempotence in {"insert", "ledger"}:
            raise SchemaError(
                f"column 'msg_id' needs idempotence=msgId or none: {options.idempotence} does not"
                " use it to identify rows; drop the column"
            )

    def read(
        self,
        batches: Iterator[pa.RecordBatch],
        check: Callable[[pa.RecordBatch], None] = lambda _: None,
    ) -> Iterator[OutMessage]:
        """Yield the messages of all rows in order.

        `check` is called with each batch before the messages of the batch are yielded. Raises
        `SchemaError` for a row without a subject or a required ID, and for headers, an ID or a TTL
        that no server accepts.
        """
        for batch in batches:
            check(batch)
            for row in batch.to_pylist():
                yield self._message(row)

    def _message(self, row: dict[str, Any]) -> OutMessage:
        """Return the message of a row.

        Raises `SchemaError` for a row that cannot be published or that lacks a required ID.
        """
        subject = row.get("subject") or self._default
        if subject is None:
            raise SchemaError("a row has no subject; give each one, or set the option 'subject'")
        data = row["data"]
        identity, ttl = row.get(self._identity), row.get("ttl")
        # The server ignores an empty ID, so the row would have no ID.
        if identity in {None, ""} and self._must_identify:
            content = "null" if identity is None else "empty text"
            raise SchemaError(
                f"a row for {subject!r} has {content} in column {self._identity!r}, which the"
                " option idColumn names: the column must identify each row"
            )
        body = data.encode() if isinstance(data, str) else bytes(data or b"")
        message = OutMessage(
            subject,
            body,
            _headers(row.get("headers"), subject, ttl, may_increment=not body),
            ttl,
            None if identity is None else str(identity),
        )
        _check_message(message)
        return message


def _check_message(row: OutMessage) -> None:
    """Raise `SchemaError`, which names the row's subject, if the row cannot be published."""
    identity = row.identity
    is_plain = identity is None or (identity.isprintable() and identity == identity.strip())
    if row.headers is None and row.ttl is None and is_plain:
        return  # skip the check below, which takes as long as encoding the headers
    request = PublishRequest(row.subject, b"", row.headers, msg_id=row.identity, ttl=row.ttl)
    try:
        publish_headers(request)
    except BadArgument as error:
        raise SchemaError(f"a row for {row.subject!r} cannot be published: {error}") from error


def _check_column(name: str, kind: DataType, known: Mapping[str, tuple[str, ...]]) -> None:
    if name in _IGNORED:
        return
    types = known.get(name)
    if types is None:
        raise SchemaError(
            f"column {name!r} is not one of {', '.join(known)}; drop or rename it, or put it into"
            " 'data'"
        )
    if kind.simpleString() not in types:
        raise SchemaError(f"column {name!r} is {kind.simpleString()}, not {' or '.join(types)}")


def _check_identity(name: str, kind: DataType) -> None:
    if kind.simpleString() not in _IDENTITIES:
        raise OptionError(
            "idColumn",
            f"column {name!r} is {kind.simpleString()}, not {' or '.join(_IDENTITIES)}; cast it",
        )


def _headers(
    pairs: list[tuple[str, str | list[str | None] | None]] | None,
    subject: str,
    ttl: int | None,
    *,
    may_increment: bool,
) -> dict[str, list[str]] | None:
    """Return the headers of a row that are published, or `None` if there are none."""
    return {
        name: _values(name, value, subject)
        for name, value in pairs or ()
        # A message that increments a counter has no data. If a row with this header has data, it is
        # a stored message of a counter, whose data is the total. The increment must not be
        # repeated, so the header is dropped.
        if (is_copied(name) or (may_increment and name == INCREMENT))
        # The column `ttl` replaces the TTL header of a copied message.
        and (ttl is None or name != TTL)
    } or None


def _values(name: str, value: str | list[str | None] | None, subject: str) -> list[str]:
    values = [value] if value is None or isinstance(value, str) else value
    found = [each for each in values if each is not None]
    if len(found) < len(values):
        raise SchemaError(
            f"column 'headers': a row for {subject!r} has null for {name!r}; remove the name"
        )
    return found
