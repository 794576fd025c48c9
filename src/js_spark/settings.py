"""How the source and the sink connect: picklable, and safe to print.

Secrets come as references (the name of an environment variable, read where the connection is
made) or inline under names that Spark redacts in plans and event logs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from js_core.errors import BadArgument
from js_core.servers import parse_servers
from js_core.subjects import ApiSubjects
from js_spark.errors import OptionError
from js_spark.options_map import OptionsMap

if TYPE_CHECKING:
    from js_sync import Connection

__all__ = ["ConnectionSettings"]

_PREFIX: Final = "nats."


def _hidden(_: object) -> str:
    return "'***'"


@frozen(kw_only=True)
class ConnectionSettings:
    """The ``nats.*`` options."""

    servers: str
    user: str | None = None
    password: str | None = field(default=None, repr=_hidden)
    token: str | None = field(default=None, repr=_hidden)
    password_env: str | None = None
    token_env: str | None = None
    name: str = "twinstream-spark"
    domain: str | None = None
    api_prefix: str | None = None
    request_timeout: float = 5.0
    """Seconds."""

    @classmethod
    def take(cls, options: OptionsMap) -> ConnectionSettings:
        """Take the ``nats.*`` options out of the map. Raises `OptionError`."""
        settings = cls(
            servers=_servers(options),
            user=options.text("nats.user"),
            password=options.text("nats.password"),
            token=options.text("nats.token"),
            password_env=options.text("nats.passwordEnv"),
            token_env=options.text("nats.tokenEnv"),
            name=options.text("nats.name") or "twinstream-spark",
            domain=options.text("nats.domain"),
            api_prefix=options.text("nats.apiPrefix"),
            request_timeout=options.integer("nats.requestTimeoutMs", 5000, least=1) / 1000,
        )
        settings._check()
        return settings

    def _check(self) -> None:
        if self.password is not None and self.password_env is not None:
            raise OptionError("nats.passwordEnv", "given besides nats.password; give one of them")
        if self.token is not None and self.token_env is not None:
            raise OptionError("nats.tokenEnv", "given besides nats.token; give one of them")
        has_token = self.token is not None or self.token_env is not None
        has_password = self.password is not None or self.password_env is not None
        if has_token and (self.user is not None or has_password):
            raise OptionError("nats.token", "given besides a user; the server takes one of them")
        if has_password and self.user is None:
            raise OptionError("nats.password", "needs nats.user beside it")
        try:
            self.subjects()
        except BadArgument as error:
            name = "nats.apiPrefix" if self.api_prefix else "nats.domain"
            raise OptionError(name, str(error)) from error

    def subjects(self) -> ApiSubjects:
        """Return the subjects of the JetStream API under the domain or prefix."""
        return ApiSubjects.of(domain=self.domain, prefix=self.api_prefix)

    def connect(self) -> Connection:
        """Return a new connection of this process.

        Raises `ConnectionFailed`, `AuthenticationFailed`, or `OptionError` when an environment
        variable that holds a secret is not set here.
        """
        import js_sync

        return js_sync.connect(
            self.servers,
            name=self.name,
            user=self.user,
            password=_secret(self.password, self.password_env, "nats.passwordEnv"),
            token=_secret(self.token, self.token_env, "nats.tokenEnv"),
            request_timeout=self.request_timeout,
        )


def _servers(options: OptionsMap) -> str:
    servers = options.text("nats.servers")
    if servers is None:
        raise OptionError("nats.servers", "is required, for example nats://127.0.0.1:4222")
    if "@" in servers:
        # Spark keeps option values in plans and event logs, so a secret must not be one of them.
        raise OptionError(
            "nats.servers",
            "may not hold user and password; give nats.user with nats.passwordEnv or nats.password",
        )
    try:
        parse_servers(servers)
    except BadArgument as error:
        raise OptionError("nats.servers", str(error)) from error
    return servers


def _secret(value: str | None, variable: str | None, option: str) -> str | None:
    if variable is None:
        return value
    found = os.environ.get(variable)
    if found is None:
        raise OptionError(option, f"environment variable {variable} is not set in this process")
    return found
