"""An extension of Sphinx: methods and functions with a form for each twin, in one entry."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyFunction, PyMethod

__all__ = ["setup"]


class _Twin:
    """What the directives of both kinds add: `async` stands only before the asyncio form."""

    options: dict[str, Any]
    name: str

    def run(self) -> list[nodes.Node]:
        # Other projects resolve links by the inventory, which must list ordinary methods.
        self.name = self.name.replace("twin", "")
        return super().run()  # type: ignore[misc, no-any-return]

    def get_signature_prefix(self, sig: str) -> list[nodes.Node]:
        prefix: list[nodes.Node] = list(super().get_signature_prefix(sig))  # type: ignore[misc]
        if "coroutine" in self.options and not sig.startswith("js_sync."):
            prefix = [addnodes.desc_sig_keyword("", "async"), addnodes.desc_sig_space(), *prefix]
        return prefix


class TwinMethod(_Twin, PyMethod):
    """`py:twinmethod`."""

    option_spec = {**PyMethod.option_spec, "coroutine": directives.flag}


class TwinFunction(_Twin, PyFunction):
    """`py:twinfunction`."""

    option_spec = {**PyFunction.option_spec, "coroutine": directives.flag}


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive_to_domain("py", "twinmethod", TwinMethod)
    app.add_directive_to_domain("py", "twinfunction", TwinFunction)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
