"""Which messages are handled one after the other."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["Order"]

Order: TypeAlias = Literal["none", "subject", "total"]
"""Which messages are handled strictly one after the other.

"none": no messages; "subject": messages of the same subject; "total": all messages.
"""
