"""Errors of partitioned consumer groups.

::

    TwinstreamError
    ├── GroupNotFound (LookupError)   no consumer group of that name
    ├── GroupExists                   the group exists with settings that cannot be changed
    ├── InvalidGroupConfig                the stored configuration is invalid
    └── GroupChanged                  settings changed that running workers cannot apply
"""

from __future__ import annotations

from twinstream.errors.base import TwinstreamError

__all__ = ["GroupChanged", "GroupExists", "GroupNotFound", "InvalidGroupConfig"]


class GroupNotFound(TwinstreamError, LookupError):
    """No consumer group of that name exists, or it was deleted."""


class GroupExists(TwinstreamError):
    """The consumer group exists with other settings, which cannot be changed."""


class InvalidGroupConfig(TwinstreamError):
    """The configuration of a consumer group that another client has stored is invalid."""


class GroupChanged(TwinstreamError):
    """A setting of a consumer group changed that running workers cannot apply: restart them."""
