"""Fuzzing: the answer to any spec is a list of complaints or a Spec, never a traceback."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.diagnostics import FORMATS, render
from codegen.language import FILES
from codegen.source.loader import examine
from codegen.source.spec import Spec
from codegen.source.yaml_reader import parse
from tests.support.codegen.cached_loading import cached_files

ROOT = Path(__file__).parent.parent.parent
SPECS = (
    ROOT / "spec" / "taskqueue",
    *(ROOT / "tests" / "specs" / name for name in ("locker", "bakery", "rental", "laundry")),
)
TEXTS = {
    spec: {name: (spec / f"{name}.yaml").read_bytes() for name in FILES if (spec / f"{name}.yaml").exists()}
    for spec in SPECS
}
DATA = {
    spec: json.dumps({name: parse(name, text.decode())[0].data for name, text in files.items()}, default=str)
    for spec, files in TEXTS.items()
}
ODD_SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 10**60, 0.5, -1.5, 1e300, float("inf")),
    *("", " ", "a", "never", "everyone", "class", "None", "Ünïcödé", "\U0001f984", "\u202e", "x" * 5000),
    *("{", "}", "{}", "{0}", "{a.b}", "{a!r:>9}", "${", "${}", "${A}", "(", "[", "(?P<", "a{99999999999}"),
    *(
        "A.B",
        "VaultService.MoveParcel",
        "map<string, string>",
        "repeated bytes",
        "map<a,b>",
        "\x85",
        "\u2028",
    ),
    *([], {}, [[]], [{}], {"": None}, {"a": {"a": {"a": []}}}, ["a", "a"], [1, "1", True, None]),
)
ODD_BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\t",
    b"\x07",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!python/name:os ",
    b"? ",
    b"- ",
    b"%",
)


@pytest.fixture(scope="module", autouse=True)
def _cache_files() -> Iterator[None]:
    with cached_files():
        yield


@given(seed=st.integers(0, 2**32), times=st.integers(1, 8), spec=st.sampled_from(SPECS))
def test_mutated_data(seed: int, times: int, spec: Path) -> None:
    """Keys and values that are deleted, doubled, renamed, exchanged or replaced never lead to a traceback."""
    chance = random.Random(seed)
    files = json.loads(DATA[spec])
    for _ in range(times):
        chance.choice(MUTATIONS)(files, chance)
    # JSON is YAML, and written and read in no time.
    check_answer(
        {name: json.dumps(data, indent=1, ensure_ascii=False).encode() for name, data in files.items()}
    )


@given(data=st.data(), spec=st.sampled_from(SPECS))
def test_mutated_text(data: st.DataObject, spec: Path) -> None:
    """A text that is cut off, doubled in part or sprinkled with odd bytes never leads to a traceback."""
    name = data.draw(st.sampled_from(sorted(TEXTS[spec])))
    text = TEXTS[spec][name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 300)))
    middle = data.draw(st.sampled_from([b"", text[start:end] * 2, *ODD_BYTES]) | st.binary(max_size=20))
    rest = data.draw(st.sampled_from([text[end:], b""]))
    check_answer({**TEXTS[spec], name: text[:start] + middle + rest})


@pytest.mark.parametrize("name", ["system", "types", "callers"])
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"---\n...\n",
        b"null",
        b"42",
        b"[]",
        b"{}",
        b"- a\n- b\n",
        b"? [a, b]\n: c\n",
        b"? {a: b}\n: c\n",
        b"a: 1\n---\nb: 2\n",
        b"a: &a [*a]\n",
        b"a: &a {b: *a}\n",
        b"*a : b\n",
        b"<<: {a: 1}\n",
        b"\xff\xfe\x00",
        b"\xef\xbb\xbfa: 1\n",
        b"a: \x00\n",
        b"\ta: 1\n",
        b"a: " + b"9" * 10_000,
        b"a: 1.0e999\n",
        b"a: " + b"[" * 100_000,
        b"a: " + b"{b: " * 100_000,
        b"- " * 100_000 + b"a\n",
        b"? " * 100_000 + b"a\n",
        b"".join(b" " * depth + b"a:\n" for depth in range(1000)),
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 200)),
        b"".join(b"k%d: [0]\n" % number for number in range(60_000)),
    ],
    ids=lambda text: text[:12].decode("latin-1").encode("unicode_escape").decode(),
)
def test_hostile_text(name: str, text: bytes) -> None:
    """Texts made to break a reader are refused with a complaint."""
    spec, complaints = check_answer({**TEXTS[SPECS[1]], name: text})
    assert complaints
    assert spec is None or name == "types"


def check_answer(files: dict[str, bytes]) -> tuple[Spec | None, list[Any]]:
    """Examine files as a spec; check that the answer is consistent and can be printed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / f"{name}.yaml").write_bytes(text)
        spec, complaints = examine(Path(folder))
    assert spec is not None or complaints
    for style in FORMATS:
        render(complaints, style).encode()
    for each in complaints:
        assert each.place.line >= 1
        assert each.place.column >= 1
        assert each.message
    return spec, complaints


def list_containers(value: Any) -> list[Any]:
    """All mappings and lists of some data that are not empty."""
    found = [value] if isinstance(value, dict | list) and value else []
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + [container for child in children for container in list_containers(child)]


def some_key(container: Any, chance: random.Random) -> Any:
    return chance.choice(list(container) if isinstance(container, dict) else range(len(container)))


def delete(files: dict[str, Any], chance: random.Random) -> None:
    container = chance.choice(list_containers(files)[1:])
    del container[some_key(container, chance)]


def rename(files: dict[str, Any], chance: random.Random) -> None:
    container = chance.choice([each for each in list_containers(files)[1:] if isinstance(each, dict)])
    key = some_key(container, chance)
    others = [some_key(other, chance) for other in list_containers(files)[1:] if isinstance(other, dict)]
    container[chance.choice([*others, str(key)[:-1], f"{key}s", str(key).upper()])] = container.pop(key)


def double(files: dict[str, Any], chance: random.Random) -> None:
    container = chance.choice(list_containers(files)[1:])
    key = some_key(container, chance)
    if isinstance(container, list):
        container.insert(key, container[key])
    else:
        container[f"{key}2"] = container[key]


def replace(files: dict[str, Any], chance: random.Random) -> None:
    container = chance.choice(list_containers(files)[1:])
    container[some_key(container, chance)] = chance.choice(ODD_SCALARS)


def splice(files: dict[str, Any], chance: random.Random) -> None:
    source, target = (chance.choice(list_containers(files)[1:]) for _ in range(2))
    piece = json.loads(json.dumps(source[some_key(source, chance)]))
    target[some_key(target, chance)] = piece


MUTATIONS: tuple[Callable[[dict[str, Any], random.Random], None], ...] = (
    delete,
    rename,
    double,
    replace,
    splice,
)
