"""Import attributes of a package on first access.

Most applications use no locks, backups or schedules, so the import of the package does not load
these features.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FrameType
from typing import Final

__all__ = ["on_demand"]

# Packages whose names readers look for in the twins.
_BESIDE: Final = ("twinstream.errors", "twinstream.models")

# Classes of nats-py and nats.go, with what means the same.
_MEANT: Final[Mapping[str, str]] = {
    "APIError": "'JetStreamError'",
    "BadRequestError": "'JetStreamError'",
    "Client": "'connect'",
    "ErrMsgAlreadyAckd": "'AlreadyAcknowledged'",
    "ErrMsgIteratorClosed": "'IterationEnded'",
    "ErrNoMessages": "'BatchEnd.NO_MESSAGES', the reason of a batch",
    "ErrNoStreamResponse": "'NoStream'",
    "ErrStreamNameAlreadyInUse": "'StreamExists'",
    "Error": "'TwinstreamError'",
    "JetStreamContext": "'JetStream'",
    "JetStreamManager": "'JetStream'",
    "KeyValueEntry": "'Entry'",
    "KeyWatcher": "'KeyValueWatch'",
    "Msg": "'Message'",
    "NATS": "'connect'",
    "NotFoundError": "'StreamNotFound', 'ConsumerNotFound' or 'MessageNotFound'",
    "OrderedConsumerConfig": "the arguments of Stream.ordered()",
    "RawStreamMsg": "'StreamMessage'",
    "TimeoutError": "'RequestTimeout'",
}


def on_demand(
    package: str, modules: Mapping[str, str], within: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `modules` maps names to their modules.

    The error for a missing name also looks into the packages `within` this one.
    """

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise missing(name, is_imported=_imports(sys._getframe(1)))
        value: object = getattr(import_module(module), name)
        # Python then finds the attribute itself and does not call this function again.
        setattr(sys.modules[package], name, value)
        return value

    def missing(name: str, *, is_imported: bool) -> Exception:
        advice = hint(name)
        # Python replaces an `AttributeError` in an import statement by an error without the hint.
        # Before that, it looks for a module of the package that is just being imported.
        if is_imported and advice and f"{package}.{name}" not in sys.modules:
            text = f"cannot import name {name!r} from {package!r}{advice}"
            return ImportError(text, name=package)
        return AttributeError(f"module {package!r} has no attribute {name!r}{advice}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    def hint(name: str) -> str:
        """Return where a missing name is, or the name that the caller probably means, or ""."""
        if name.startswith("_"):
            return ""
        from difflib import get_close_matches

        for other in (*_BESIDE, *(f"{package}.{each}" for each in within)):
            if name in import_module(other).__all__:
                return f": import it from {other}"
        if name in _MEANT:
            return f"; did you mean {_MEANT[name]}?"
        meant = name.removesuffix("Error")
        near = [meant] if meant in modules else get_close_matches(meant, modules, 1, 0.75)
        return f"; did you mean {near[0]!r}?" if near else ""

    return find, names


def _imports(frame: FrameType) -> bool:
    """Return whether a frame looks up a name for `from package import name`."""
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
