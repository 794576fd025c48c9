"""An operator, an account and a user for decentralised authentication."""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

import nkeys
from attrs import frozen


@frozen
class Operator:
    """A server's configuration, and the credentials file of a user that the server accepts."""

    config: str
    credentials: str


def make_operator(tiers: dict[str, dict[str, int]] | None = None) -> Operator:
    """Create keys and JWTs, each signed by its parent; `tiers` are the limits of JetStream."""
    operator, account, system, user = (
        _pair(kind)
        for kind in (
            nkeys.PREFIX_BYTE_OPERATOR,
            nkeys.PREFIX_BYTE_ACCOUNT,
            nkeys.PREFIX_BYTE_ACCOUNT,
            nkeys.PREFIX_BYTE_USER,
        )
    )
    no_limit = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    operator_jwt = _jwt(operator, operator, {"type": "operator", "version": 2})
    limits = {**no_limit, "wildcards": True}
    accounts = {
        _public(pair): _jwt(operator, pair, {"type": "account", "version": 2, "limits": given})
        for pair, given in ((account, {**limits, "tiered_limits": tiers or {}}), (system, limits))
    }
    preloaded = "\n".join(f"{key}: {jwt}" for key, jwt in accounts.items())
    user_claims = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
    user_jwt = _jwt(account, user, user_claims)
    config = f"""
        operator: {operator_jwt}
        resolver: MEMORY
        system_account: {_public(system)}
        resolver_preload: {{ {preloaded} }}
    """
    seed = bytes(user.seed).decode()
    credentials = (
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    return Operator(config, credentials)


@frozen
class Pair:
    """A user's key: the public key, which a server's configuration names, and the seed."""

    public: str
    seed: str


def make_pair() -> Pair:
    """Create the key of a user without a JWT."""
    pair = _pair(nkeys.PREFIX_BYTE_USER)
    return Pair(_public(pair), bytes(pair.seed).decode())


def _pair(kind: int) -> Any:
    return nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), kind)))


def _public(pair: Any) -> str:
    return bytes(pair.public_key).decode()


def _jwt(issuer: Any, subject: Any, nats: dict[str, Any]) -> str:
    claims = {
        "jti": _encoded(os.urandom(16)),
        "iat": int(time.time()),
        "iss": _public(issuer),
        "name": "test",
        "sub": _public(subject),
        "nats": nats,
    }
    header = _encoded(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    body = _encoded(json.dumps(claims).encode())
    signature = issuer.sign(f"{header}.{body}".encode())
    return f"{header}.{body}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
