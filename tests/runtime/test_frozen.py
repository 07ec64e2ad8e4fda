"""Records that are quick to declare do what those of the standard decorator do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from runtime.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Quick:
    """A record."""

    name: str
    parts: tuple[str, ...] = ()
    of: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same record."""

    name: str
    parts: tuple[str, ...] = ()
    of: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Named:
    """A record that says itself how it looks and what it equals."""

    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name.lower() == self.name.lower()

    def __hash__(self) -> int:
        return 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A record whose values are all given by name."""

    size: int = 0
    key: str


BOTH = pytest.mark.parametrize("kind", [Quick, Standard])
Kind = type[Quick] | type[Standard]


@BOTH
def test_fields_are_given_by_place_or_by_name(kind: Kind) -> None:
    """Whatever is not given is the default, and a made default is made for each record."""
    first, second = kind("a", of={"b": 1}), kind(parts=("c",), name="a")
    assert (first.name, first.parts, first.of) == ("a", (), {"b": 1})
    assert (second.name, second.parts, second.of) == ("a", ("c",), {})
    assert second.of is not kind("a").of


@BOTH
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda kind: kind(), "name"),
        (lambda kind: kind("a", (), {}, 4), "positional"),
        (lambda kind: kind("a", name="b"), "name"),
        (lambda kind: kind("a", size=1), "size"),
        (lambda kind: kind(size=1), "(name|size)"),
    ],
)
def test_a_value_too_many_or_too_few_is_told(kind: Kind, wrong: Callable[[Any], object], told: str) -> None:
    """What no field takes, and what a field lacks, is an error as with any call."""
    with pytest.raises(TypeError, match=told):
        wrong(kind)


@BOTH
def test_nothing_is_assigned_or_deleted(kind: Kind) -> None:
    """A record stays as it was made, and has no room for more."""
    made: Any = kind("a")
    for name in ("name", "size"):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(made, name, "b")
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            delattr(made, name)
    assert made.name == "a" and not hasattr(made, "__dict__")


@BOTH
def test_records_are_equal_by_their_values(kind: Kind) -> None:
    """And never to those of another class."""
    assert kind("a", ("b",)) == kind("a", ("b",)) != kind("a", ("c",))
    another: object = Standard("a")
    assert Quick("a") != another


@BOTH
def test_a_record_is_hashed_by_its_values(kind: Kind) -> None:
    """One that holds what cannot be hashed cannot be either."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(kind("a"))
    assert hash(kind("a", (), ())) == hash(kind("a", (), ())) != hash(kind("b", (), ()))  # type: ignore[arg-type]


def test_a_record_looks_like_a_standard_one() -> None:
    """By its name and its values, however it holds itself."""
    assert repr(Quick("a", ("b",))) == repr(Standard("a", ("b",))).replace("Standard", "Quick")
    around: dict[str, Any] = {}
    around["me"] = Quick("a", of=around)
    assert repr(around["me"]) == "Quick(name='a', parts=(), of={'me': ...})"


@BOTH
def test_a_record_can_be_copied(kind: Kind) -> None:
    """As it is, deeply, through bytes, and with other values."""
    made = kind("a", ("b",), {"c": 1})
    for same in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same == made
    assert copy.deepcopy(made).of is not made.of
    assert dataclasses.replace(made, name="d") == kind("d", ("b",), {"c": 1})


def test_the_tools_for_dataclasses_know_it() -> None:
    """Fields, dictionaries and patterns."""
    assert [each.name for each in dataclasses.fields(Quick)] == ["name", "parts", "of"]
    assert dataclasses.asdict(Quick("a")) == dataclasses.asdict(Standard("a"))
    match Quick("a", ("b",)):
        case Quick(name, (part,)):
            assert (name, part) == ("a", "b")
        case _:
            pytest.fail("no pattern fits")


def test_values_may_have_to_be_given_by_name() -> None:
    """Such a record is copied and shown like the others, and takes nothing by its place."""
    made = Entity(key="a", size=1)
    assert repr(made) == "Entity(size=1, key='a')" and made != Entity(key="a")
    assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == dataclasses.replace(Entity(key="a"), size=1)
    kind: Any = Entity
    with pytest.raises(TypeError, match="positional"):
        kind("a")
    with pytest.raises(TypeError, match="key"):
        kind(size=1)


def test_a_class_keeps_the_methods_that_it_has() -> None:
    """Only what it does not say itself is given to it."""
    assert repr(Named("a")) == "<a>" and Named("a") == Named("A") and hash(Named("a")) == 7


def test_a_class_says_what_it_is() -> None:
    """Whoever reads it takes it for a standard one, and so it must mean the same."""
    with pytest.raises(TypeError, match="frozen"):
        dataclass(frozen=True, slots=False)


def test_a_secret_is_for_the_standard_decorator() -> None:
    """A field that is not shown or not compared would be both here, and so it is refused."""
    for options in ({"repr": False}, {"compare": False}, {"hash": False}, {"init": False, "default": 1}):
        secret = type("Secret", (), {"__annotations__": {"key": str}, "key": dataclasses.field(**options)})
        with pytest.raises(TypeError, match="standard"):
            dataclass(frozen=True, slots=True)(secret)


def test_one_of_many_is_made_like_the_first() -> None:
    """A class that is made often gets a method of its own, which takes and refuses the same."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Often:
        size: int = 3
        self: str

    first, shared = Often(self="a"), vars(Often)["__init__"]
    many = [Often(self="a") for _ in range(1000)]
    assert vars(Often)["__init__"] is not shared
    assert {*many} == {first} and many[-1].size == 3 and Often(size=4, self="b") != first
    wrongs: list[dict[str, Any]] = [{}, {"self": "a", "more": 1}]
    for wrong in wrongs:
        with pytest.raises(TypeError, match=r"self|more"):
            Often(**wrong)
