"""What a bucket is like, as the server says of its stream."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.kv.config import key_value_config
from twinstream.models import KeyValueConfig, StreamInfo, StreamSourceInfo

__all__ = ["KeyValueStatus"]


@frozen
class KeyValueStatus:
    """Settings and state of a bucket at one moment."""

    config: KeyValueConfig
    """Its settings, with the server's defaults."""
    info: StreamInfo
    """All that the server says of the stream underneath."""

    @classmethod
    def of(cls, info: StreamInfo) -> KeyValueStatus:
        """Return the status of the bucket that a stream holds. Raises `NotABucket`."""
        return cls(key_value_config(info.config), info)

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.config.bucket

    @property
    def values(self) -> int:
        """How many revisions are stored: values of the history and markers, too."""
        return self.info.state.messages

    @property
    def bytes(self) -> int:
        """How many bytes are stored."""
        return self.info.state.bytes

    @property
    def last_revision(self) -> int:
        """The last revision of any key; 0 before the first."""
        return self.info.state.last_seq

    @property
    def is_compressed(self) -> bool:
        """Whether file storage is compressed."""
        return bool(self.config.compression)

    @property
    def has_key_ttl(self) -> bool:
        """Whether keys may have a TTL of their own."""
        return bool(self.info.config.allow_msg_ttl)

    @property
    def mirror(self) -> StreamSourceInfo | None:
        """How far it has come as a mirror; None for a bucket that is none."""
        return self.info.mirror
