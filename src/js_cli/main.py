"""The entry point of the ``twinstream`` command and its table of subcommands."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without the extra ``cli``, say how to get it."""
    try:
        from js_cli.groups import twinstream
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f"twinstream: the command line needs {missing.name}, which is not installed; "
            "install it with: pip install 'twinstream[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    twinstream(prog_name="twinstream")


if __name__ == "__main__":
    main()
