"""Sequences that servers store but do not return."""

from __future__ import annotations

from typing import Final

HIDDEN_FROM: Final = 1 << 62
"""The first sequence that the server does not return.

A file store (seen on servers 2.11 to 2.15) acknowledges messages from this sequence on and counts
them, but returns none of them: it uses this bit of the sequence for a mark.
"""
