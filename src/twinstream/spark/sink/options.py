"""Parse and validate the options of the sink. Every error names the option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from attrs import frozen

from twinstream.core.wire.subjects import check_name, check_subject
from twinstream.errors import BadArgument
from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.client.settings import ConnectionSettings
from twinstream.spark.errors import OptionError

__all__ = ["Idempotence", "SinkOptions"]

Idempotence: TypeAlias = Literal["msgId", "none", "insert", "ledger"]

_Check: TypeAlias = Callable[[str], object]
_IDEMPOTENCE: Final[tuple[Idempotence, ...]] = ("msgId", "none", "insert", "ledger")


@frozen(kw_only=True)
class SinkOptions:
    """The parsed options of one write.

    `idempotence` selects how a repeated attempt treats rows that are already stored:

    - `none`: the rows are stored again (at least once);
    - `msgId`: no row is stored twice within the stream's duplicate window;
    - `insert`: a row is stored only if its subject has no message, so each row needs its own
      subject;
    - `ledger`: a row is stored only if no other attempt has stored it, without a time limit. Rows
      are sent in atomic batches. The first message of a batch is a ledger entry. The server refuses
      the batch if the last entry of the ledger is not the one that the writer expects.
    """

    connection: ConnectionSettings
    stream: str | None = None
    subject: str | None = None
    """The subject of rows without a value in the column `subject`."""
    idempotence: Idempotence = "msgId"
    id_column: str | None = None
    """The column that identifies a row; no row may have null there. Without this option, the column
    `msg_id` identifies a row. A row without `msg_id` is identified by its content and task."""
    write_id: str | None = None
    """The ID of a batch write. A later write with the same ID counts as a repeated attempt. By
    default, each write has a random ID."""
    ledger_subject: str | None = None
    """The prefix of the subjects of ledger entries."""
    min_duplicate_window: float = 120.0
    """The shortest duplicate window in seconds that the stream may have with `msgId`."""
    max_in_flight: int = 4096
    """The maximum number of rows that wait for an acknowledgement."""
    ack_timeout: float = 30.0
    """The maximum number of seconds to wait for an acknowledgement."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Return the parsed and validated options. Raises `OptionError` for an invalid option."""
        given = OptionsMap(options)
        _refuse_bucket(given)
        parsed = cls(
            connection=ConnectionSettings.take(given),
            stream=_checked(given, "stream", lambda name: check_name(name, "stream")),
            subject=_checked(given, "subject", check_subject),
            idempotence=given.word("idempotence", _IDEMPOTENCE),
            id_column=given.text("idColumn"),
            write_id=_checked(given, "writeId", lambda name: check_name(name, "write")),
            ledger_subject=_checked(given, "ledgerSubject", check_subject),
            min_duplicate_window=given.duration("minDuplicateWindow", 120.0),
            max_in_flight=given.integer("maxInFlight", 4096, least=1),
            ack_timeout=given.integer("ackTimeoutMs", 30_000, least=1) / 1000,
        )
        given.finish()
        parsed._check()
        return parsed

    def _check(self) -> None:
        """Raise `OptionError` for an option that is missing, or that `idempotence` does not use."""
        if self.idempotence != "none" and self.stream is None:
            raise OptionError(
                "stream",
                f"is required with idempotence={self.idempotence}: the stream's configuration"
                " must be checked, as the guarantee depends on it",
            )
        if self.idempotence == "ledger" and self.ledger_subject is None:
            raise OptionError(
                "ledgerSubject",
                "is required with idempotence=ledger: the prefix of the subjects of ledger entries,"
                " a subject of the stream, such as 'orders.ledger'",
            )
        if self.idempotence != "ledger" and self.ledger_subject is not None:
            raise OptionError("ledgerSubject", "needs idempotence=ledger")
        if self.id_column is not None and self.idempotence != "msgId":
            raise OptionError("idColumn", "needs idempotence=msgId")


def _refuse_bucket(given: OptionsMap) -> None:
    bucket = given.text("bucket")
    if bucket is not None:
        raise OptionError(
            "bucket",
            f"is for reading; to write keys, give stream=KV_{bucket} and rows whose subjects are"
            f" $KV.{bucket}. and the key",
        )


def _checked(given: OptionsMap, name: str, check: _Check) -> str | None:
    text = given.text(name)
    if text is not None:
        try:
            check(text)
        except BadArgument as error:
            raise OptionError(name, str(error)) from error
    return text
