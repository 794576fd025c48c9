"""The error of a payload that does not fit the type of its handle."""

from __future__ import annotations

from typing import Self

from twinstream.errors.usage import BadPayload

__all__ = ["PayloadError"]


class PayloadError(BadPayload):
    """A payload does not fit the type that a typed handle expects.

    A codec raises `PayloadError(path, reason)`. The client then names the message: its stream,
    sequence and subject, or its bucket, key and revision. A retry cannot help: the payload itself
    must be corrected, or the type.

    What to do: Correct the program that published the payload, or the type.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path: str = path
        """The place in the payload, such as `$.items[2].price`; empty for the whole payload."""
        self.reason: str = reason
        """What does not fit."""
        self.type_name: str = ""
        """The name of the expected type."""
        self.stream_name: str | None = None
        """Name of the stream of the message, or None."""
        self.seq: int | None = None
        """Sequence of the message, or None."""
        self.subject: str | None = None
        """Subject of the message, or None."""
        self.bucket: str | None = None
        """Name of the bucket of the entry, or None."""
        self.key: str | None = None
        """Key of the entry, or None."""
        self.revision: int | None = None
        """Revision of the entry, or None."""
        super().__init__(self._text())

    def for_type(self, type_name: str) -> Self:
        """Name the expected type, unless it is named already; return the error.

        Args:
            type_name: Name of the expected type.
        """
        self.type_name = self.type_name or type_name
        return self._renewed()

    def in_message(self, subject: str, stream_name: str | None, seq: int | None) -> Self:
        """Name the message; return the error. Stream and sequence may be unknown.

        Args:
            subject: Subject of the message.
            stream_name: Name of the stream.
            seq: Sequence of the message.
        """
        self.subject, self.stream_name, self.seq = subject, stream_name, seq
        return self._renewed()

    def in_bucket(self, bucket: str, key: str, revision: int | None) -> Self:
        """Name the entry of a bucket; return the error.

        Args:
            bucket: Name of the bucket.
            key: Key of the entry.
            revision: Revision of the entry.
        """
        self.bucket, self.key, self.revision = bucket, key, revision
        return self._renewed()

    def _renewed(self) -> Self:
        self.args = (self._text(),)
        return self

    def _text(self) -> str:
        place = f" at {self.path}" if self.path else ""
        fits = f"the payload does not fit {self.type_name}" if self.type_name else "a bad payload"
        return f"{self._where()}{fits}{place}: {self.reason}"

    def _where(self) -> str:
        if self.bucket is not None:
            revision = "" if self.revision is None else f", revision {self.revision}"
            return f"bucket {self.bucket}, key {self.key!r}{revision}: "
        if self.subject is None:
            return ""
        stream = "" if self.stream_name is None else f"stream {self.stream_name}, seq {self.seq}, "
        return f"{stream}subject {self.subject}: "
