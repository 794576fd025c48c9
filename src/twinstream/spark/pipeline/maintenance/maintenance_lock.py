"""Lock the tables of a pipeline for work that must not run while a batch is unfinished."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders, SourceFolder
from twinstream.spark.pipeline.state.batch_log import BatchLog
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.pipeline.tables.table_lock import TableLock

__all__ = ["maintenance_lock"]


@contextmanager
def maintenance_lock(config: PipelineConfig, purpose: str) -> Generator[None]:
    """Lock the tables of a pipeline for the block, after checking that no batch is unfinished.

    If the pipeline runs, this function waits until the current batches are landed, and the pipeline
    begins no batch until the block ends. `purpose` is shown in the errors of other commands.
    Raises `PipelineBusy` while another command has the lock, and `CheckpointError` if a batch was
    interrupted.
    """
    folders = Folders(config.path)
    with TableLock(folders).alone(f"pipeline {purpose} of {config.name}"):
        for source in config.sources:
            if _is_unfinished(folders.source(source.name), source.stream):
                raise CheckpointError(
                    f"a batch of source {source.name} was interrupted; finish it first:"
                    " twinstream pipeline run --once"
                )
        yield


def _is_unfinished(folder: SourceFolder, stream: str) -> bool:
    """Return whether the tables may have a part of a batch.

    The result is true if Spark has planned a batch that it has not committed, and the last entry of
    the journal is a batch that was begun and not landed. A planned batch without a journal entry
    has written no rows. If the checkpoint does not have the begun batch, a new checkpoint was
    started, and the rows of the batch were removed.
    """
    checkpoint = Checkpoint(folder.checkpoint, stream)
    begun = checkpoint.last_begun() > checkpoint.last_committed()
    return begun and BatchLog(folder.journal).is_interrupted()
