"""Predicates of text rules: whether a text must be storable, and whether it may contain NUL."""

from __future__ import annotations

import re

from codegen.language.types import FieldRules, ItemRules
from codegen.source.spec import Spec

_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\]\\])+)\]")


def is_storable(spec: Spec, rules: ItemRules) -> bool:
    """Whether every store must be able to store a text or JSON: by its rules, or as the spec has stores."""
    if rules.storable is not None:
        return rules.storable
    return spec.is_durable


def is_nul_possible(spec: Spec, rules: ItemRules) -> bool:
    """Whether a storable text could contain NUL, as no other rule refuses one."""
    is_closed = rules.uuid or rules.uuid4 or rules.one_of is not None
    if isinstance(rules, FieldRules):
        is_closed = is_closed or bool(rules.page_token or rules.sha256_of)
    is_open = rules.pattern is None or _is_nul_matched(rules.pattern)
    return is_storable(spec, rules) and not is_closed and is_open


def _is_nul_matched(pattern: str) -> bool:
    """Whether a text that matches could contain NUL; in doubt it could."""
    for negated, members in _CLASS.findall(pattern):
        names_nul = re.search(r"\\x00|\\0|\\[DSW]|\0", members) is not None
        if names_nul != bool(negated):
            return True
    return re.search(r"(?<!\\)\.|\\[DSWx0]|\0", _CLASS.sub("", pattern)) is not None
