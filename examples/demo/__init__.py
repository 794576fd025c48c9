"""Demonstrate the path from configurations to Parquet on a real server: `make demo`.

The demo has six steps in the modules configs, publishing, consuming, advisories, landing and sums.
The steps store their results in a `Scene`, from which the report
is created.
"""

from __future__ import annotations
