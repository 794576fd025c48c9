"""A folder of an object store, and the settings with which to reach it."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from attrs import evolve, field, frozen

__all__ = ["Encryption", "ObjectFolder", "StorageSettings"]

Encryption: TypeAlias = Literal["", "AES256", "aws:kms"]
"""How the server encrypts stored objects: as the bucket says, with its own keys, or with a key of
its key service."""

_URL: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.ASCII)
_PART: Final = re.compile(r"[A-Za-z0-9!_.*'()=-]+", re.ASCII)


@frozen(kw_only=True)
class StorageSettings:
    """The settings of a server that speaks S3. None is a secret, so tasks get them as they are.

    Without `access_key_env` and `profile`, the credentials are those that programs for S3 usually
    find: in `AWS_ACCESS_KEY_ID` and its companions, in the profile `AWS_PROFILE`, by the web
    identity of a container, or from the machine's role.
    """

    endpoint: str = ""
    """URL of the server; empty for that of Amazon."""
    region: str = ""
    access_key_env: str = ""
    """Name of the environment variable with the ID of the access key."""
    secret_key_env: str = ""
    """Name of the environment variable with the secret access key."""
    session_token_env: str = ""
    """Name of the environment variable with the token of a session; empty without a session."""
    profile: str = ""
    """Profile of the files that the tools for S3 share: `~/.aws/credentials` and `~/.aws/config`.
    They are read again before the credentials expire."""
    encryption: Encryption = ""
    kms_key: str = ""
    """The key of the key service, with `aws:kms`; empty for that of the bucket."""
    timeout: float = 30.0
    """Seconds until one request counts as failed."""
    lease: float = 30.0
    """Seconds for which a command that is gone keeps the lock of the tables."""


@frozen
class ObjectFolder:
    """The objects of a bucket whose keys begin with `prefix` and a slash."""

    bucket: str
    prefix: str = ""
    storage: StorageSettings = field(factory=StorageSettings)

    @classmethod
    def parse(cls, text: str, storage: StorageSettings) -> ObjectFolder:
        """Return the folder of a URL such as `s3://bucket/lake`.

        Raises `ValueError` for other text, and for names that some servers or readers change.
        """
        found = _URL.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a URL such as s3://bucket/lake")
        parts = [each for each in (found[2] or "").split("/") if each]
        for part in parts:
            if not _PART.fullmatch(part) or part in (".", ".."):
                raise ValueError(
                    f"{text!r} has a folder {part!r}; its letters, digits and signs must be of"
                    " A to Z, a to z, 0 to 9 and !_.*'()=-"
                )
        return cls(found[1], "/".join(parts), storage)

    @classmethod
    def all_buckets(cls, storage: StorageSettings) -> ObjectFolder:
        """Return the folder with all buckets of a server. Keys begin with the bucket's name."""
        return cls("", "", storage)

    def located(self, key: str) -> tuple[ObjectFolder, str]:
        """Return a folder in a bucket, and the key there, for a key of this folder."""
        if self.bucket:
            return self, key
        bucket, _, rest = key.partition("/")
        return evolve(self, bucket=bucket), rest

    @property
    def name(self) -> str:
        """The last part of the prefix, or the bucket's name."""
        return self.prefix.rpartition("/")[2] or self.bucket

    def __truediv__(self, key: str) -> ObjectFolder:
        """Return the folder with a key below this folder."""
        return evolve(self, prefix=f"{self.prefix}/{key}" if self.prefix else key)

    def __str__(self) -> str:
        return "s3://" + "/".join(part for part in (self.bucket, self.prefix) if part)
