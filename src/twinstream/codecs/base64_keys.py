"""`Base64Keys`: keys of arbitrary text. Source: the codecs of orbit."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from twinstream.codecs.key_codec import WILDCARDS

__all__ = ["Base64Keys"]


class Base64Keys:
    """A codec for keys of arbitrary text. Tokens are stored in URL-safe base64 without padding."""

    def encode(self, key: str) -> str:
        """Return the stored key.

        Args:
            key: The key.
        """
        return ".".join(_to_base64(token) for token in key.split("."))

    def decode(self, key: str) -> str:
        """Return the application's key.

        Args:
            key: The key.
        """
        return ".".join(_from_base64(token) for token in key.split("."))

    def encode_filter(self, pattern: str) -> str:
        """Return the filter of stored keys. Wildcards stay unchanged.

        Args:
            pattern: A filter of keys, with `*` for a token and `>` for the rest.
        """
        tokens = pattern.split(".")
        return ".".join(token if token in WILDCARDS else _to_base64(token) for token in tokens)


def _to_base64(token: str) -> str:
    return urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def _from_base64(token: str) -> str:
    data = token.encode()
    found = urlsafe_b64decode(data + b"=" * (-len(data) % 4)).decode()
    # The decoder accepts several spellings of a key, but only one is that of the key.
    if _to_base64(found) != token:
        raise ValueError(f"{token!r} is not the base64 of a key")
    return found
