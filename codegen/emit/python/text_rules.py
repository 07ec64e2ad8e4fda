"""What the rules of a text leave room for."""

from __future__ import annotations

import re

from codegen.language.types import FieldRules, ItemRules
from codegen.source.spec import Spec

_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\]\\])+)\]")


def is_storable(spec: Spec, rules: ItemRules) -> bool:
    """Whether a text or JSON must be what every store can keep: the spec says so, or has such a store."""
    if rules.storable is not None:
        return rules.storable
    return any(entity.kept_in is not None for entity in spec.lifecycle.entities.values())


def is_nul_possible(spec: Spec, rules: ItemRules) -> bool:
    """Whether a text has to be searched for NUL, because no other rule refuses one."""
    closed = rules.uuid or rules.uuid4 or rules.one_of is not None
    if isinstance(rules, FieldRules):
        closed = closed or bool(rules.page_token or rules.sha256_of)
    open_pattern = rules.pattern is None or _matches_nul(rules.pattern)
    return is_storable(spec, rules) and not closed and open_pattern


def _matches_nul(pattern: str) -> bool:
    """Whether a text that matches could have a NUL in it; in doubt it could."""
    for negated, members in _CLASS.findall(pattern):
        names_nul = re.search(r"\\x00|\\0|\\[DSW]|\0", members) is not None
        if names_nul != bool(negated):
            return True
    return re.search(r"(?<!\\)\.|\\[DSWx0]|\0", _CLASS.sub("", pattern)) is not None
