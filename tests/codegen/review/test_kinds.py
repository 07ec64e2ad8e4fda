"""Each kind of difference, by cases: an edit of the base spec and every difference expected of it."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.review import FROZEN, KINDS, Verdict, compare
from codegen.review.compare import StoredForm, find_differences, normalize
from tests.support.codegen.review_forms import apply_edits, base, cases, find_at, spec, stored_base

CASES = cases()
ORDERED = (
    "lifecycle/entities/ticket/transitions/enter/after",
    "lifecycle/entities/bag/lease/claim_order",
    "lifecycle/entities/bag/transitions/put_back/due",
    "services/services/GateService/methods/Open/route/instead",
    "metrics/metrics/put_back_total/counts/values/reason",
    "metrics/metrics/bag_seconds/buckets",
    "environment/variables/PHOTOS_BUCKET/also_named",
)
"""Lists whose order says something."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["expect"][0][0]))
def test_case(case: dict[str, Any]) -> None:
    """An edit gives exactly the differences of its case: id, sentence and verdict."""
    old, new = (_make_side(case.get(side, {})) for side in ("before", "after"))
    found = [[each.id, each.sentence, each.verdict.value] for each in find_differences(old, new)]
    assert found == case["expect"]


def test_every_kind_has_a_case() -> None:
    """No kind of difference is without a case."""
    tried = {expected[0].partition(" ")[0] for case in CASES for expected in case["expect"]}
    assert {each.id for each in KINDS} - tried == set()


def test_kinds_are_named_once() -> None:
    """Each kind has an id of its own and a sentence that describes it."""
    ids = [each.id for each in KINDS]
    assert len(ids) == len(set(ids))
    assert all(each.meaning.endswith(".") for each in KINDS)


def test_equal_specs_have_no_differences() -> None:
    """A spec does not differ from itself."""
    assert compare(spec(base()), spec(base())) == []


def test_the_order_does_not_matter() -> None:
    """Names, grants, rules and the members of lists may stand in any order."""
    reordered = _reverse(base())
    reversed_ = {place: find_at(base(), place.split("/")) for place in ORDERED}
    assert compare(spec(base()), spec(apply_edits(reordered, reversed_))) == []


def test_a_permission_without_conditions_is_a_plain_one() -> None:
    """`Buy` and `Buy: {}` are the same permission."""
    written_out = apply_edits(base(), {"callers/may_call/booth/TillService/0": {"Buy": {}}})
    assert compare(spec(base()), spec(written_out)) == []


def test_zero_is_not_false() -> None:
    """A condition that asks for 0 is another one than a condition that asks for false."""
    path = "callers/may_call/booth/TillService/0"
    old, new = (apply_edits(base(), {path: {"Buy": {"only": {"caller": value}}}}) for value in (0, False))
    assert [each.id for each in compare(spec(old), spec(new))] == [
        "permission.condition booth TillService.Buy caller"
    ]


def test_the_gravest_difference_comes_first() -> None:
    """Differences are sorted by their verdict, and wording comes last."""
    edits = {
        "system/title": "Stall",
        "environment/variables/SEATS/default": 12,
        "services/services/GateService/methods/Shut": {"doc": "Shuts.", "idempotency": {"class": "always"}},
        "types/public/messages/Order/fields/token/number": 12,
        "types/public/enums/Zone/values/YARD": {"number": 3},
    }
    found = compare(spec(base()), spec(apply_edits(base(), edits)))
    assert [each.kind for each in found] == [
        "method.added",
        "field.number",
        "variable.default",
        "value.added",
        "wording",
    ]


@pytest.mark.req("TQ-212")
def test_frozen_decisions_are_a_table_of_kinds() -> None:
    """Every kind that touches a frozen decision is a known kind, and gets its verdict only under a freeze."""
    assert set(FROZEN) <= {each.id for each in KINDS}
    assert all(each.verdict is not Verdict.FROZEN for each in KINDS)


@pytest.mark.req("TQ-011")
@pytest.mark.parametrize("name", ["method.added", "method.removed", "service.added", "service.removed"])
def test_the_set_of_methods_is_frozen(name: str) -> None:
    """While the design is frozen no method comes or goes without the gravest verdict."""
    frozen = [case for case in CASES if "before" not in case and case["expect"][0][0].startswith(f"{name} ")]
    assert frozen
    assert all(case["expect"][0][2] == Verdict.FROZEN for case in frozen)


@pytest.mark.req("TQ-209")
@pytest.mark.parametrize(
    ("edits", "verdict"),
    [
        ({"fields/token": None}, Verdict.WIRE),
        ({"fields/token": None, "fields/voucher": {"number": 10, "type": "string"}}, Verdict.WIRE),
        ({"fields/token/number": 11}, Verdict.WIRE),
        ({"fields/token/type": "bytes"}, Verdict.WIRE),
        ({"fields/seat": {"number": 11, "type": "string"}}, Verdict.COMPATIBLE),
    ],
    ids=["removed", "renamed", "renumbered", "retyped", "added"],
)
def test_only_additions_keep_the_wire(edits: dict[str, Any], verdict: Verdict) -> None:
    """A field may be added with a number of its own; any other change of fields breaks the wire."""
    changed = apply_edits(
        base(), {f"types/public/messages/Order/{path}": value for path, value in edits.items()}
    )
    assert compare(spec(base()), spec(changed))[0].verdict == verdict


def _make_side(edits: dict[str, Any]) -> StoredForm:
    return normalize(spec(apply_edits(base(), edits))) if edits else stored_base()


def _reverse(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _reverse(data[key]) for key in reversed(data)}
    return [_reverse(each) for each in reversed(data)] if isinstance(data, list) else data
