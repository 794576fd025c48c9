"""The common options for the server: TLS, keys, and errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import nkeys
import pytest

from tests.certificates import make_certificates
from tests.cli.output import Run
from twinstream.testing import NatsServer

Factory = Callable[..., NatsServer]


@pytest.mark.parametrize("first", [False, True], ids=["upgrade", "first"])
def test_tls_with_certificates_of_both_sides(
    run: Run, server_factory: Factory, tmp_path: Path, first: bool
) -> None:
    files = make_certificates(tmp_path)
    server = server_factory(
        f"""tls {{
            cert_file: "{files.server}", key_file: "{files.server_key}"
            ca_file: "{files.authority}", verify: true, handshake_first: {str(first).lower()}
        }}"""
    )
    command = ["stream", "ls", "--server", server.url, "--timeout", "5"]
    trusting = [*command, "--tls-ca", files.authority, *(["--tls-first"] if first else [])]
    shown = ["--tls-cert", files.client, "--tls-key", files.client_key]
    assert run(*trusting, *shown).stdout == ""

    nameless = run(*trusting)
    assert (nameless.exit_code, nameless.stdout) == (1, "")
    assert "the options are --tls-ca, --tls-cert and --tls-key" in nameless.stderr
    keyed = run(*trusting, "--tls-key", files.client_key)
    assert keyed.exit_code == 2
    assert "--tls-key needs --tls-cert" in keyed.stderr


def test_a_server_that_is_not_trusted_is_no_server_that_is_down(
    run: Run, server_factory: Factory, tmp_path: Path
) -> None:
    files = make_certificates(tmp_path)
    server = server_factory(
        f'tls {{ cert_file: "{files.server}", key_file: "{files.server_key}" }}'
    )
    result = run("stream", "ls", "--server", server.url)
    assert result.exit_code == 1
    assert "--tls-ca" in result.stderr
    assert "sets another address" not in result.stderr


def test_nkey_is_read_from_a_file(run: Run, server_factory: Factory, tmp_path: Path) -> None:
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
    public = nkeys.from_seed(bytearray(seed.encode())).public_key.decode()
    server = server_factory(f"authorization {{ users = [{{nkey: {public}}}] }}")
    file = tmp_path / "user.nk"
    command = ["stream", "ls", "--server", server.url]
    for text in (seed, f"{seed}\n", f"# the key of the shop\n{seed}\n"):
        file.write_text(text)
        assert run(*command, "--nkey", str(file)).stdout == ""
    without = run(*command)
    assert without.exit_code == 1
    assert "no credentials were given" in without.stderr
    assert "--creds or --nkey" in without.stderr


def test_file_without_a_seed_is_named_in_the_error(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "user.der"
    file.write_bytes(b"\xff\xfe")
    result = run("stream", "ls", "--nkey", str(file))
    assert result.exit_code == 1
    assert f"{file} contains no nkey seed" in result.stderr


OTHER_SEED = nkeys.encode_seed(bytes(32), nkeys.PREFIX_BYTE_ACCOUNT).decode()


@pytest.mark.parametrize("text", ["", "# my key\n", "hello\n", OTHER_SEED])
def test_a_file_without_a_users_seed_is_named(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "user.nk"
    file.write_text(text)
    result = run("stream", "ls", "--nkey", str(file))
    assert result.exit_code == 1
    assert f"{file} contains no seed of a user's nkey" in result.stderr
    assert "SU is expected" in result.stderr
    assert OTHER_SEED not in result.stderr


def test_missing_permission_for_a_listing_is_reported(run: Run, server_factory: Factory) -> None:
    user = 'user: bob, password: b, permissions: {publish: ["orders.>"], subscribe: [">"]}'
    server = server_factory(f"authorization {{ users: [{{{user}}}] }}")
    login = ["--server", server.url, "--user", "bob", "--password", "b"]
    result = run("stream", "ls", *login)
    assert result.exit_code == 1
    assert "STREAM.LIST" in result.stderr
    assert "`twinstream permissions` prints what a program needs" in result.stderr


def test_no_hint_about_credentials_if_some_were_given(run: Run, server_factory: Factory) -> None:
    with server_factory("authorization {user: ann, password: secret}") as server:
        refused = run("stream", "ls", "-s", server.url, "--user", "ann", "--password", "wrong")
        assert refused.exit_code == 1
        assert "give credentials" not in refused.stderr
        assert "check the credentials in the options" in refused.stderr
        without = run("stream", "ls", "-s", server.url)
        assert "give credentials with --user" in without.stderr
