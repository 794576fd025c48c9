"""User credentials for CONNECT, and the signature of the server's nonce.

Source: ADR-14 and nats-server's authentication. Nkeys need the package `nkeys` (extra `nkeys`).
Secrets never appear in a repr, an error or a log. Errors name the setting, but not its value.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from attrs import field, frozen

from twinstream.errors import AuthenticationFailed, BadArgument
from twinstream.models.codec.settings import Settings

__all__ = ["Credentials"]

_SECTION: Final = r"-{3,}BEGIN (NATS USER JWT|USER NKEY SEED)-{3,}\s+(\S+)\s+-{3,}END \1-{3,}"


@frozen(kw_only=True)
class Credentials(Settings):
    """The credentials of a client: a user, a token, an nkey, a JWT with its nkey, or a bearer JWT.

    Raises `BadArgument` for a value that is not text, for a password without a user, and for
    several kinds of credentials at once.
    """

    user: str | None = None
    """Name of a user."""
    password: str | None = field(default=None, repr=False)
    """Password of the user."""
    token: str | None = field(default=None, repr=False)
    """Token, instead of a user."""
    nkey_seed: str | None = field(default=None, repr=False)
    """The seed (`SU…`) of the key that signs the server's nonce. The client never sends it."""
    jwt: str | None = field(default=None, repr=False)
    """A user JWT. It needs `nkey_seed` as well, unless it is a bearer token."""

    def __attrs_post_init__(self) -> None:
        for what in ("user", "password", "token", "nkey_seed", "jwt"):
            value = getattr(self, what)
            if value is not None and not isinstance(value, str):
                # The value is not shown, as it may be a secret.
                raise BadArgument(f"{what} must be text, got {type(value).__name__}")
        if self.password is not None and self.user is None:
            raise BadArgument("a password needs a user")
        kinds = [self.token is not None, self.user is not None, self._has_key]
        if sum(kinds) > 1:
            raise BadArgument("pass a user, a token or a key, not several of them")

    @property
    def _has_key(self) -> bool:
        return self.nkey_seed is not None or self.jwt is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Password, token, seed and JWT, as far as they are set.

        They must be masked in all texts, since a server may quote them in an error.
        """
        given = (self.password, self.token, self.nkey_seed, self.jwt)
        return tuple(each for each in given if each)

    @classmethod
    def parse(cls, text: str, name: str) -> Credentials:
        """Parse the text of a credentials file, as written by `nsc`.

        Raises `BadArgument` unless it contains a user JWT and an nkey seed. `name` is used in the
        error message.

        Args:
            text: The text of the file.
            name: What the error message calls the text.
        """
        found = dict(re.findall(_SECTION, text))
        if "NATS USER JWT" not in found or "USER NKEY SEED" not in found:
            raise BadArgument(f"{name}: not a credentials file with a user JWT and an nkey seed")
        return cls(jwt=found["NATS USER JWT"], nkey_seed=found["USER NKEY SEED"])

    @property
    def is_empty(self) -> bool:
        """Whether no credentials are set."""
        return self.user is None and self.token is None and not self._has_key

    def fields(self, nonce: str) -> dict[str, Any]:
        """Return the members of CONNECT for the credentials.

        `nonce` is the text that the server sent in INFO, empty if it sent none. With `nkey_seed`,
        the members include the signature of the nonce. Raises `AuthenticationFailed` for an nkey
        without a JWT if there is no nonce. Raises `BadArgument` if the package `nkeys` is missing
        or the seed is invalid.
        """
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
            raise AuthenticationFailed("the server sent no nonce, so it accepts no nkey")
        return fields


def _sign(seed: str, nonce: str) -> tuple[str, str]:
    """Return the public key of an nkey seed, and the signature of the server's nonce in base64."""
    try:
        keys: Any = import_module("nkeys")
    except ImportError as error:
        raise BadArgument(
            "nkey authentication needs the package nkeys: install Twinstream with its extra nkeys"
            " (in a clone: pip install '.[nkeys]')"
        ) from error
    import base64

    try:
        pair: Any = keys.from_seed(bytearray(seed.strip().encode()))
        public = bytes(pair.public_key).decode()
        signature = base64.urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=").decode()
    except Exception as error:
        # The original error may quote the seed, so only its type is shown.
        kind = type(error).__name__
        raise BadArgument(f"the nkey seed cannot be used ({kind}): is it a user seed?") from None
    pair.wipe()
    return public, signature
