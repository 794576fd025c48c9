"""How tests run Java: in short programs, optimizing compilation costs more than it saves."""

from __future__ import annotations

from typing import Final

__all__ = ["QUICK_JAVA"]

QUICK_JAVA: Final = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""The environment of a program that starts Java. `pipeline_java` has the same for a session."""
