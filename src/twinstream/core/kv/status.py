"""The status of a bucket, as reported by the server for its stream."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.kv.config import key_value_config
from twinstream.models import KeyValueConfig, StreamInfo, StreamSourceInfo

__all__ = ["KeyValueStatus", "key_value_status"]


@hint_attributes
@frozen
class KeyValueStatus:
    """The settings and the state of a bucket, as of one request."""

    config: KeyValueConfig
    """The settings of the bucket, including the server's defaults."""
    info: StreamInfo
    """The info of the bucket's stream."""

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.config.bucket

    @property
    def values(self) -> int:
        """The number of stored revisions, including older values and markers."""
        return self.info.state.messages

    @property
    def bytes(self) -> int:
        """The number of stored bytes."""
        return self.info.state.bytes

    @property
    def last_revision(self) -> int:
        """The last revision in the bucket, over all keys; 0 before the first write."""
        return self.info.state.last_seq

    @property
    def is_compressed(self) -> bool:
        """Whether file storage is compressed."""
        return bool(self.config.compression)

    @property
    def has_key_ttl(self) -> bool:
        """Whether a write may set a TTL for its key."""
        return bool(self.info.config.allow_msg_ttl)

    @property
    def mirror(self) -> StreamSourceInfo | None:
        """The state of the replication from the origin; None if the bucket is not a mirror."""
        return self.info.mirror


def key_value_status(info: StreamInfo) -> KeyValueStatus:
    """Return the status of the bucket in a stream. Raises `NotABucket` for another stream."""
    return KeyValueStatus(key_value_config(info.config), info)
