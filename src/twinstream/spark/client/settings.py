"""The connection settings of the source and the sink.

They can be pickled, and `repr` hides the secrets. A user can give a secret in two ways:

- as a reference: the option names an environment variable or a file. The process that connects
  reads the variable or file. `allow_list` restricts the names.
- inline: the option contains the secret. The option's name matches the pattern by which Spark
  redacts values in plans and event logs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from twinstream.core.client.auth import Credentials
from twinstream.core.client.server_pool import parse_servers
from twinstream.core.client.tls import TlsOptions
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.errors import BadArgument
from twinstream.spark.client.allow_list import CREDENTIALS, PEM, check_file, check_variable
from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.client.retry import through
from twinstream.spark.errors import OptionError

if TYPE_CHECKING:
    from js_sync import Connection

__all__ = ["ConnectionSettings"]

# Seconds for which a task retries to connect, long enough for a restart of the server.
_AWAY: Final = 5.0
# Rounds of attempts to reconnect, after which a task fails and Spark repeats it.
_ROUNDS: Final = 60


def _hidden(_: object) -> str:
    return "'***'"


@frozen(kw_only=True)
class ConnectionSettings:
    """The `nats.*` options."""

    servers: str
    user: str | None = None
    password: str | None = field(default=None, repr=_hidden)
    token: str | None = field(default=None, repr=_hidden)
    password_env: str | None = None
    token_env: str | None = None
    credentials_file: str | None = None
    """The path of a credentials file of `nsc`. Every executor must have the file."""
    credentials_env: str | None = None
    """The name of an environment variable with the contents of a credentials file."""
    credentials: str | None = field(default=None, repr=_hidden)
    nkey_seed_env: str | None = None
    nkey_seed: str | None = field(default=None, repr=_hidden)
    tls: TlsOptions | None = None
    name: str = "twinstream-spark"
    domain: str | None = None
    api_prefix: str | None = None
    request_timeout: float = 5.0
    """The maximum number of seconds to wait for the response to a request."""

    @classmethod
    def take(cls, options: OptionsMap) -> ConnectionSettings:
        """Return the settings of the `nats.*` options.

        Raises `OptionError` for an invalid option.
        """
        settings = cls(
            servers=_servers(options),
            user=options.text("nats.user"),
            password=options.text("nats.password"),
            token=options.text("nats.token"),
            password_env=_variable(options, "nats.passwordEnv"),
            token_env=_variable(options, "nats.tokenEnv"),
            credentials_file=_file(options, "nats.credentialsFile", CREDENTIALS),
            credentials_env=_variable(options, "nats.credentialsEnv"),
            credentials=options.text("nats.secretCredentials"),
            nkey_seed_env=_variable(options, "nats.nkeySeedEnv"),
            nkey_seed=options.text("nats.secretNkeySeed"),
            tls=_tls(options),
            name=options.text("nats.name") or "twinstream-spark",
            domain=options.text("nats.domain"),
            api_prefix=options.text("nats.apiPrefix"),
            request_timeout=options.integer("nats.requestTimeoutMs", 5000, least=1) / 1000,
        )
        settings._check()
        return settings

    def _check(self) -> None:
        """Raise `OptionError` if options contradict each other, or give no valid API subjects."""
        given = self._given_names()
        _refuse_combinations(given)
        if self.user is None and given & {"nats.password", "nats.passwordEnv"}:
            raise OptionError("nats.password", "needs nats.user")
        try:
            self.subjects()
        except BadArgument as error:
            name = "nats.apiPrefix" if self.api_prefix else "nats.domain"
            raise OptionError(name, str(error)) from error

    def _given_names(self) -> set[str]:
        """Return the names of the options with credentials that have a value."""
        values = {
            "nats.user": self.user,
            "nats.password": self.password,
            "nats.passwordEnv": self.password_env,
            "nats.token": self.token,
            "nats.tokenEnv": self.token_env,
            "nats.credentialsFile": self.credentials_file,
            "nats.credentialsEnv": self.credentials_env,
            "nats.secretCredentials": self.credentials,
            "nats.nkeySeedEnv": self.nkey_seed_env,
            "nats.secretNkeySeed": self.nkey_seed,
        }
        return {name for name, value in values.items() if value is not None}

    def subjects(self) -> ApiSubjects:
        """Return the subjects of the JetStream API, with the configured domain or prefix."""
        return ApiSubjects.of(domain=self.domain, prefix=self.api_prefix)

    def connect(self) -> Connection:
        """Open and return a new connection.

        Raises `ConnectionFailed` or `AuthenticationFailed`, and `OptionError` if an environment
        variable with a secret is not set in this process.
        """
        import js_sync

        found = self._credentials()
        return js_sync.connect(
            self.servers,
            name=self.name,
            credentials=None if found is None else lambda: found,
            credentials_file=self.credentials_file,
            tls=self.tls,
            request_timeout=self.request_timeout,
            reconnect=js_sync.ReconnectPolicy(attempts=_ROUNDS),
        )

    def connect_in_task(self, most: float) -> Connection:
        """Open and return a new connection for a task.

        If a server cannot be reached, connecting is retried for up to five seconds, but not longer
        than `most` seconds. Spark repeats a failed task without a pause. So without these
        retries, all attempts of the task would fail before a server has restarted.
        """
        return through(self.connect, min(most, _AWAY))

    def _credentials(self) -> Credentials | None:
        text = _secret(self.credentials, self.credentials_env, "nats.credentialsEnv")
        if text is not None:
            name = self.credentials_env or "nats.secretCredentials"
            return Credentials.parse(text, name)
        found = Credentials(
            user=self.user,
            password=_secret(self.password, self.password_env, "nats.passwordEnv"),
            token=_secret(self.token, self.token_env, "nats.tokenEnv"),
            nkey_seed=_secret(self.nkey_seed, self.nkey_seed_env, "nats.nkeySeedEnv"),
        )
        return None if found.is_empty else found


def _refuse_combinations(given: set[str]) -> None:
    """Raise `OptionError` for two options that give the same secret, or two ways to log in."""
    ways: dict[str, tuple[str, ...]] = {
        "a user": ("nats.user",),
        "a token": ("nats.token", "nats.tokenEnv"),
        "credentials": (
            "nats.credentialsFile",
            "nats.credentialsEnv",
            "nats.secretCredentials",
        ),
        "an nkey": ("nats.nkeySeedEnv", "nats.secretNkeySeed"),
    }
    # A password is no way of its own: it belongs to the user.
    used: list[tuple[str, str]] = []
    for way, names in {**ways, "a password": ("nats.password", "nats.passwordEnv")}.items():
        present = [name for name in names if name in given]
        if len(present) > 1:
            raise OptionError(present[1], f"cannot be combined with {present[0]}; give one of them")
        used += [(way, name) for name in present if way in ways]
    if len(used) > 1:
        (way, _), (_, name) = used[0], used[1]
        raise OptionError(name, f"cannot be combined with {way}; the server accepts one of them")


def _servers(options: OptionsMap) -> str:
    """Return the URLs of the servers as they were given, after a check.

    Raises `OptionError` if they are missing, invalid, or contain a user.
    """
    servers = options.text("nats.servers")
    if servers is None:
        raise OptionError("nats.servers", "is required, for example nats://127.0.0.1:4222")
    if "@" in servers:
        # Spark stores option values in plans and event logs, so they must not contain a secret.
        raise OptionError(
            "nats.servers",
            "may not contain a user and password; give nats.user with nats.passwordEnv or"
            " nats.password",
        )
    try:
        parse_servers(servers)
    except BadArgument as error:
        raise OptionError("nats.servers", str(error)) from error
    return servers


def _variable(options: OptionsMap, option: str) -> str | None:
    name = options.text(option)
    if name is not None:
        check_variable(option, name)
    return name


def _file(options: OptionsMap, option: str, endings: tuple[str, ...]) -> str | None:
    path = options.text(option)
    if path is not None:
        check_file(option, path, endings)
    return path


def _secret(value: str | None, variable: str | None, option: str) -> str | None:
    if variable is None:
        return value
    found = os.environ.get(variable)
    if found is None:
        raise OptionError(option, f"environment variable {variable} is not set in this process")
    return found


def _tls(options: OptionsMap) -> TlsOptions | None:
    """Return the TLS options, or `None` if none is set.

    With `None`, the connection uses TLS only if the URL or the server requires it.
    """
    ca, cert, key = (_file(options, f"nats.tls.{each}File", PEM) for each in ("ca", "cert", "key"))
    server = options.text("nats.tls.serverName")
    first = options.boolean("nats.tls.firstHandshake", False)
    if key is not None and cert is None:
        raise OptionError("nats.tls.keyFile", "needs nats.tls.certFile")
    if not first and all(each is None for each in (ca, cert, server)):
        return None
    return TlsOptions(
        ca_file=ca, cert_file=cert, key_file=key, server_name=server, handshake_first=first
    )
