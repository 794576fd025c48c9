"""Records: classes like those of `attrs.frozen`, but cheaper to import.

`attrs` compiles the methods of each class during the import of its module. For a short program,
this took half of the time until its first message. The decorator `frozen` of this module accepts
the arguments of `attrs.frozen` that Twinstream uses. It creates classes with the same behavior:
slots, converters, factories, aliases, equality and hash by value. Type checkers see `attrs.frozen`
itself.

All records share their methods, except the constructor. The constructor of a class is compiled when
its first record is created. It is as fast as the constructor of `attrs`, and Python itself reports
wrong arguments. `attrs.fields` works with records, and so do the functions of `attrs` that use it:
`evolve`, `asdict` and `resolve_types`. The first such call imports `attrs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

__all__ = ["Member", "NotARecord", "evolve", "field", "frozen", "members"]

T = TypeVar("T")


class NotARecord(TypeError):
    """A class is not a record, so it has no fields."""


class _Nothing:
    """The type of `_NOTHING`, which marks a field without a default value.

    As the default of a constructor's argument, it means that a factory creates the value.
    """

    def __repr__(self) -> str:
        return "NOTHING"


_NOTHING: Final[Any] = _Nothing()


class Member:
    """The definition of one field of a record, with the options of `attrs.field`."""

    __slots__ = (
        "alias",
        "converter",
        "default",
        "eq",
        "factory",
        "hint",
        "init",
        "kw_only",
        "repr",
    )

    def __init__(
        self,
        *,
        default: Any = _NOTHING,
        factory: Callable[[], Any] | None = None,
        converter: Callable[[Any], Any] | None = None,
        alias: str | None = None,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        kw_only: bool = False,
        hint: Any = "",
    ) -> None:
        self.default = default
        self.factory = factory
        self.converter = converter
        self.alias = alias
        self.init = init
        self.repr = repr
        self.eq = eq
        self.kw_only = kw_only
        self.hint = hint

    @property
    def is_required(self) -> bool:
        """Whether a record cannot be created without a value for this field."""
        return self.init and self.default is _NOTHING and self.factory is None


def members(cls: type) -> Mapping[str, Member]:
    """Return the fields of a record class by name.

    `cls` may also be an `attrs` class that extends a record. Raises `NotARecord` for other classes.
    """
    found: Mapping[str, Member]
    for base in cls.__mro__:
        if "__record__" in vars(base):
            found = vars(base)["__record__"]
            return found
        if "__attrs_attrs__" in vars(base):
            return _of_attrs(base)
    raise NotARecord(f"{cls.__name__} is not a record")


def _of_attrs(cls: type) -> Mapping[str, Member]:
    import attrs

    found: dict[str, Member] = {}
    for item in attrs.fields(attrs.resolve_types(cls)):
        default, made = item.default, cast("type[Any]", attrs.Factory)
        factory: Any = default.factory if isinstance(default, made) else None
        found[item.name] = Member(
            default=_NOTHING if factory or default is attrs.NOTHING else default,
            factory=factory,
            converter=item.converter,
            alias=item.alias,
            init=item.init,
            hint=item.type,
        )
    return found


# ---- shared by all records


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = cast("Callable[[Any], object]", self.__record_values__)
    return bool(values(self) == values(other))


def _hash(self: Any) -> int:
    return hash((self.__class__, self.__record_values__(self)))


def _hash_once(self: Any) -> int:
    try:
        found: int = self.__record_hash__
    except AttributeError:
        found = _hash(self)
        object.__setattr__(self, "__record_hash__", found)
    return found


@recursive_repr("...")
def _show(self: Any) -> str:
    shown = [
        f"{name}={getattr(self, name)!r}" for name, member in self.__record__.items() if member.repr
    ]
    return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


def _refuse_setting(self: object, name: str, value: object) -> None:
    raise _frozen_error(self, name, "set", f"evolve(record, {name}=...)")


def _refuse_deleting(self: object, name: str) -> None:
    raise _frozen_error(self, name, "delete", f"evolve(record, {name}=None)")


def _frozen_error(self: object, name: str, what: str, instead: str) -> AttributeError:
    from attrs.exceptions import FrozenInstanceError

    text = f"can't {what} attribute {name!r}: a {type(self).__name__} is frozen"
    if name in members(type(self)):
        text += f"; twinstream.models.{instead} returns a changed copy"
    # The constructor of attrs has a fixed text.
    error = FrozenInstanceError()
    error.args, error.msg = (text,), text
    return error


def _state(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.__record__}


def _restore(self: Any, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


def _evolve(record: T, /, **changes: Any) -> T:
    """Return a copy of `record` with other values for some arguments of its constructor."""
    for name, member in members(type(record)).items():
        if member.init and member.alias not in changes:
            changes[member.alias or name] = getattr(record, name)
    return type(record)(**changes)


# ---- created for one class at its first use


class _OnUse:
    """A class attribute whose value is created at the first access."""

    __slots__ = ("_cls", "_make", "_name")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, record: object, cls: type | None = None) -> Any:
        made = self._make(self._cls)
        # Replace this descriptor by the value, so that later accesses are fast.
        setattr(self._cls, self._name, made)
        # Not `getattr(record, name)`: a subclass may have its own and call this one by `super()`,
        # and `inspect.signature` of Python 3.13 passes the class as `record`.
        get: Any = getattr(cast("Any", type(made)), "__get__", None)
        return made if get is None else get(made, record, cls)


def _values(cls: Any) -> Any:
    """Return a function from a record to the values that its `==` and `hash` use."""
    names = [name for name, member in cls.__record__.items() if member.eq]
    if not names:
        return staticmethod(_no_values)
    return staticmethod(attrgetter(*names))


def _no_values(record: object) -> tuple[()]:
    return ()


def _constructor(cls: Any) -> Callable[..., None]:
    """Compile and return the `__init__` of a record class."""
    space: dict[str, Any] = {"_nothing": _NOTHING}
    before: list[str] = []
    after: list[str] = []
    lines: list[str] = []
    hints: dict[str, Any] = {}
    for number, (name, member) in enumerate(cls.__record__.items()):
        space[f"_put{number}"] = _slot(cls, name).__set__
        value = f"_make{number}()" if member.factory else f"_default{number}"
        space[f"_make{number}"] = member.factory
        space[f"_default{number}"] = member.default
        if member.init:
            alias = member.alias
            default = "" if member.is_required else f"=_default{number}"
            (after if member.kw_only else before).append(f"{alias}{default}")
            hints[alias] = _hint(member)
            value = f"{value} if {alias} is _nothing else {alias}" if member.factory else alias
        if member.converter:
            space[f"_convert{number}"] = member.converter
            value = f"_convert{number}({value})"
        lines.append(f"    _put{number}(self, {value})\n")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append("    self.__attrs_post_init__()\n")
    given = ", ".join(["self", *before, *(["*"] if after else []), *after])
    text = f"def __init__({given}):\n{''.join(lines) or '    pass'}"
    exec(compile(text, f"<__init__ of {cls.__module__}.{cls.__qualname__}>", "exec"), space)
    made: Callable[..., None] = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    made.__annotations__ = {**hints, "return": None}
    wrap = getattr(cls, "__wrap_init__", None)
    return _explained(cls, made) if wrap is None else wrap(made)


def _explained(cls: Any, init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that suggests a name for an unknown argument, if `cls` has options.

    Such a class has at most one required field. The other classes hold results; the errors of their
    constructors are those of Python.
    """
    given = [member for member in cls.__record__.values() if member.init]
    if len(given) < 2 or sum(member.is_required for member in given) > 1:
        return init
    known = [member.alias or "" for member in given]

    @wraps(init)
    def explained(self: object, *values: Any, **named: Any) -> None:
        try:
            init(self, *values, **named)
        except TypeError as error:
            from twinstream.models.names.near_names import name_advice

            advice = name_advice((name for name in named if name not in known), known)
            if not advice:
                raise
            # Python 3.13 suggests a name itself, but knows no names of equal meaning.
            text = str(error).partition(". Did you mean")[0]
            raise TypeError(f"{text}; {advice}") from None

    return explained


