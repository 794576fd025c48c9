"""A program that lands several pipelines at once to the end of their streams, to be killed.

Prints a line for each thing that happens, so that whoever kills it can choose the moment.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from twinstream.spark.pipeline import PipelineConfig, read_config
from twinstream.spark.pipeline.pipeline_events import Happening
from twinstream.spark.pipeline.runner import run
from twinstream.spark.session.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tell(happening: Happening) -> None:
    why = getattr(happening, "error", "").replace("\n", " ")
    print(type(happening).__name__, happening.source, why[:500], flush=True)


def land(spark: SparkSession | None, config: PipelineConfig) -> dict[str, str]:
    return run(spark, config, once=True, tell=tell)


def main(files: list[str]) -> int:
    configs = [read_config(file) for file in files]
    spark: SparkSession | None = None
    if any(each.engine == "spark" for each in configs):
        spark = local_session("killed", master="local[2,4]", settings={"spark.ui.enabled": "false"})
        spark.sparkContext.setLogLevel("OFF")
    with ThreadPoolExecutor(len(configs)) as pool:
        failed = list(pool.map(lambda config: land(spark, config), configs))
    if spark is not None:
        spark.stop()
    print("failed" if any(failed) else "done", failed, flush=True)
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
