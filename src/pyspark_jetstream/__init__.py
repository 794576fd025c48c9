"""The module by which Spark finds the data source `jetstream`.

Spark imports every installed top-level module whose name starts with `pyspark_`, and registers the
class `DefaultSource` of the module.
"""

from __future__ import annotations

from twinstream.spark.data_source import JetStreamDataSource as DefaultSource

__all__ = ["DefaultSource"]
