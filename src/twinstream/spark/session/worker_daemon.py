"""Start Spark's Python workers with the modules of this package loaded.

Spark forks its workers from a process that has loaded little more than Python itself. So each
worker imports PySpark, Arrow and this package, which takes 0.3 seconds of CPU time. After each task
it collects garbage, and searches the objects of all these modules. A query starts several workers.

This module loads the modules before Spark's own code forks the workers. Loading them opens no
connection and starts no thread of Python.
"""

from __future__ import annotations

import gc

import pyspark.sql.worker.commit_data_source_write
import pyspark.sql.worker.create_data_source
import pyspark.sql.worker.lookup_data_sources
import pyspark.sql.worker.plan_data_source_read
import pyspark.sql.worker.write_into_data_source
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import twinstream.spark.data_source  # noqa: F401

__all__ = ["main"]


def main() -> None:
    """Fork workers until Spark ends this process."""
    gc.collect()
    gc.freeze()
    manager()
