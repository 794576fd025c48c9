"""Errors of locks, semaphores and elections."""

from __future__ import annotations

from twinstream.errors.base import TwinstreamError

__all__ = ["LeaseLost"]


class LeaseLost(TwinstreamError):
    """The client no longer has a lock, a semaphore slot or the leadership.

    The message contains the reason.

    What to do: Stop the work that the lock protects, and acquire it again.
    """
