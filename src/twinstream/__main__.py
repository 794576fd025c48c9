"""``python -m twinstream`` runs the command."""

from __future__ import annotations

from twinstream.cli.main import main

if __name__ == "__main__":
    main()
