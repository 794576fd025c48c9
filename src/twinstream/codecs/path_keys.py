"""`PathKeys`: keys that are paths. Source: the codecs of orbit."""

from __future__ import annotations

from typing import Final

from twinstream.errors import BadArgument

__all__ = ["PathKeys"]

_ROOT: Final = "_root_"


class PathKeys:
    """A codec for keys that are paths, such as `/site/page`.

    Paths are stored with dots instead of slashes, so that wildcards match their parts. A trailing
    `/` is dropped. A key with a dot raises `BadArgument`, because the dot would be decoded to a
    slash.
    """

    def encode(self, key: str) -> str:
        """Return the stored key.

        Args:
            key: The key.
        """
        if "." in key:
            raise BadArgument(f"key {key!r} contains a dot, which PathKeys uses to store '/'")
        return self.encode_filter(key)

    def decode(self, key: str) -> str:
        """Return the application's key.

        Args:
            key: The key.
        """
        if key == _ROOT:
            return "/"
        parts = key.replace(".", "/")
        return parts.removeprefix(_ROOT) if parts.startswith(f"{_ROOT}/") else parts

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys.

        Args:
            pattern: A filter of keys, with `*` for a token and `>` for the rest.
        """
        if pattern == "/":
            return _ROOT
        stem = pattern.removesuffix("/")
        stem = f"{_ROOT}{stem}" if stem.startswith("/") else stem
        return stem.replace("/", ".")
