"""The entry point of the `twinstream` command."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command.

    If click or rich is missing, print how to install the extra `cli`, and exit with 1.
    """
    try:
        from twinstream.cli.groups import twinstream
    except KeyboardInterrupt:  # before the handler of the command is active
        sys.exit(_interrupted())
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f"twinstream: the command line needs {missing.name}, which is not installed; "
            "install Twinstream with its extra cli (in a clone: pip install '.[cli]')",
            file=sys.stderr,
        )
        sys.exit(1)
    _open_what_is_closed()
    _write_all()
    twinstream(prog_name="twinstream")


def _interrupted() -> str:
    """Return the message for an interrupt during the imports; JSON if `--json` is given."""
    from twinstream.cli.interrupts import asks_for_json

    as_json = '{"error":"interrupted","kind":"KeyboardInterrupt","err_code":null}'
    return as_json if asks_for_json(sys.argv[1:]) else "Aborted!"


def _open_what_is_closed() -> None:
    """Open the null device for each standard stream that the parent process closed.

    Otherwise the next file or socket would get the file descriptor of such a stream, and the output
    of the stream would be written to it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing != number:
            os.dup2(nothing, number)
            os.close(nothing)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _write_all() -> None:
    """Replace an unbuffered standard output by a buffered one.

    An unbuffered stream drops the rest of the data after a partial write, for example to a full
    disk, or to a pipe if a signal arrives. A buffered stream writes all data or raises an error.
    """
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        out = sys.stdout
        sys.stdout = open(  # noqa: SIM115
            out.fileno(), "w", encoding=out.encoding, errors=out.errors, closefd=False
        )
