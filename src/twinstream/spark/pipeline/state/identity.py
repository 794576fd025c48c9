"""The identity of a source: its stream, and the checkpoint that belongs to its tables.

Batch numbers continue when a new checkpoint begins: batch `n` of Spark's checkpoint is the
pipeline's batch `base + n`. A table ignores a batch whose number it already has. With a lost or
restored checkpoint, Spark would use the same numbers for other batches, and the tables would ignore
these batches. So the pipeline must detect such a checkpoint.
"""

from __future__ import annotations

import uuid

from attrs import asdict, evolve, frozen

from twinstream.spark.errors import CheckpointError, OptionError
from twinstream.spark.landing.durable import read_json, write_json
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.settings.folders import SourceFolder
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.source.stored_members import checked_members
from twinstream.spark.source.stream_state import StreamState

__all__ = ["Identity"]


@frozen(kw_only=True)
class Identity:
    """The contents of `source.json`."""

    id: str
    """The ID of the source in the transactions of Delta tables."""
    stream: str
    created: str
    """The creation time of the stream, which differs from that of a later stream of this name."""
    origin: int
    """The first sequence of the first batch of the checkpoint."""
    base: int = 0
    """The number of the first batch of the checkpoint."""
    query_id: str | None = None
    """The ID of the checkpoint's query; `None` until a query has run."""
    filter: str | None = None
    """The subjects, separated by commas, to which the user changed the source; `None` if the
    subjects were never changed."""

    @classmethod
    def load(cls, folder: SourceFolder) -> Identity | None:
        """Return the stored identity, or `None` for a source that never ran."""
        if not folder.identity.exists():
            return None
        return read_json(folder.identity, lambda found: cls(**checked_members(cls, found)))

    @classmethod
    def first(cls, source: SourceConfig, state: StreamState) -> Identity:
        """Return a new identity for a source that never ran; `start` determines its `origin`.

        Raises `OptionError` if the source's `start` is beyond the end of the stream.
        """
        match source.start:
            case "earliest":
                origin = state.first
            case "latest":
                origin = state.next
            case int(origin):
                if origin > state.next:
                    raise OptionError(
                        "start",
                        f"is {origin}, beyond the end of stream {state.name} ({state.next - 1})",
                    )
            case other:
                raise OptionError("start", f"cannot be {other!r}")
        return cls(id=uuid.uuid4().hex, stream=state.name, created=state.created, origin=origin)

    def save(self, folder: SourceFolder) -> Identity:
        """Store the identity on disk, synced, and return it."""
        write_json(folder.identity, asdict(self))
        return self

    def of_query(self, query_id: str, folder: SourceFolder) -> Identity:
        """Return the identity with the ID of a query, and store it if the ID is new."""
        return self if self.query_id == query_id else evolve(self, query_id=query_id).save(folder)

    def check(self, source: SourceConfig, checkpoint: Checkpoint, *, landed: bool) -> None:
        """Raise `CheckpointError` if the source's stream or checkpoint is not that of the identity.

        `landed` is true if the journal has landed batches. If it is false and no query has run,
        the checkpoint is not compared.
        """
        if self.stream != source.stream:
            raise CheckpointError(
                f"source {source.name} landed stream {self.stream} before, now it names"
                f" {source.stream}; give the source another name, or land into a new folder"
            )
        found = checkpoint.query_id()
        if found == self.query_id or (self.query_id is None and not landed):
            return
        what = "is missing" if found is None else "is not the one of its tables"
        raise CheckpointError(
            f"the checkpoint of source {source.name} {what}; restore it, or continue after the last"
            " batch of the journal with a new one: twinstream pipeline run --recover"
        )

    def renewed(self, *, origin: int, base: int, created: str) -> Identity:
        """Return an identity for a new checkpoint that continues after the landed batches.

        The new identity has another `id`. With the same `id`, a Delta table could take a new
        batch for a batch that it already has.
        """
        return evolve(
            self, id=uuid.uuid4().hex, origin=origin, base=base, created=created, query_id=None
        )
