"""``twinstream demo``: the whole way from checked configurations to Parquet, on a real server.

Six steps, one module each: configs, publishing, consuming, advisories, landing, sums. What they
learn is kept in one :class:`~twinstream.cli.demo.scene.Scene`, from which the report page is drawn.
"""

from __future__ import annotations
