"""Sequences that servers count but do not show."""

from __future__ import annotations

from typing import Final

HIDDEN_FROM: Final = 1 << 62
"""The first such sequence.

A file store (seen on servers 2.11 to 2.15) acknowledges messages from here on, counts them and
returns none of them: it keeps a mark of its own in that bit of the sequence.
"""
