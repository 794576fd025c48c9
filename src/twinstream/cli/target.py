"""The options for the connection to a server, which many commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import field, fields_dict, frozen
from click.core import ParameterSource

from twinstream.cli.failures import JSON_ASKED, Failure
from twinstream.cli.help.connection_option import ConnectionOption
from twinstream.cli.option_types import Seconds
from twinstream.models.files.bounded_read import SMALL, read_small_text

if TYPE_CHECKING:
    from js_sync import Connection, JetStream, TlsOptions

DEFAULT_SERVER: Final = "nats://127.0.0.1:4222"
# The key in `click.Context.meta` for the options for the server before the command.
_BEFORE: Final = "twinstream.cli.before"

SERVER_VARIABLES: Final = ["TWINSTREAM_URL", "NATS_URL"]

# Rounds of attempts to reconnect, after which a command that does not keep trying fails.
_ROUNDS: Final = 60
# A line that contains only the seed. Other lines may be comments, or markers that nsc writes.
_SEED: Final = re.compile(r"^\s*(SU[A-Z2-7]{56})\s*$", re.MULTILINE)


@frozen(kw_only=True)
class Target:
    """The values of the options for the server.

    `timeout` (seconds) applies to connecting and to each request.
    """

    server: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    credentials_file: str | None = None
    nkey_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_first: bool = False
    timeout: float = 5.0
    domain: str | None = None
    prefix: str | None = None
    inbox_prefix: str = "_INBOX"

    def connect(self, *, keep_trying: bool = False) -> Connection:
        """Open a connection, which the caller must close.

        With `keep_trying`, the number of attempts to reconnect is unlimited.
        """
        import js_sync

        return js_sync.connect(
            self.server,
            name="twinstream",
            user=self.user,
            password=self.password,
            token=self.token,
            credentials_file=self.credentials_file,
            nkey_seed=_seed(self.nkey_file),
            tls=self._tls(),
            connect_timeout=self.timeout,
            inbox_prefix=self.inbox_prefix,
            reconnect=js_sync.ReconnectPolicy(attempts=-1 if keep_trying else _ROUNDS),
        )

    def _tls(self) -> TlsOptions | None:
        """Return the TLS settings; None if no TLS option is given.

        For None, the URL and the server determine whether TLS is used.
        """
        from js_sync import TlsOptions

        if not (self.tls_ca or self.tls_cert or self.tls_first):
            return None
        return TlsOptions(
            ca_file=self.tls_ca,
            cert_file=self.tls_cert,
            key_file=self.tls_key,
            handshake_first=self.tls_first,
        )

    def jetstream(self, nc: Connection) -> JetStream:
        """Return the JetStream context with the domain, prefix and timeout from the options."""
        return nc.jetstream(domain=self.domain, prefix=self.prefix, timeout=self.timeout)


def _seed(file: str | None) -> str | None:
    """Return the nkey seed of a user in a file, or None without a file."""
    if file is None:
        return None
    try:
        found = _SEED.search(read_small_text(file, SMALL))
    except UnicodeDecodeError:
        # Omit the cause: it contains the text of the file, which may be a secret.
        raise Failure(f"{file} contains no nkey seed, because it is not text") from None
    if found is None:
        raise Failure(
            f"{file} contains no seed of a user's nkey: a line of 58 letters and digits that begins"
            " with SU is expected. nsc writes such files; for a file with a JWT use --creds"
        )
    return found[1]


_FIELDS: Final = tuple(fields_dict(Target))
_option = functools.partial(click.option, cls=ConnectionOption)
_OPTIONS: Final = (
    _option(
        "--server",
        "-s",
        envvar=SERVER_VARIABLES,
        default=DEFAULT_SERVER,
        metavar="URL",
        show_default=True,
        show_envvar=True,
        help="Address of the server, or several with commas.",
    ),
    *(
        _option(
            f"--{name}",
            envvar=f"TWINSTREAM_{name.upper()}",
            metavar="TEXT",
            show_envvar=True,
            help=text,
        )
        for name, text in (
            ("user", "User to log in as."),
            ("password", "Password of the user."),
            ("token", "Token to log in with, instead of a user."),
        )
    ),
    *(
        _option(
            f"--{name}",
            field_name,
            type=click.Path(exists=True, dir_okay=False),
            envvar=f"TWINSTREAM_{name.upper().replace('-', '_')}",
            metavar="FILE",
            show_envvar=True,
            help=text,
        )
        for name, field_name, text in (
            ("creds", "credentials_file", "File with JWT and key, as nsc writes it."),
            ("nkey", "nkey_file", "File with the seed of a user's nkey."),
            ("tls-ca", "tls_ca", "Authorities to trust (PEM), if not the system's."),
            ("tls-cert", "tls_cert", "Certificate to show to the server (PEM)."),
            ("tls-key", "tls_key", "Key of that certificate, if it is in another file."),
        )
    ),
    _option(
        "--tls-first",
        is_flag=True,
        envvar="TWINSTREAM_TLS_FIRST",
        show_envvar=True,
        help="Begin with TLS, as required by handshake_first of the server.",
    ),
    _option(
        "--timeout",
        type=Seconds(min=0, min_open=True),
        default="5s",
        show_default=True,
        metavar="DURATION",
        help="How long each request may take.",
    ),
    _option("--domain", metavar="NAME", help="JetStream domain, if not that of the server."),
    _option(
        "--prefix", metavar="SUBJECT", help="API prefix, if $JS.API is imported under another one."
    ),
    _option(
        "--inbox-prefix",
        default="_INBOX",
        metavar="SUBJECT",
        show_default=True,
        help="Prefix of the subjects for responses.",
    ),
)


def server_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for the server to a command, which gets a `Target` as `target`."""

    @functools.wraps(command)
    def with_target(*args: Any, **options: Any) -> object:
        for name in _FIELDS:
            del options[name]
        target = target_of(click.get_current_context())
        if target.tls_key and not target.tls_cert:
            raise click.UsageError("--tls-key needs --tls-cert")
        return command(*args, target=target, **options)

    decorated: Callable[..., object] = with_target
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def target_of(ctx: click.Context, *, timeout: float | None = None) -> Target:
    """Return the server of a command line. `timeout` replaces the one of the command line.

    An option after the command comes first, then one before the command, then the environment,
    then the default. A context of the `nats` command would stand before the environment.
    """
    values: dict[str, Any] = {
        name: ctx.params[name] for name in _FIELDS if ctx.params.get(name) is not None
    }
    before = ctx.meta.get(_BEFORE, {})
    for name in _FIELDS:
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE and name in before:
            values[name] = before[name]
    if timeout is not None:
        values["timeout"] = timeout
    values.setdefault("server", DEFAULT_SERVER)
    return Target(**values)


def options_before(group: click.Group) -> click.Group:
    """Let a group accept the options for the server, too, before the command."""
    for option in _OPTIONS:
        option(group)
    for param in group.params:
        if isinstance(param, ConnectionOption):
            param.hidden = True  # the pages of commands show them
            param.expose_value = False
            param.callback = _note_before
    return group


def _note_before(ctx: click.Context, option: click.Parameter, value: object) -> object:
    name = option.name or ""
    if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        ctx.meta.setdefault(_BEFORE, {})[name] = value
    return value


def server_before(ctx: click.Context) -> str | None:
    """Return the server that was given before the command; None if there was none."""
    server: str | None = ctx.meta.get(_BEFORE, {}).get("server")
    return server


def _note_json(ctx: click.Context, _: click.Parameter, as_json: bool) -> bool:
    ctx.meta[JSON_ASKED] = as_json  # `Failure` reads it, and then prints errors as JSON
    return as_json


json_option: Final = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,  # parsed first, because the format of errors of other options depends on it
    callback=_note_json,
    help="Print only JSON.",
)
