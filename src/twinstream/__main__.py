"""Run the `twinstream` command with `python -m twinstream`."""

from __future__ import annotations

from twinstream.cli.main import main

if __name__ == "__main__":
    main()
