"""The health of streams and consumers: what is wrong with them, and what to try.

`check_health` compares two samples of their state, and returns its findings.
"""

from __future__ import annotations

from js_async.health.check import check_health
from twinstream.core.health.health import Finding, Health, Severity, Thresholds

__all__ = ["Finding", "Health", "Severity", "Thresholds", "check_health"]
