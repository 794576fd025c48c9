"""The pages of the reference."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from codegen.site.advisories import advisory_page
from codegen.site.entries import Named, entry
from codegen.site.error_codes import error_code_page
from codegen.site.error_texts import error_text_page
from codegen.site.log_records import log_record_page
from codegen.site.options import option_pages
from codegen.site.public_names import PACKAGES, public_objects
from codegen.site.settings import setting_pages

__all__ = ["pages"]

_HEAD: Final = ".. Made from the sources by codegen/site.\n\n"
_TITLES: Final = {
    "client": "The client",
    "packages": "Packages above the client",
    "models": "Models",
    "other": "Other modules",
}
_INTRODUCTION: Final = {
    "client": "Programs import these names from `js_sync` or `js_async`. Both have the same methods"
    " and arguments; those of `js_async` are awaited.",
    "packages": "Each package exists in both twins, above the public names of the client.",
    "models": "Typed models of JetStream's API, advisories, metrics and configurations, by area.",
    "other": "Modules that both twins share.",
}


def pages() -> dict[str, str]:
    """Return the texts of the pages by their paths below the folder of the reference."""
    chosen: dict[str, list[Named]] = defaultdict(list)
    for named in public_objects():
        chosen[_path(named)].append(named)
    found = {f"{path}.rst": _page(path, objects) for path, objects in chosen.items()}
    for part in _TITLES:
        inside = sorted(path for path in chosen if path.startswith(f"{part}/"))
        found[f"{part}/index.rst"] = _index(part, [Path(path).name for path in inside])
    found["index.rst"] = _front()
    found |= setting_pages() | option_pages()
    found["error-codes.md"] = error_code_page()
    found["error-texts.md"] = error_text_page()
    found["advisories.md"] = advisory_page()
    found["log-records.md"] = log_record_page()
    return found


def _path(named: Named) -> str:
    """Return the page of an object, without its suffix."""
    full, value = next(iter(named.items()))
    module, _, name = full.rpartition(".")
    home = str(getattr(value, "__module__", ""))
    if isinstance(value, type) and issubclass(value, BaseException):
        return "errors"
    if home.startswith("twinstream.models"):
        area = home.removeprefix("twinstream.models.").removeprefix("generated.")
        return f"models/{area.replace('.', '-')}" if "generated" in home else "models/functions"
    package = module.partition(".")[2]
    if module.startswith("js_") and package in PACKAGES:
        return f"packages/{package}"
    if module.startswith("js_"):
        is_handle = isinstance(value, type) and home.startswith("js_")
        return f"client/{name}" if is_handle else f"client/{_kind(value)}"
    return f"other/{package}"


def _kind(value: Any) -> str:
    return "functions" if inspect.isfunction(value) else "records"


def _page(path: str, objects: list[Named]) -> str:
    title = _title(path)
    body = "".join(entry(each) for each in sorted(objects, key=_name))
    return f"{_HEAD}{title}\n{'=' * len(title)}\n\n{body}"


def _title(path: str) -> str:
    part, _, name = path.partition("/")
    if path == "errors":
        return "Errors"
    if part == "models":
        return f"Models: {name.replace('-', ' ')}"
    if part == "other":
        return f"twinstream.{name}"
    return name


def _name(named: Named) -> str:
    return next(iter(named)).rpartition(".")[2]


def _index(part: str, names: list[str]) -> str:
    title = _TITLES[part]
    listed = "".join(f"   {name}\n" for name in names)
    return (
        f"{_HEAD}{title}\n{'=' * len(title)}\n\n{_INTRODUCTION[part]}\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}"
    )


def _front() -> str:
    listed = "".join(f"   {each}/index\n" for each in _TITLES)
    return (
        f"{_HEAD}Reference\n=========\n\nEvery public name, setting, option, error, advisory and"
        " log record. All of it is made from the sources.\n\n"
        f".. toctree::\n   :maxdepth: 1\n   :caption: Names\n\n   ../api\n{listed}   errors\n\n"
        ".. toctree::\n   :maxdepth: 1\n   :caption: Settings and options\n\n   settings/index\n"
        "   ../command\n   spark-read\n   spark-write\n   pipeline\n   ../configuration\n\n"
        ".. toctree::\n   :maxdepth: 1\n   :caption: What is reported\n\n   error-codes\n"
        "   error-texts\n   advisories\n   log-records\n   ../events\n   ../logging\n"
        "   ../server-faults\n"
    )
