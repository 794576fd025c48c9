"""Step 1: check the configuration files before any server sees them, then create what they say."""

from __future__ import annotations
