"""``twinstream demo``: from checked configurations to Parquet, on a real server.

Six steps, one module each: configs, publishing, consuming, advisories, landing, sums. They store
their results in one :class:`~twinstream.cli.demo.scene.Scene`, from which the report page is drawn.
"""

from __future__ import annotations
