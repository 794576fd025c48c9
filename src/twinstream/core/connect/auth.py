"""Credentials: what CONNECT says of the user, and the signature of the server's nonce.

Source: ADR-14 and nats-server's authentication; nkeys need the package `nkeys` (extra `nkeys`).
No secret appears in a repr, an error or a log: errors name the thing, never its content.
"""

from __future__ import annotations

import base64
import re
from importlib import import_module
from typing import Any, Final

from attrs import field, frozen

from twinstream.errors import AuthenticationFailed, BadArgument

__all__ = ["Credentials"]

_SECTION: Final = re.compile(
    r"-{3,}BEGIN (NATS USER JWT|USER NKEY SEED)-{3,}\s+(\S+)\s+-{3,}END \1-{3,}"
)


@frozen(kw_only=True)
class Credentials:
    """Who the client is: a user, a token, an nkey, or a JWT with its nkey."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    nkey_seed: str | None = field(default=None, repr=False)
    """The seed (`SU…`) whose key signs the server's nonce; never sent."""
    jwt: str | None = field(default=None, repr=False)
    """A user JWT; it needs the seed beside it, unless it is a bearer token."""

    def __attrs_post_init__(self) -> None:
        for what in ("user", "password", "token", "nkey_seed", "jwt"):
            value = getattr(self, what)
            if value is not None and not isinstance(value, str):
                # Not shown, as it may be a secret.
                raise BadArgument(f"{what} must be text, got {type(value).__name__}")
        if self.password is not None and self.user is None:
            raise BadArgument("a password needs a user")
        kinds = [self.token is not None, self.user is not None, self._has_key]
        if sum(kinds) > 1:
            raise BadArgument("give a user, a token or a key, not several of them")

    @property
    def _has_key(self) -> bool:
        return self.nkey_seed is not None or self.jwt is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, even if a server quotes it."""
        given = (self.password, self.token, self.nkey_seed, self.jwt)
        return tuple(each for each in given if each)

    @classmethod
    def parse(cls, text: str, name: str) -> Credentials:
        """Read the text of a credentials file (`nsc` writes them); `name` is for the error."""
        found = dict(_SECTION.findall(text))
        if "NATS USER JWT" not in found or "USER NKEY SEED" not in found:
            raise BadArgument(f"{name}: not a credentials file with a user JWT and an nkey seed")
        return cls(jwt=found["NATS USER JWT"], nkey_seed=found["USER NKEY SEED"])

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is said."""
        return self.user is None and self.token is None and not self._has_key

    def fields(self, nonce: str) -> dict[str, Any]:
        """Return the members of CONNECT, with `nonce` from INFO signed where a key is given."""
        fields: dict[str, Any] = {}
        if self.token is not None:
            fields["auth_token"] = self.token
        if self.user is not None:
            fields["user"] = self.user
            fields["pass"] = self.password or ""
        if self.jwt is not None:
            fields["jwt"] = self.jwt
        if self.nkey_seed is not None and nonce:
            public, signature = _sign(self.nkey_seed, nonce)
            fields["sig"] = signature
            if self.jwt is None:
                fields["nkey"] = public
        elif self.nkey_seed is not None and self.jwt is None:
            raise AuthenticationFailed("the server asks for no key: it sent no nonce to sign")
        return fields


def _sign(seed: str, nonce: str) -> tuple[str, str]:
    try:
        keys: Any = import_module("nkeys")
    except ImportError as error:
        raise BadArgument(
            "keys need the package nkeys: install Twinstream with its extra nkeys (in a clone: pip"
            " install '.[nkeys]')"
        ) from error
    try:
        pair: Any = keys.from_seed(bytearray(seed.strip().encode()))
        public = bytes(pair.public_key).decode()
        signature = base64.urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=").decode()
    except Exception as error:
        # The cause may quote the seed, so its kind alone is told.
        kind = type(error).__name__
        raise BadArgument(f"the nkey seed cannot be used ({kind}): is it a user seed?") from None
    pair.wipe()
    return public, signature
