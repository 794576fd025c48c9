"""What a pipeline has stored about a source: its journal, checkpoint and tables."""

from __future__ import annotations

from attrs import frozen

from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders, SourceFolder
from twinstream.spark.pipeline.state.batch_log import BatchLog
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.pipeline.tables.table_lock import TableLock

__all__ = ["SourceState"]


@frozen
class SourceState:
    """The journal, the checkpoint and the tables of a source, and the lock of the tables."""

    folder: SourceFolder
    log: BatchLog
    checkpoint: Checkpoint
    sink: Sink
    lock: TableLock

    @classmethod
    def of(cls, config: PipelineConfig, source: SourceConfig) -> SourceState:
        """Return the stored state of a source of a pipeline."""
        folders = Folders(config.path)
        folder = folders.source(source.name)
        return cls(
            folder,
            BatchLog(folder.journal),
            Checkpoint(folder.checkpoint, source.stream),
            open_sink(config),
            TableLock(folders),
        )
