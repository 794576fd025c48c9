"""Options of the `nats` command that have another name here, and misspelled options."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

import click

from twinstream.cli.help.foreign_names import similar

__all__ = ["IN_NATS", "NO_ARGUMENT", "options_advised"]

# For an option without a counterpart here, so that no option of a similar name is suggested.
_NOTHING: Final = ""

_FILE: Final = "`twinstream apply FILE`, with the setting in the file"
_VIEW: Final = "--json, which a pipe can translate"

# The new settings of a stream, consumer, bucket or store.
_SETTINGS: Final = {"--config": "`twinstream apply FILE`"}
_ADDED: Final = {
    **_SETTINGS,
    "--output": "--export",
    "--validate": "`twinstream validate FILE`",
}
_EDITED: Final = {
    **_SETTINGS,
    "--interactive": "--dry-run, which shows the changes",
    "-i": "--dry-run, which shows the changes",
}
_STREAM: Final[dict[str, str]] = dict.fromkeys(
    (
        "--allow-fast",
        "--allow-mirror-direct",
        "--first-sequence",
        "--limit-consumer-inactive",
        "--limit-consumer-max-pending",
        "--no-mirror",
        "--no-republish",
        "--no-transform",
        "--persist-mode",
        "--republish-destination",
        "--republish-headers",
        "--republish-source",
        "--subject-del-markers-ttl",
        "--transform-destination",
        "--transform-source",
    ),
    _FILE,
)
_CONSUMER: Final = {
    **dict.fromkeys(
        ("--overflow-groups", "--pinned-groups", "--pinned-ttl", "--prioritized-groups"), _FILE
    ),
    "--backoff-max": "--backoff, with each wait",
    "--backoff-min": "--backoff, with each wait",
    "--backoff-steps": "--backoff, with each wait",
    "--bps": _FILE,
    "--max-outstanding": "--max-pending",
    "--pause": "`twinstream consumer pause`",
}
_SCHEDULED: Final = {
    f"--schedule-{option}": f"`twinstream schedule add {here}`"
    for option, here in {
        "after": "--in",
        "at": "--at",
        "cron": "--cron",
        "dest": "STREAM SUBJECT DESTINATION",
        "every": "--every",
        "source": "--source",
        "ttl": "--ttl",
    }.items()
}
_REPORTED: Final = {
    "--raw": "a pipe, where numbers are plain",
    "-r": "a pipe, where numbers are plain",
}
_LED: Final = {"--preferred": "--prefer"}
_CONSUMED: Final = {
    "--deliver-group": "`twinstream sub SUBJECT --queue GROUP`",
    "--raw": "`twinstream consumer next --raw`",
    "-r": "`twinstream consumer next --raw`",
    "--translate": _VIEW,
}

# Options of all commands.
_OF_ALL: Final = {
    "--context": "--server and --creds, or the variable TWINSTREAM_URL",
    "--js-api-prefix": "--prefix",
    "--js-domain": "--domain",
    "--jwt": "--creds",
    "--seed": "--nkey",
    "--tlsca": "--tls-ca",
    "--tlscert": "--tls-cert",
    "--tlsfirst": "--tls-first",
    "--tlskey": "--tls-key",
    "--trace": "-vv before the command",
    "--verbose": "-v before the command",
    "-j": "--json",
    "-v": "-v before the command",
}

IN_NATS: Final = MappingProxyType[str, Mapping[str, str]](
    {
        "consume": _CONSUMED,
        "consumer add": _CONSUMER | _ADDED,
        "consumer edit": _CONSUMER | _EDITED,
        "consumer next": {"--translate": _VIEW},
        "consumer report": {
            **_REPORTED,
            "--leaders": "`twinstream consumer info`",
            "-l": "`twinstream consumer info`",
        },
        "consumer reset": {"--sequence": "--seq"},
        "consumer step-down": _LED,
        "consumer sub": _CONSUMED,
        "get": {
            "--id": "--from SEQ",
            "--last-for": "--last SUBJECT",
            "--page": "--count N, and --from SEQ for the next ones",
            "--page-size": "--count N, and --from SEQ for the next ones",
            "--start-seq": "--from SEQ",
            "--start-sequence": "--from SEQ",
            "--translate": _VIEW,
            "-S": "--last SUBJECT",
        },
        "kv add": {"--no-mirror": "`twinstream kv edit --no-mirror`"},
        "kv ls": {"--values": "--display-value"},
        "kv watch": {"--deletes": "the default; --no-deletes omits them"},
        "pub": {
            **_SCHEDULED,
            "--atomic": _NOTHING,
            "--force-stdin": "the default without DATA: standard input is read",
            "--jetstream": "the default: the stream acknowledges each message",
            "--quiet": "a redirection to /dev/null",
            "--reply": _NOTHING,
            "--send-on": "--lines or --nul",
            "--sleep": "--rate N",
            "--templates": "the default in arguments, where {n} is the number of the message;"
            " in files and standard input --template",
            "-J": "the default: the stream acknowledges each message",
            "-q": "a redirection to /dev/null",
        },
        "reply": {"--command": _NOTHING, "--sleep": _NOTHING, "-q": "--queue"},
        "req": {
            "--count": _NOTHING,
            "--force-stdin": 'the argument DATA, such as "$(cat)"',
            "--templates": _NOTHING,
            "--translate": _VIEW,
            "--wait": "--timeout",
            "--wait-for-empty": _NOTHING,
            "-w": "--timeout",
        },
        "stream add": _STREAM | _ADDED,
        "stream copy": _STREAM,
        "stream edit": _STREAM | _EDITED,
        "stream find": {
            **dict.fromkeys(("--cluster", "--expression", "--leader", "--server-name"), _NOTHING),
            "--subject": "`twinstream stream ls --subject FILTER`",
        },
        "stream info": {"--state": "--json, its member state"},
        "stream purge": {"--seq": "--before SEQ", "--sequence": "--before SEQ"},
        "stream report": {
            **_REPORTED,
            "--cluster": _NOTHING,
            "--consumers": "--sort consumers",
            "--leaders": "`twinstream stream info`",
            "--messages": "--sort messages",
            "--name": "--sort name",
            "--subject": "`twinstream stream ls --subject FILTER`",
            "-l": "`twinstream stream info`",
            "-m": "--sort messages",
            "-n": "--sort name",
            "-o": "--sort consumers",
        },
        "stream step-down": _LED,
        "stream subjects": {"--names": "a pipe, where the names are the first column"},
        "sub": {
            **dict.fromkeys(("--graph", "--ignore-subject", "--inbox", "-I", "-i"), _NOTHING),
            "--ack": "`twinstream consume STREAM CONSUMER --ack`",
            "--all": "`twinstream consume STREAM --from all`",
            "--delta-time": "--timestamp",
            "--direct": "`twinstream get STREAM`",
            "--durable": "`twinstream consume STREAM CONSUMER --create`",
            "--headers-only": "--json, its member headers",
            "--last": "`twinstream consume STREAM --from last`",
            "--last-per-subject": "`twinstream get STREAM --each`",
            "--new": "`twinstream consume STREAM --from new`",
            "--report-subjects": "`twinstream stream subjects STREAM`",
            "--since": "`twinstream consume STREAM --since AGE`",
            "--start-sequence": "`twinstream consume STREAM --from SEQ`",
            "--stream": "`twinstream consume STREAM`",
            "--terminate-at-end": "`twinstream get STREAM`",
            "--translate": _VIEW,
            "-T": "`twinstream get STREAM`",
            "-d": "--timestamp",
        },
    }
)
"""By command, options of the `nats` command that do not exist here, and what does the same.