def _hint(member: Member) -> Any:
    """Return the annotation of a field's argument in the constructor.

    A converter accepts more types than the annotation of its field contains. So for a field with a
    converter, the result is the annotation of the converter's argument.
    """
    taken = getattr(member.converter, "__annotations__", None)
    return next(iter(taken.values())) if taken else member.hint


def _slot(cls: type, name: str) -> Any:
    """Return the slot descriptor of a field from `cls` or one of its base classes."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def _attributes(cls: Any) -> Any:
    """Return the fields of a record class in the form of `__attrs_attrs__`, for `attrs.fields`."""
    import attrs

    own = cast("dict[str, Any]", vars(cls)).get("__annotations__", {})
    made = {name: _attribute(name, member) for name, member in cls.__record__.items()}
    like = attrs.make_class(cls.__name__, made, init=False, eq=False, repr=False, slots=False)
    found = attrs.fields(like)
    return type(found)(item if item.name in own else item.evolve(inherited=True) for item in found)


def _attribute(name: str, member: Member) -> Any:
    import attrs

    given: dict[str, Any] = {} if member.default is _NOTHING else {"default": member.default}
    if member.factory:
        given["factory"] = member.factory
    return attrs.field(
        **given,
        converter=member.converter,
        alias=None if member.alias == _plain(name) else member.alias,
        init=member.init,
        repr=member.repr,
        eq=member.eq,
        kw_only=member.kw_only,
        type=member.hint,
    )


# ---- creation of a class

_SHARED: Final[Mapping[str, Any]] = {
    "__eq__": _equals,
    "__hash__": _hash,
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _state,
    "__setstate__": _restore,
    "__replace__": _evolve,
}


def _frozen(
    cls: type[T] | None = None,
    *,
    kw_only: bool = False,
    repr: bool = True,
    match_args: bool = True,
    cache_hash: bool = False,
) -> Any:
    """Return a record class for `cls`, as `attrs.frozen` does.

    Methods that the body of `cls` defines are not replaced.
    """
    if cls is None:
        return partial(
            _frozen, kw_only=kw_only, repr=repr, match_args=match_args, cache_hash=cache_hash
        )
    body = {name: each for name, each in vars(cls).items() if name not in _OF_THE_FIRST}
    inherited: Mapping[str, Member] = getattr(cls, "__record__", {})
    own: dict[str, Member] = {}
    for name, hint in body.get("__annotations__", {}).items():
        if not hint.startswith("ClassVar"):
            own[name] = _member(name, hint, body.pop(name, _NOTHING), kw_only)
    every = {name: each for name, each in inherited.items() if name not in own} | own
    slots = [name for name in own if name not in inherited]
    if not inherited:
        slots.append("__weakref__")
    if cache_hash:
        slots.append("__record_hash__")
        body.setdefault("__hash__", _hash_once)
    body |= {
        "__qualname__": cls.__qualname__,
        "__slots__": tuple(slots),
        "__record__": every,
        "__record_values__": _OnUse(_values),
        "__attrs_attrs__": _OnUse(_attributes),
    }
    body.setdefault("__init__", _OnUse(_constructor))
    for name, each in _SHARED.items():
        body.setdefault(name, each)
    if repr:
        body.setdefault("__repr__", _show)
    if match_args:
        named = (name for name, each in every.items() if each.init and not each.kw_only)
        body.setdefault("__match_args__", tuple(named))
    return cast("Any", type(cls))(cls.__name__, cls.__bases__, body)


_OF_THE_FIRST: Final = frozenset({"__dict__", "__weakref__"})
"""Attributes of the original class that are not copied to the class with slots.

Python creates them for each class.
"""


def _member(name: str, hint: str, default: Any, kw_only: bool) -> Member:
    member = default if isinstance(default, Member) else Member(default=default)
    member.alias = member.alias or _plain(name)
    member.hint = hint
    member.kw_only = kw_only
    return member


def _plain(name: str) -> str:
    """Return the name of the constructor's argument for a field without an alias."""
    return name.lstrip("_")


if TYPE_CHECKING:
    from attrs import evolve, field, frozen
else:
    evolve, field, frozen = _evolve, Member, _frozen
