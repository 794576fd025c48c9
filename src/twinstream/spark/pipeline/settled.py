"""Work on tables between runs: alone, and with no batch left half done."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from twinstream.spark.errors import CheckpointError
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.checkpoint import Checkpoint
from twinstream.spark.pipeline.config import PipelineConfig
from twinstream.spark.pipeline.folders import Folders

__all__ = ["settled"]


@contextmanager
def settled(config: PipelineConfig, purpose: str) -> Generator[None]:
    """Hold the lock of a pipeline that has no unfinished batch.

    Raises `PipelineBusy` while it runs and `CheckpointError` when a batch was interrupted.
    """
    folders = Folders(config.path)
    with locked(folders.lock, folders.root, f"pipeline {purpose} of {config.name}"):
        for source in config.sources:
            checkpoint = Checkpoint(folders.source(source.name).checkpoint, source.stream)
            if checkpoint.last_begun() > checkpoint.last_committed():
                raise CheckpointError(
                    f"a batch of source {source.name} was interrupted; let it be finished first:"
                    " twinstream pipeline run --once"
                )
        yield
