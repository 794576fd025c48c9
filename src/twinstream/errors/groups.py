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
    """No consumer group of that name exists, or it was deleted.

    What to do: Create the group, or correct its name and that of the stream.
    """


class GroupExists(TwinstreamError):
    """The consumer group exists with other settings, which cannot be changed.

    What to do: Use the settings of the existing group, or delete it first.
    """


class InvalidGroupConfig(TwinstreamError):
    """The configuration of a consumer group that another client has stored is invalid.

    What to do: Delete the group with the program that stored it, and create it again.
    """


class GroupChanged(TwinstreamError):
    """A setting of a consumer group changed that running workers cannot apply: restart them.

    What to do: Restart the workers of the group.
    """
