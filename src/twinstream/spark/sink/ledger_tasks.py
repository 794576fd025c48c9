"""Check that the last attempt of a micro-batch has all tasks in which rows were stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.spark.client.retry import through
from twinstream.spark.errors import LedgerError
from twinstream.spark.sink.ledger_entry import Entry
from twinstream.spark.sink.report import JetStreamCommit

if TYPE_CHECKING:
    from js_sync import Stream

__all__ = ["refuse_other_tasks"]


def refuse_other_tasks(stream: Stream, commits: Sequence[JetStreamCommit], patience: float) -> None:
    """Raise `LedgerError` if an earlier attempt stored rows in a task that has no commit.

    `commits` are the reports of the tasks of the last attempt. Each task compares its rows only
    with its own ledger. If the last attempt has fewer tasks than an earlier attempt, no task reads
    the ledgers of the missing tasks, and their rows may have been stored again by other tasks.
    `patience` is the number of seconds for which requests are retried.
    """
    if not commits:
        return
    batch, (place, _, _) = commits[0].batch, commits[0].ledger.rpartition(".")
    known = {each.ledger for each in commits}

    def other() -> str | None:
        for subject, _ in stream.subjects(f"{place}.*"):
            if subject not in known:
                message = stream.get_last_message(subject)
                if Entry.from_json(message.data, message.seq, subject).batch == batch:
                    return subject
        return None

    found = through(other, patience)
    if found is not None:
        raise LedgerError(
            f"{found}: an earlier attempt of batch {batch} stored rows in a task that this attempt"
            f" does not have: it has {len(commits)} tasks, so other tasks may have stored these"
            " rows again. Give each repeat the same tasks: turn spark.sql.adaptive.enabled off, and"
            f" keep spark.sql.shuffle.partitions. Compare the rows, then purge {found} to continue"
        )
