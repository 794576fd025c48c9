"""Find the credentials for an object store, and renew those that expire.

The programs that get credentials from a company's own service, or for a role, are not part of this
package. A profile names such a program (`credential_process`), which prints the credentials and
when they expire. The tools of all vendors agree on this form.
"""

from __future__ import annotations

import configparser
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

from attrs import field, frozen

from twinstream.lake.errors import StorageUnusable
from twinstream.lake.objects.folder import StorageSettings

__all__ = ["Credentials", "Renewed", "credentials_of", "environment_variable"]

# The longest time before the expiry at which credentials are renewed. Credentials that live shortly
# are renewed after half of their life.
_AHEAD: Final = timedelta(minutes=5)

# Seconds until a program that prints credentials is ended.
_PATIENCE: Final = 60.0

# Settings of profiles with which other tools ask a service for credentials.
_SERVICES: Final = ("role_arn", "sso_session", "sso_start_url", "web_identity_token_file")


@frozen
class Credentials:
    """An access key, and with temporary credentials a token and their end."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires: datetime | None = None


class Renewed:
    """Credentials that are read again before they expire. Threads may share an object."""

    def __init__(
        self,
        read: Callable[[], Credentials],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._read: Final = read
        self._now: Final = now
        self._lock: Final = threading.Lock()
        self._found: Credentials | None = None
        self._until: datetime | None = None

    def current(self) -> Credentials:
        """Return credentials that do not expire soon.

        Raises `StorageUnusable` if there are none. Credentials without an end are read at each
        call, because another program may replace them.
        """
        with self._lock:
            now = self._now()
            if self._found is None or self._until is None or now >= self._until:
                self._found = self._read()
                self._until = _renewal(now, self._found.expires)
            return self._found


def _renewal(now: datetime, expires: datetime | None) -> datetime | None:
    return None if expires is None else expires - min(_AHEAD, (expires - now) / 2)


def credentials_of(storage: StorageSettings) -> Renewed | None:
    """Return the credentials that the settings name.

    Return `None` if they name none, so that the clients look for credentials by themselves.
    """
    if storage.access_key_env:
        return Renewed(lambda: _environment_credentials(storage))
    has_key = "AWS_ACCESS_KEY_ID" in os.environ
    profile = storage.profile or ("" if has_key else os.environ.get("AWS_PROFILE", ""))
    return Renewed(lambda: _profile_credentials(profile)) if profile else None


def _environment_credentials(storage: StorageSettings) -> Credentials:
    token = storage.session_token_env
    return Credentials(
        _variable(storage.access_key_env),
        _variable(storage.secret_key_env),
        _variable(token) if token else None,
    )


def _variable(name: str) -> str:
    return environment_variable(
        name, "[storage]", "the pipeline, and with Spark on a cluster also for the executors"
    )


def environment_variable(name: str, section: str, program: str) -> str:
    """Return the value of a variable that a section of the file names.

    Raises `StorageUnusable` if it is not set. `program` says for which programs to set it.
    """
    value = os.environ.get(name)
    if not value:
        raise StorageUnusable(
            f"the environment variable {name}, which {section} names, is not set; set it for"
            f" {program}"
        )
    return value


def _profile_credentials(profile: str) -> Credentials:
    """Return the credentials that a profile has, or that its program prints.

    Raises `StorageUnusable` for a profile without either, which names what the profile has instead.
    """
    found = _profile_settings(profile)
    if "credential_process" in found:
        return _process_credentials(profile, found["credential_process"])
    try:
        return Credentials(
            found["aws_access_key_id"],
            found["aws_secret_access_key"],
            found.get("aws_session_token"),
        )
    except KeyError as missing:
        reason = f"has no {missing.args[0]}"
        service = next((each for each in _SERVICES if each in found), None)
        if service is not None:
            reason = f"asks a service for them ({service}), which is not supported"
        raise StorageUnusable(
            f"the profile {profile} has no credentials for S3: it {reason}; add a"
            " credential_process that prints them, such as: aws configure export-credentials"
            " --profile NAME --format process"
        ) from None


def _profile_settings(profile: str) -> dict[str, str]:
    """Return the settings of a profile in both files. The file with credentials counts first."""
    found: dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        file = Path(os.environ.get(variable) or Path.home() / ".aws" / name)
        parser = configparser.RawConfigParser(default_section="\0")
        try:
            parser.read(file, "utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError) as error:
            raise StorageUnusable(
                f"the file {file} with the profile {profile} cannot be read:"
                f" {type(error).__name__}; correct it, or name another profile"
            ) from None  # the text of the error may have a key in it
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if not found:
        raise StorageUnusable(
            f"there is no profile {profile} in ~/.aws/credentials or ~/.aws/config (or in the files"
            " that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name); add it, or name another"
        )
    return found


def _process_credentials(profile: str, command: str) -> Credentials:
    """Return the credentials that the program of a profile prints as JSON."""
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, timeout=_PATIENCE, check=True
        )
        value = cast("dict[str, Any]", json.loads(done.stdout))
        end = value.get("Expiration")
        return Credentials(
            str(value["AccessKeyId"]),
            str(value["SecretAccessKey"]),
            value.get("SessionToken"),
            None if end is None else _time(str(end)),
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, AttributeError) as error:
        code = getattr(error, "returncode", None)
        reason = type(error).__name__ if code is None else f"exit code {code}"
        raise StorageUnusable(
            f"the credential_process of the profile {profile} printed no credentials ({reason});"
            " run it by hand to see why"
        ) from None  # the output has keys


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
