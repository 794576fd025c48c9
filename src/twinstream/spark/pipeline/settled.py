"""Exclusive work on tables between batches, when no batch is unfinished."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline.batch_log import BatchLog
from twinstream.spark.pipeline.checkpoint import Checkpoint
from twinstream.spark.pipeline.config import PipelineConfig
from twinstream.spark.pipeline.folders import Folders, SourceFolder
from twinstream.spark.pipeline.table_lock import TableLock

__all__ = ["settled"]


@contextmanager
def settled(config: PipelineConfig, purpose: str) -> Generator[None]:
    """Lock the tables of a pipeline that has no unfinished batch.

    If the pipeline runs, this waits for the batches that are being landed, and the next ones wait
    for the end of the block. Raises `PipelineBusy` while another command has the lock, and
    `CheckpointError` if a batch was interrupted.
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
    """Return whether tables may have a part of a batch.

    A batch that Spark has only planned is not in the journal. The rows of a batch in the journal
    whose checkpoint is missing were removed.
    """
    checkpoint = Checkpoint(folder.checkpoint, stream)
    begun = checkpoint.last_begun() > checkpoint.last_committed()
    return begun and BatchLog(folder.journal).is_interrupted()
