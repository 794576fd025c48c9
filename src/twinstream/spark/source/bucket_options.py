"""The options of a read of a key-value bucket.

Options of stream reads that a bucket read cannot have are refused.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from twinstream.core.kv.names import PREFIX, check_filter_of_keys, stream_of
from twinstream.core.wire.subject_match import widest
from twinstream.errors import BadArgument
from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.errors import OptionError

__all__ = ["BucketOptions"]

_OWN: Final = ("keys", "history", "deletes")
_OF_STREAMS: Final = {
    "stream": "the bucket's name is enough",
    "subscribe": "the bucket's name is enough",
    "subscribePattern": "the bucket's name is enough",
    "subject": "give filters of keys by the option keys",
    "payloads": "give the schema of its values by the option jsonSchema",
}


@frozen(kw_only=True)
class BucketOptions:
    """The name of the key-value bucket to read, and the selection of its keys and revisions."""

    name: str
    keys: tuple[str, ...] = ()
    """The key filters. A filter is omitted if another filter covers it. Without filters, all keys
    are read."""
    history: bool = False
    """Whether a batch query reads all stored revisions, not only the last revision of each key."""
    deletes: bool = True
    """Whether a read returns rows for the markers of deleted, purged and expired keys."""
    prefix: str = ""
    """The part of a stored subject that precedes the key. A mirror has the prefix of its origin, so
    `located` requests the prefix from the server."""

    @classmethod
    def take(cls, given: OptionsMap) -> BucketOptions | None:
        """Return the bucket's options, or `None` without the option `bucket`.

        Raises `OptionError` for an invalid option, for an option that cannot be combined with
        `bucket`, and for `keys`, `history` or `deletes` without `bucket`.
        """
        name = given.text("bucket")
        if name is None:
            for option in _OWN:
                if given.text(option) is not None:
                    raise OptionError(option, "needs the option bucket: it is for key-value reads")
            return None
        for option, instead in _OF_STREAMS.items():
            if given.text(option) is not None:
                raise OptionError(option, f"cannot be combined with bucket; {instead}")
        try:
            stream_of(name)
        except BadArgument as error:
            raise OptionError("bucket", str(error)) from error
        return cls(
            name=name,
            keys=_keys(given),
            history=given.boolean("history", False),
            deletes=given.boolean("deletes", True),
        )

    @property
    def stream(self) -> str:
        """The name of the bucket's stream."""
        return stream_of(self.name)

    def subjects(self, prefix: str) -> tuple[str, ...]:
        """Return the subject filters: `prefix` with each key filter, or `>` for all keys."""
        return tuple(prefix + each for each in self.keys or (">",))

    def missing(self, error: Exception) -> OptionError:
        """Return the error for a bucket that does not exist."""
        hint = ""
        if self.name.startswith(PREFIX):
            hint = f"; {self.name!r} looks like a stream, whose bucket is without {PREFIX}"
        return OptionError("bucket", f"there is no bucket {self.name!r} ({error}){hint}")


def _keys(given: OptionsMap) -> tuple[str, ...]:
    keys = given.names("keys")
    for each in keys:
        try:
            check_filter_of_keys(each)
        except BadArgument as error:
            raise OptionError("keys", str(error)) from error
    return widest(keys)
