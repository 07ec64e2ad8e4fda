"""Scripts: each has what its operation needs, with the constants of its lifecycle in place."""

from __future__ import annotations

import re

import pytest

from runtime.stores.redis import RedisClient
from runtime.stores.redis.scripts import CREATE_AND_TAKE, Scripts, assemble
from tests.runtime.stores.redis.kit import Kit

OPERATIONS = (
    *("create", CREATE_AND_TAKE, "change", "claim", "exchange", "due"),
    *("renew", "update", "delete", "purge", "get", "forget", "backlog", "trim"),
)
LUA = """-- Shared.

local collected = {}

-- Adds one.
function M.add(one)
  if L.limit then
    if #collected >= L.limit then return end
  end
  if L.has_names and one then
    M.name(one)
  elseif L.is_loud then
    collected[L.kind.word] = 'L.limit' -- L.limit
  else
    collected[one] = L.states[one]
  end
end

function M.name(one)
  collected[#collected + 1] = one
end
"""
NOTHING = {"limit": None, "has_names": False, "is_loud": False, "kind": None, "states": {"a": "b"}}


def script(**constants: object) -> str:
    return assemble([LUA], {**NOTHING, **constants}, "", "M.add(ARGV[1])")


def test_a_branch_that_a_constant_rules_out_is_left_out_with_what_it_alone_needs() -> None:
    text = script()
    assert "limit" not in text
    assert "M.name" not in text
    assert "  do\n    collected[one] = L.states[one]\n  end\n" in text


def test_constants_are_in_place_of_their_names_but_in_no_text_and_no_comment() -> None:
    text = script(is_loud=True, kind={"word": 'a "word"'})
    assert "collected[\"a \\034word\\034\"] = 'L.limit' -- L.limit" in text
    assert "L.states" not in text


def test_a_function_stays_where_it_may_be_needed() -> None:
    text = script(has_names=True)
    assert "function M.name(one)" in text
    assert "if true and one then" in text


def test_a_constant_that_no_lifecycle_has_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        assemble([], NOTHING, "", "return L.colour")


def test_scripts_are_assembled_when_they_are_first_needed(kit: Kit) -> None:
    scripts: Scripts = kit.tasks._scripts
    assert not scripts
    assert scripts["claim"] is scripts["claim"]
    assert {*scripts} == {"claim"}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_script_has_no_function_that_nothing_refers_to(kit: Kit, operation: str) -> None:
    server: RedisClient = kit.server
    for store in (kit.tasks, kit.workers):
        text, digest = store._scripts[operation]
        for name in re.findall(r"^function (M\.\w+)", text, re.MULTILINE):
            assert len(re.findall(rf"\b{re.escape(name)}\b", text)) > 1, name
        (loaded,) = await server.run([("SCRIPT", "LOAD", text)])
        assert loaded == digest
