"""INFO, CONNECT, credentials and options: what is read and sent, and that no secret is shown."""

from __future__ import annotations

import base64
import pickle
import sys
from typing import Any

import nkeys
import pytest

from twinstream import errors
from twinstream.core.client.auth import Credentials
from twinstream.core.client.handshake import (
    Denied,
    ServerInfo,
    connect_fields,
    read_denied,
    server_error,
    url_credentials,
    without_secrets,
)
from twinstream.core.client.options import ConnectOptions
from twinstream.core.client.server_pool import ServerAddress
from twinstream.core.client.tls import TlsOptions
from twinstream.errors import AuthenticationFailed, BadArgument, ProtocolError

SEED = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER).decode()
FILE = f"""-----BEGIN NATS USER JWT-----
abc.def.ghi
------END NATS USER JWT------

************************* IMPORTANT *************************
-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""


def test_info_is_read() -> None:
    raw = {
        "server_id": "A",
        "server_name": "n",
        "version": "2.14.3-beta",
        "max_payload": 99,
        "headers": True,
        "jetstream": True,
        "domain": "hub",
        "connect_urls": ["a:1"],
        "ldm": True,
        "nonce": "x",
        "other": 1,
    }
    info = ServerInfo.read(raw)
    assert info.raw is raw
    assert (info.version_numbers, info.max_payload, info.domain) == ((2, 14, 3), 99, "hub")
    assert (info.connect_urls, info.lame_duck, info.nonce) == (("a:1",), True, "x")


def test_an_info_without_members() -> None:
    info = ServerInfo.read({"connect_urls": None})
    assert (info.version_numbers, info.max_payload, info.connect_urls) == ((0, 0, 0), 1 << 20, ())
    assert ServerInfo.read({"version": "devel"}).version_numbers == (0, 0, 0)


@pytest.mark.parametrize("member", [{"max_payload": "x"}, {"client_id": []}, {"connect_urls": 5}])
def test_an_info_of_a_wrong_type(member: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="wrong type"):
        ServerInfo.read(member)


def test_options_of_connect() -> None:
    fields = connect_fields("worker", Credentials(user="ann", password="s"), "")
    assert fields["headers"] is True
    assert fields["no_responders"] is True
    assert (fields["name"], fields["user"], fields["pass"]) == ("worker", "ann", "s")
    assert "name" not in connect_fields(None, Credentials(), "")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"user": "ann"}, {"user": "ann", "pass": ""}),
        ({"user": "ann", "password": "s"}, {"user": "ann", "pass": "s"}),
        ({"token": "t"}, {"auth_token": "t"}),
        ({"jwt": "j"}, {"jwt": "j"}),
    ],
)
def test_credentials_become_members_of_connect(
    given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    credentials = Credentials(**given)
    assert credentials.fields("nonce") == wanted
    assert credentials.is_empty is (not given)


@pytest.mark.parametrize(
    "given",
    [
        {"password": "s3cret"},
        {"user": "ann", "token": "s3cret"},
        {"token": "s3cret", "jwt": "j"},
        {"user": "ann", "nkey_seed": "s3cret"},
    ],
)
def test_credentials_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(BadArgument) as caught:
        Credentials(**given)
    assert "s3cret" not in str(caught.value)


def test_a_key_signs_the_nonce() -> None:
    fields = Credentials(nkey_seed=SEED).fields("nonce")
    pair = nkeys.from_seed(bytearray(SEED.encode()))
    assert fields["nkey"] == pair.public_key.decode()
    signature = base64.urlsafe_b64decode(fields["sig"] + "==")
    assert pair.verify(b"nonce", signature)
    assert set(Credentials(nkey_seed=SEED, jwt="j").fields("nonce")) == {"jwt", "sig"}
    with pytest.raises(AuthenticationFailed, match="no nonce"):
        Credentials(nkey_seed=SEED).fields("")


def test_a_broken_seed_is_not_shown() -> None:
    with pytest.raises(BadArgument, match="cannot be used") as caught:
        Credentials(nkey_seed="SUs3cret").fields("nonce")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nkeys", None)
    with pytest.raises(BadArgument, match=r"pip install '\.\[nkeys\]'"):
        Credentials(nkey_seed=SEED).fields("nonce")


def test_a_credentials_file() -> None:
    credentials = Credentials.parse(FILE, "user.creds")
    assert (credentials.jwt, credentials.nkey_seed) == ("abc.def.ghi", SEED)
    for broken in ("", FILE.replace("SEED", "SAAT"), FILE.split("****")[0]):
        with pytest.raises(BadArgument, match=r"user\.creds: not a credentials file"):
            Credentials.parse(broken, "user.creds")


def test_user_info_of_a_url() -> None:
    parse = ServerAddress.parse
    assert url_credentials(parse("nats://ann:s@h")) == Credentials(user="ann", password="s")
    assert url_credentials(parse("nats://t@h")) == Credentials(token="t")
    assert url_credentials(parse("nats://h")).is_empty


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Permissions Violation for Publish to "a"', errors.PermissionDenied),
        ("Authorization Violation", errors.AuthenticationFailed),
        ("User Authentication Expired", errors.AuthenticationFailed),
        ("Stale Connection", errors.ServerError),
    ],
)
def test_errors_of_the_server(text: str, kind: type[Exception]) -> None:
    assert type(server_error(text)) is kind
    assert str(server_error(text)).partition(";")[0] == text


SHARED = Denied(False, b"a", b"q")


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ('Permissions Violation for Publish to "a.b"', Denied(True, b"a.b")),
        ('Permissions Violation for Publish with Reply of "$JS.ACK.x"', Denied(True, b"$JS.ACK.x")),
        ('Permissions Violation for Subscription to "a.*"', Denied(False, b"a.*")),
        (
            'Permissions Violation for Subscription to "a" using queue "q"',
            Denied(False, b"a", b"q"),
        ),
        (r'Permissions Violation for Publish to "a.\"b\\c"', Denied(True, b'a."b\\c')),
        (
            r'Permissions Violation for Subscription to "a.\u00a0\v" using queue "\x1f\xff"',
            Denied(False, "a.\xa0\v".encode(), b"\x1f\xff"),
        ),
        (
            r'Permissions Violation for Publish to "\U000e0001\ud800"',
            Denied(True, "\U000e0001�".encode()),
        ),
        ("maximum subscriptions exceeded", Denied(False, b"")),
        ("Stale Connection", None),
    ],
)
def test_what_was_denied(text: str, denied: Denied | None) -> None:
    assert read_denied(text) == denied


def options(**given: Any) -> ConnectOptions:
    return ConnectOptions(**{"servers": "127.0.0.1", **given})


def test_options_pickle_and_hide_secrets() -> None:
    made = ConnectOptions(
        servers="nats://ann:s3cret@h",
        credentials=Credentials(user="ann", password="s3cret"),
        tls=TlsOptions(cert_file="c", key_file="k", key_password="s3cret"),
    )
    assert "s3cret" not in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"credentials": Credentials(token="t"), "credentials_file": "f"}, "not both"),
        ({"credentials": Credentials, "credentials_file": "f"}, "not both"),
        ({"ping_interval": 0}, "above 0"),
        ({"connect_timeout": 0}, "above 0"),
        ({"request_timeout": -1}, "request_timeout must be .* >= 0"),
        ({"connect_timeout": "5"}, "connect_timeout must be a number of seconds"),
        ({"ping_interval": -1}, "ping_interval must be .* >= 0"),
        ({"reconnect": True}, "reconnect must be a ReconnectPolicy or None, got True"),
        ({"tls": True}, "tls must be a TlsOptions or None"),
        ({"name": 5}, "name must be text or None, got 5"),
        ({"credentials": "me.creds"}, "credentials must be a function .*, got str"),
        ({"credentials_file": 5}, "credentials_file must be a path or None, got 5"),
        ({"servers": None}, "servers must be a URL or a list of them, got NoneType"),
        ({"servers": ["nats://a", 5]}, "servers must be URLs, got int in the list"),
        ({"servers": b"nats://a"}, "servers must be a URL or a list of them, got bytes"),
        ({"inbox_prefix": "a b"}, "inbox_prefix: subject 'a b' contains white space"),
        ({"inbox_prefix": "a.>"}, "inbox_prefix: .* wildcard"),
        ({"inbox_prefix": None}, "inbox_prefix: .* must be text, got None"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        options(**given)


@pytest.mark.parametrize("what", ["user", "token", "nkey_seed", "jwt"])
def test_credentials_are_text_and_not_shown(what: str) -> None:
    given: dict[str, Any] = {what: b"s3cret"}
    with pytest.raises(BadArgument, match=f"{what} must be text, got bytes") as caught:
        Credentials(**given)
    assert "s3cret" not in str(caught.value)


def test_a_tls_key_without_its_certificate_is_refused() -> None:
    with pytest.raises(BadArgument, match="key_file needs cert_file"):
        TlsOptions(key_file="k")


@pytest.mark.parametrize(
    "text",
    [
        'Unknown Protocol Operation: CONNECT {"user":"ann","pass":"s3cr',
        'parser error at \'connect{"auth_token":"s3cret"}\'',
        "Authorization Violation for ann:s3cret",
        'Authorization Violation for s3\\u00e4\\"cret',
        'Authorization Violation for s3ä"cret',
    ],
)
def test_a_refusal_that_quotes_a_secret_is_shown_without_it(text: str) -> None:
    secrets = (*Credentials(user="ann", password="s3cret").secrets, 's3ä"cret')
    shown = without_secrets(text, secrets)
    assert "s3" not in shown
    assert "***" in shown
    error = server_error(text, secrets)
    assert str(error) == shown
    assert isinstance(error, AuthenticationFailed) == text.startswith("Authorization")


def test_short_secrets_do_not_garble_a_refusal() -> None:
    error = server_error("Authorization Violation", Credentials(token="a").secrets)
    assert isinstance(error, AuthenticationFailed)
    assert str(error) == "Authorization Violation"
    assert Credentials(nkey_seed="SU", jwt="j").secrets == ("SU", "j")
    assert Credentials().secrets == ()
