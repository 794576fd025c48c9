"""Pictures of the built site, to look at: `python -m codegen.site.screenshots`.

They show what a test cannot judge: the front page, the reference, a search, and a phone. Chromium
draws them without a window, from the files in build/site, so `make docs` comes first. It gets them
over HTTP, because a search reads pages for its excerpts, which browsers refuse for files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

__all__ = ["PICTURES", "take"]

_BUILD: Final = Path(__file__).parents[2] / "build"
_DESK: Final = (1280, 900)
_PHONE: Final = (390, 844)
PICTURES: Final[dict[str, tuple[str, tuple[int, int], bool]]] = {
    "front": ("index.html", _DESK, False),
    "front-dark": ("index.html", _DESK, True),
    "tutorial": ("tutorial.html", _DESK, False),
    "reference": ("reference/index.html", _DESK, False),
    "class": ("reference/client/Consumer.html", _DESK, False),
    "settings": ("reference/settings/consumer.html", _DESK, False),
    "errors": ("reference/error-codes.html", _DESK, False),
    "search": ("search.html?q=ack_wait", _DESK, False),
    "search-error": ("search.html?q=wrong+last+sequence", _DESK, False),
    "phone-front": ("index.html", _PHONE, False),
    "phone-class": ("reference/client/Consumer.html", _PHONE, False),
    "phone-settings": ("reference/settings/stream.html", _PHONE, False),
}
"""The page, the size in pixels, and whether it is dark, by the name of the picture."""
# A frame may be narrower than the narrowest window.
_FRAME: Final = """<!doctype html><style>body {{ margin: 0 }} iframe {{ border: 0 }}</style>
<iframe src="{url}" width="{width}" height="{height}"></iframe>
"""
# Milliseconds of the page's own clock: the search loads its index and shows results meanwhile.
_TIME: Final = 15_000


def take(site: Path, folder: Path) -> list[Path]:
    """Draw each picture into a folder, and return their paths."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise SystemExit("chromium is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    with _served(site) as address:
        return [
            _draw(program, f"{address}/{page}", size, folder / f"{name}.png", is_dark=is_dark)
            for name, (page, size, is_dark) in PICTURES.items()
        ]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print no line for each request."""


@contextmanager
def _served(site: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine, and yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _draw(program: str, url: str, size: tuple[int, int], target: Path, *, is_dark: bool) -> Path:
    width, height = size
    with tempfile.TemporaryDirectory() as profile:
        frame = Path(profile) / "frame.html"
        frame.write_text(_FRAME.format(url=url, width=width, height=height))
        options = [
            *("--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"),
            *(f"--window-size={width},{height}", f"--virtual-time-budget={_TIME}"),
            *(["--force-dark-mode"] if is_dark else []),
            f"--screenshot={target}",
        ]
        subprocess.run(
            [program, *options, frame.as_uri()], check=True, capture_output=True, timeout=120
        )
    return target


def main() -> int:
    """Draw the pictures into build/screenshots, and print their paths."""
    if not (_BUILD / "site" / "index.html").exists():
        print("there is no site; run `make docs` first", file=sys.stderr)
        return 1
    for path in take(_BUILD / "site", _BUILD / "screenshots"):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
