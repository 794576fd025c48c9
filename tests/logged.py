"""The log records of the SDK during a test."""

from __future__ import annotations

import logging

import pytest

__all__ = ["levels", "raised", "texts"]


def levels(caplog: pytest.LogCaptureFixture, area: str) -> list[str]:
    """Return the levels of the records of an area."""
    return [each.levelname for each in caplog.records if each.name == f"twinstream.{area}"]


def texts(caplog: pytest.LogCaptureFixture, area: str, level: int = logging.DEBUG) -> list[str]:
    """Return the texts of an area's records of a level and above."""
    return [
        each.getMessage()
        for each in caplog.records
        if each.name == f"twinstream.{area}" and each.levelno >= level
    ]


def raised(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the texts about failed callbacks, including texts that repeat an earlier one."""
    return [each.getMessage() for each in caplog.records if " raised " in each.getMessage()]
