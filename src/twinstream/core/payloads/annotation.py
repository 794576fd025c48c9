"""The type in the annotation of a handler: `Message[Order]` means payloads of type `Order`."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_origin, get_type_hints

from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["handled_payloads"]

_ADVICE: Final = (
    "import or define its names at the top of the module, not in a function and not only for type"
    " checkers, or remove the annotation to handle bytes"
)


def handled_payloads(handler: Any, message: type[Any]) -> Payloads[Any] | None:
    """Return the payloads that a handler's annotation requires, or None if it requires bytes.

    Args:
        handler: The handler, whose first parameter is the message.
        message: The class `Message` of the handler's twin.

    Raises:
        BadArgument: The annotation cannot be resolved, is one of the other twin, or its type cannot
            be encoded. It is never ignored: the handler would get bytes instead of its type.
    """
    annotation = _annotation(handler)
    if annotation is None or _is_plain(annotation):
        return None
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    resolved = _resolved(annotation, _function(handler), name)
    kind, arguments = get_origin(resolved), get_args(resolved)
    if not _is_typed(resolved):
        if any(_is_typed(part) for part in arguments):
            raise BadArgument(
                f"handler {name}: its annotation {annotation!r} must be Message[...] itself,"
                " because the handler always gets a message"
            )
        return None
    if not issubclass(kind, message):
        raise BadArgument(
            f"handler {name}: its annotation names {kind.__module__}.{kind.__name__}, but its"
            f" messages are of {message.__module__}.{message.__name__}"
        )
    model = arguments[0]
    if model is Any or model is bytes:
        return None
    if type(model).__name__ == "TypeVar":
        raise BadArgument(f"handler {name}: {resolved} names no type of a payload")
    # Programs without typed handlers load no codecs.
    from twinstream.core.payloads.payloads import payloads_of

    try:
        return payloads_of(model)
    except BadArgument as error:
        raise BadArgument(f"handler {name}: {error}") from error


def _is_typed(annotation: Any) -> bool:
    """Return whether an annotation is a message with the type of its payload."""
    kind = get_origin(annotation)
    return isinstance(kind, type) and kind.__name__ in {"Message", "GroupMessage"}


def _function(handler: Any) -> Any:
    """Return the function that a handler calls in the end, which knows the names around it."""
    while True:
        inner: Any = inspect.unwrap(handler)
        if isinstance(handler, partial):
            inner = cast("Any", handler).func
        if inner is handler:
            break
        handler = inner
    found = cast("Any", handler)
    if inspect.isfunction(found) or inspect.ismethod(found):
        return found
    call: Any = type(found).__call__
    return call.__get__(found) if inspect.isfunction(call) else found


def _annotation(handler: Any) -> Any:
    """Return the annotation of the first parameter that the worker gives, or None without one."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        # A function in C has no signature, and no annotation.
        return None
    if not parameters or parameters[0].annotation is inspect.Parameter.empty:
        return None
    return parameters[0].annotation


def _is_plain(annotation: Any) -> bool:
    """Return whether an annotation names `Message` itself, whose payload is bytes.

    Programs may import the name for type checkers only, so it need not be resolved.
    """
    if not isinstance(annotation, str):
        return isinstance(annotation, type) or annotation is Any
    return annotation.strip(" \"'").rpartition(".")[2] in {"Message", "GroupMessage", "Any"}


def _resolved(annotation: Any, function: Any, name: str) -> Any:
    """Return the type that an annotation means in the scope of `function`."""
    bare = getattr(function, "__func__", function)
    module = sys.modules.get(getattr(bare, "__module__", None) or "")
    names = dict(getattr(bare, "__globals__", None) or vars(module or SimpleNamespace()))
    names |= _closure(bare)
    # `get_type_hints` resolves all annotations of an object. This one has only the needed one.
    holder = SimpleNamespace(__annotations__={"message": annotation})
    try:
        return get_type_hints(holder, names, names, include_extras=True)["message"]
    except Exception as error:
        raise BadArgument(
            f"handler {name}: its annotation {annotation!r} cannot be resolved ({error}): {_ADVICE}"
        ) from error


def _closure(function: Any) -> dict[str, Any]:
    """Return the variables of enclosing functions that a function uses."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    found: dict[str, Any] = {}
    for variable, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            found[variable] = cell.cell_contents
        except ValueError:
            # The variable is assigned later.
            continue
    return found