The text is empty if nothing does.
"""

NO_ARGUMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "get": "A sequence is given by --seq, a number of messages by --count,"
        " and the first of them by --from."
    }
)
"""By command, what to try if there are more arguments than it has."""

# How similar the names of two options are at least, without their dashes.
_SIMILAR: Final = 0.75


@contextmanager
def options_advised(path: str, command: click.Command) -> Generator[None]:
    """Within the block, let the error for an unknown option say what to try.

    Args:
        path: The names of the command after `twinstream`; empty for `twinstream` itself.
        command: The command whose arguments are parsed.
    """
    try:
        yield
    except click.NoSuchOption as error:
        known = [name for each in command.params for name in (*each.opts, *each.secondary_opts)]
        name = error.option_name
        text = f"No such option '{name}'. {_advice(path, name, known)}".rstrip()
        raise click.NoSuchOption(name, text, ctx=error.ctx) from None


def _advice(path: str, name: str, known: Iterable[str]) -> str:
    """Return what to try instead of an unknown option; empty if nothing is similar."""
    here = IN_NATS.get(path, {}).get(name, _OF_ALL.get(name))
    if here is not None:
        return f"Here it is: {here}." if here else "Nothing does the same here."
    if not name.startswith("--"):
        return ""
    names = (each.removeprefix("--") for each in known if each.startswith("--"))
    near = similar(name.removeprefix("--"), sorted(names), _SIMILAR)
    return f"Did you mean {' or '.join(f'--{each}' for each in near)}?" if near else ""
