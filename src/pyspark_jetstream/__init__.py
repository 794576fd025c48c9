"""Where Spark finds the data source ``jetstream`` by itself.

Spark imports every installed top-level module whose name starts with ``pyspark_`` and registers
its ``DefaultSource``.
"""

from __future__ import annotations

from twinstream.spark.source.source import JetStreamDataSource as DefaultSource

__all__ = ["DefaultSource"]
