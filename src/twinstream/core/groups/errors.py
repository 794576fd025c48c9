"""Errors of partitioned consumer groups.

::

    TwinstreamError
    ├── GroupNotFound (LookupError)   no consumer group of that name
    ├── GroupExists                   the group exists with settings that cannot be changed
    ├── BadGroupConfig                what is stored about the group cannot be used
    └── GroupChanged                  settings changed that members cannot follow
"""

from __future__ import annotations

from twinstream.errors import TwinstreamError

__all__ = ["BadGroupConfig", "GroupChanged", "GroupExists", "GroupNotFound"]


class GroupNotFound(TwinstreamError, LookupError):
    """There is no consumer group of that name, or it was deleted."""


class GroupExists(TwinstreamError):
    """The consumer group exists with other settings, which cannot be changed."""


class BadGroupConfig(TwinstreamError):
    """The stored configuration of a consumer group is invalid; another client has written it."""


class GroupChanged(TwinstreamError):
    """Settings of a consumer group changed that its members cannot follow; start them again."""
