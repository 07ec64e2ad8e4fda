"""The generated scripts: every key is handed to them, none is made up, and their headers tell what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis.asyncio

from codegen.emit.redis import lua_files
from codegen.source.loader import examine
from runtime.embedded.redis import EmbeddedRedis
from runtime.stores.redis.scripts import PAIRS, Script, scripts
from tests.runtime.stores.redis.kit import Kit

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "generated/priority/lua"
FILES = sorted(FOLDER.rglob("*.lua"))
CALL = re.compile(r"redis\.call\('([A-Z]+)'(?:, ([^,)]+))?")
KEYLESS = {"TIME", "PUBSUB", "PUBLISH"}
"""Commands that take no key; a channel is none."""


def code(path: Path) -> str:
    """The text of a script without its comments."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.strip().startswith("--"))


@pytest.mark.req("PQ-162", "PQ-009")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_script_makes_up_a_key(path: Path) -> None:
    """What stands where a command has its key is a name for an element of KEYS, in every command."""
    text = code(path)
    tables = set(re.findall(r"local (\w+) = \{(?:\S+ = KEYS\[\d+\](?:, )?)+\}", text))
    names = set(re.findall(r"local (\w+) = KEYS\[\d+\]", text))
    for line in re.findall(r"local ([\w, ]+) = (KEYS\[k \+ .*)", text):
        for name, value in zip(line[0].split(", "), line[1].split(", "), strict=True):
            if value.startswith("KEYS["):
                names.add(name)
    # Loops over lists that were put together from such names, and locals that choose one of them.
    for name, source in re.findall(r"local (\w+) = (\w+)\[", text):
        if source in tables:
            names.add(name)
    for name in re.findall(r"for (\w+), \w+ in pairs\((?:zrem|srem|zadd|sadd|parts)\)", text):
        names.add(name)
    for _, name, source in re.findall(r"for (\w+), (\w+) in (?:i?pairs)\(\{?(\w+)", text):
        if source in tables or source in names or source == "keys":
            names.add(name)
    for command, key in CALL.findall(text):
        if command not in KEYLESS:
            chosen = re.fullmatch(r"(\w+)(?:\.\w+|\[.+)?", key)
            assert key.startswith("KEYS[") or (chosen and (chosen[1] in names or chosen[1] in tables)), (
                command,
                key,
            )
    for key in re.findall(r"put\(\w+, ([^,]+),", text):
        chosen = re.fullmatch(r"(\w+)(?:\.\w+|\[.+)?", key)
        assert key.startswith("KEYS[k") or (chosen and (chosen[1] in names or chosen[1] in tables)), key
    assert not re.search(r"redis\.call\('[A-Z]+', [^,)]*\.\.", text)
    assert not re.search(r"(?:loadstring|redis\.call\([^'])", text)


def test_every_script_names_the_line_of_the_spec_that_it_comes_from() -> None:
    for path in FILES:
        first = path.read_text().splitlines()[0]
        assert re.fullmatch(r"-- spec/priority/lifecycle\.yaml entities\.(task|worker)\.[a-z_.]+", first)


def test_a_script_is_laid_out_by_its_header() -> None:
    text = "\n".join(
        (
            "-- once key clock        clock:thing",
            "-- once key holder       holders:{owner}",
            "-- each key hash         things:{thing_id}",
            "-- each key part_a.high  a:high:{signature}",
            "-- each key unique_name  names:{name}",
            "-- each key both         b:{size}:cap:{signature}:end",
            "-- once argument actor",
            "-- once argument LIMIT_SECONDS",
            "-- each argument key",
            "-- each argument believed..signature",
            "-- each argument new.name",
            "-- each argument new.size",
            "-- each pairs",
            "-- cut take.error 10",
            "return 1",
        )
    )
    script = Script("x", text, "{p}:", "thing_id")
    each = [
        {"key": key, "believed..signature": "any", "new.name": name, "new.size": "s", PAIRS: ["f", "v"]}
        for key, name in (("1", "one"), ("2", "{x}"))
    ]
    call = script.call({"LIMIT_SECONDS": 7}, {"owner": "o", "actor": "me"}, each)
    assert call.keys == 10
    assert call.handed[:6] == [
        *("{p}:clock:thing", "{p}:holders:o", "{p}:things:1"),
        *("{p}:a:high:any", "{p}:names:one", "{p}:b:s:cap:any:end"),
    ]
    assert call.handed[6:12] == [
        *("{p}:things:2", "{p}:a:high:any", "{p}:names:{x}", "{p}:b:s:cap:any:end"),
        *("me", 7),
    ]
    assert call.handed[12:] == ["1", "any", "one", "s", 2, "f", "v", "2", "any", "{x}", "s", 2, "f", "v"]
    assert script.cuts == {"take.error": 10}
    assert call.by_digest()[:3] == ("EVALSHA", script.digest, 10)


async def test_every_script_of_every_spec_loads(shared_server: EmbeddedRedis) -> None:
    """Those of the tests too, which have words that no system uses."""
    client = redis.asyncio.Redis.from_url(shared_server.url)
    for folder in (ROOT / "spec/priority", ROOT / "tests/specs/rental"):
        spec, found = examine(folder, ROOT)
        assert spec is not None and not [each for each in found if each.severity == "error"]
        made = list(lua_files.emit(spec))
        assert made
        for artefact in made:
            await client.script_load(artefact.text)
    await client.aclose()


def test_the_same_spec_gives_the_same_scripts() -> None:
    spec, _ = examine(ROOT / "spec/priority", ROOT)
    assert spec is not None
    assert [*lua_files.emit(spec)] == [*lua_files.emit(spec)]


async def test_scripts_are_found_by_their_names(kit: Kit) -> None:
    found = scripts("priority", "task", "task_id", "")
    assert {
        "create",
        "claim",
        "renew",
        "delete",
        "due",
        "trim",
        "move_retry",
        "shift_release",
    } <= found.keys()
