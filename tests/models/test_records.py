"""Records behave like the frozen classes of attrs; each test runs with both."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import attrs
import pytest

import twinstream.models
from twinstream.models import ConsumerConfig, Model, PubAck, decode, encode
from twinstream.models.codec import records as ours
from twinstream.models.index import MODULES


class Maker(NamedTuple):
    """The functions that make a class: those of attrs, or of the module under test."""

    frozen: Any
    field: Any
    evolve: Any


MAKERS = {
    "attrs": Maker(attrs.frozen, attrs.field, attrs.evolve),
    "records": Maker(ours.frozen, ours.field, ours.evolve),
}


def doubled(value: int | str) -> int:
    return 2 * int(value)


class Classes:
    """The same classes, made with one of the makers."""

    def __init__(self, name: str) -> None:
        make = self.make = MAKERS[name]

        @make.frozen
        class Point:
            """A point."""

            LIMIT: ClassVar[int] = 9
            x: int
            y: int = 0

            def sum(self) -> int:
                return self.x + self.y

        @make.frozen(kw_only=True)
        class Named(Point):
            name: str
            tags: list[str] = make.field(factory=list, repr=False)
            size: int | None = make.field(default=2, converter=doubled)

        @make.frozen
        class Hidden:
            _secret: str = make.field(alias="given", repr=False)
            _seen: list[int] = make.field(init=False, factory=list, eq=False)
            count: int = 1

            def see(self, what: Any) -> None:
                self._seen.append(what)

            def __attrs_post_init__(self) -> None:
                if self._secret == "wrong":
                    raise ValueError("wrong")

        @make.frozen
        class Empty:
            pass

        @make.frozen(repr=False, match_args=False)
        class Quiet:
            x: int

            def __hash__(self) -> int:
                return 7

        self.Point, self.Named, self.Hidden, self.Empty, self.Quiet = (
            Point,
            Named,
            Hidden,
            Empty,
            Quiet,
        )


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest) -> Any:
    return Classes(request.param)


def test_positional_and_named_arguments(made: Any) -> None:
    assert made.Point(1) == made.Point(1, 0) == made.Point(x=1, y=0)
    named = made.Named(1, 2, name="n", size="4")
    assert (named.x, named.y, named.name, named.tags, named.size) == (1, 2, "n", [], 8)
    assert made.Named(1, name="n").size == 4, "a default is converted, too"
    assert made.Named(1, name="n").tags is not made.Named(1, name="n").tags


@pytest.mark.parametrize(
    "call",
    [
        lambda made: made.Point(),
        lambda made: made.Point(1, 2, 3),
        lambda made: made.Point(1, z=2),
        lambda made: made.Named(1),
        lambda made: made.Named(1, 2, "n"),
        lambda made: made.Empty(1),
        lambda made: made.Hidden(_secret="s"),
    ],
)
def test_wrong_arguments_are_reported_in_the_same_way(call: Callable[[Any], object]) -> None:
    texts: list[str] = []
    for name in MAKERS:
        with pytest.raises(TypeError) as caught:
            call(Classes(name))
        texts.append(str(caught.value).replace("Classes.__init__.<locals>.", ""))
    assert texts[0] == texts[1]


def test_what_follows_the_constructor_runs(made: Any) -> None:
    with pytest.raises(ValueError, match="wrong"):
        made.Hidden(given="wrong")


def test_text(made: Any) -> None:
    assert repr(made.Point(1)) == "Point(x=1, y=0)"
    assert repr(made.Named(1, name="n")) == "Named(x=1, y=0, name='n', size=4)"
    assert repr(made.Hidden("s")) == "Hidden(_seen=[], count=1)"
    assert repr(made.Empty()) == "Empty()"
    assert "Quiet object at" in repr(made.Quiet(1))


def test_recursive_record_has_a_repr(made: Any) -> None:
    named = made.Hidden("s")
    named.see(named)
    assert repr(named) == "Hidden(_seen=[...], count=1)"


def test_equality(made: Any) -> None:
    point = made.Point(1, 2)
    assert point == made.Point(1, 2)
    assert point != made.Point(1, 3)
    assert point != (1, 2)
    assert made.Named(1, name="n") != made.Point(1)
    hidden = made.Hidden("s")
    hidden.see(1)
    assert hidden == made.Hidden("s")
    assert made.Empty() == made.Empty()


def test_hash(made: Any) -> None:
    assert len({made.Point(1, 2), made.Point(1, 2), made.Point(2, 1)}) == 2
    assert hash(made.Quiet(1)) == 7
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(made.Named(1, name="n"))


def test_a_record_is_frozen_and_has_slots(made: Any) -> None:
    point = made.Point(1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 2
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.z = 2
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")
    assert not hasattr(made.Named(1, name="n"), "__dict__")
    assert weakref.ref(point)() is point
    assert made.Point.LIMIT == 9
    assert made.Point.__doc__ == "A point."
    assert made.Named(1, 2, name="n").sum() == 3


def test_copies(made: Any) -> None:
    named = made.Named(1, name="n", tags=["t"])
    assert copy.copy(named) == named
    deep = copy.deepcopy(named)
    assert deep == named
    assert deep.tags is not named.tags
    assert made.make.evolve(named, size=1) == made.Named(1, name="n", tags=["t"], size=1)
    assert attrs.evolve(made.Hidden("s"), given="t") == made.Hidden("t")
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        made.make.evolve(named, z=1)


def test_matching(made: Any) -> None:
    match made.Point(1, 2):
        case made.Point(x, y):
            assert (x, y) == (1, 2)
    assert made.Named.__match_args__ == ("x", "y")
    assert made.Hidden.__match_args__ == ("_secret", "count")
    assert "__match_args__" not in vars(made.Quiet)


def test_attrs_sees_the_same_attributes() -> None:
    theirs, mine = Classes("attrs"), Classes("records")
    for name in ("Point", "Named", "Hidden", "Empty", "Quiet"):
        expected, found = attrs.fields(getattr(theirs, name)), attrs.fields(getattr(mine, name))
        assert found == expected
        assert [item.alias for item in found] == [item.alias for item in expected]
        assert [item.inherited for item in found] == [item.inherited for item in expected]
    assert attrs.fields(mine.Named).tags.default == attrs.Factory(list)
    assert attrs.asdict(mine.Named(1, name="n")) == attrs.asdict(theirs.Named(1, name="n"))


def test_signatures_are_the_same() -> None:
    theirs, mine = Classes("attrs"), Classes("records")
    for name in ("Point", "Named", "Hidden", "Empty", "Quiet"):
        expected = str(inspect.signature(getattr(theirs, name)))
        assert str(inspect.signature(getattr(mine, name))) == expected


def test_a_subclass_calls_a_constructor_that_was_never_used() -> None:
    for name in MAKERS:
        made = Classes(name)

        class Doubled(made.Point):  # type: ignore[misc,name-defined]
            def __init__(self, x: int) -> None:
                super().__init__(2 * x, 2 * x)

        doubled = Doubled(1)
        assert (doubled.x, doubled.y) == (2, 2)


def test_attrs_extends_a_record() -> None:
    for name in MAKERS:
        made = Classes(name)

        @attrs.frozen
        class Wider(made.Point):  # type: ignore[misc,name-defined]
            z: int = 3

        wider = Wider(1, 2)
        assert repr(wider).endswith("Wider(x=1, y=2, z=3)")
        assert wider == Wider(1, 2, 3)
        assert made.make.evolve(wider, z=4) == Wider(1, 2, 4)


# ---- models


ALL = [getattr(twinstream.models, name) for name in sorted(MODULES)]
MODELS = [each for each in ALL if isinstance(each, type) and issubclass(each, Model)]


@pytest.mark.parametrize("cls", MODELS)
def test_every_model_is_an_attrs_class(cls: type[Model]) -> None:
    hints = attrs.resolve_types(cls)
    assert [item.name for item in attrs.fields(hints)] == list(ours.members(cls))
    assert attrs.fields(cls)[0].name == "unknown"
    assert list(inspect.signature(cls).parameters) == list(ours.members(cls))


def test_a_model_survives_pickling() -> None:
    config = ConsumerConfig(durable_name="d", ack_policy="explicit", backoff=[])
    assert pickle.loads(pickle.dumps(config)) == config
    assert attrs.evolve(config, max_deliver=3).max_deliver == 3


def test_a_model_that_attrs_extends_is_read_and_written() -> None:
    @attrs.frozen(kw_only=True)
    class Ours(PubAck):
        shard: int | None = None

    found = decode(b'{"stream":"S","seq":1,"shard":4,"more":5}', Ours)
    assert found == Ours(stream="S", seq=1, shard=4, unknown={"more": 5})
    assert encode(found) == {"stream": "S", "seq": 1, "shard": 4, "more": 5}


def test_model_is_created_without_attrs() -> None:
    program = (
        "import sys; from twinstream.models import StreamConfig, decode, encode_json, evolve;"
        "config = evolve(StreamConfig(name='S'), max_msgs=5);"
        "assert decode(encode_json(config), StreamConfig) == config; repr(config);"
        "print([name for name in ('attr', 'attrs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
