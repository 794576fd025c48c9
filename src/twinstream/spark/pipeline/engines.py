"""The engine that the configuration of a pipeline names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twinstream.lake.engine import Engine
from twinstream.lake.local_engine import LocalEngine
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.spark_engine import SparkEngine
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.running import refuse_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["engine_of"]


@contextmanager
def engine_of(spark: SparkSession | None, config: PipelineConfig) -> Generator[Engine]:
    """Open the engine of a pipeline for the block.

    Raises `SparkSourceError` if it is Spark, and `spark` is `None` or a Spark Connect session.
    """
    if config.engine == "local":
        with LocalEngine() as engine:
            yield engine
        return
    if spark is None:
        raise SparkSourceError(
            'a pipeline with engine = "spark" needs a session, such as that of'
            " twinstream.spark.local_session()"
        )
    refuse_connect(spark)
    yield SparkEngine(spark)
