"""Objects that somebody else wrote: each is an entity, or it is said to be none; nothing else happens."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.node.systems import load_system
from runtime.stores.s3.codec import ObjectCodec, Unreadable
from runtime.stores.s3.keys import derived_uuid
from runtime.stores.semantics.clocks import due_at, due_given
from runtime.stores.semantics.creation import created
from runtime.stores.semantics.edges import take_edge
from runtime.stores.semantics.leases import free_at, is_free
from runtime.stores.semantics.rules import prepare_rules
from runtime.stores.store import Unstorable
from tests.runtime.stores.s3.kit import TestWorld
from tests.support.deep import DEEP

_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["Running", "Pending", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
_TASK = load_system("objectqueue").lifecycles["task"]
assert _TASK.in_s3 is not None
_KEPT = _TASK.in_s3
_CODEC: ObjectCodec[Any] = ObjectCodec(_TASK, _KEPT)
assert _TASK.record is not None
_RULES = prepare_rules(_TASK, _TASK.record, {"QO_MONITOR_GRACE": 5})
_WORLD = TestWorld()
_NOW = _WORLD.now_ms() * 1000
_KEY = derived_uuid("hostile")


def _usual() -> dict[str, Any]:
    assert _TASK.record is not None
    record = created(_RULES, _TASK.record(id=_KEY, task_type="t", input="1"), _NOW)
    found: dict[str, Any] = json.loads(_CODEC.encode(record, {}))
    return found


@settings(max_examples=1000 if DEEP else 50)
@given(st.dictionaries(st.sampled_from(sorted(_usual())), _ANYTHING, min_size=1, max_size=3), st.booleans())
def test_any_field_may_be_anything(changed: dict[str, Any], is_running: bool) -> None:
    """What is taken for an entity can be leased, swept and settled, and written again."""
    assert _TASK.lease is not None
    found = {
        **_usual(),
        **({"status": "Running", "lease_expires_at": "2026-01-01T00:00:00Z"} if is_running else {}),
    }
    found.update(changed)
    try:
        record, others = _CODEC.decode(_KEY, json.dumps(found).encode())
    except Unreadable:
        return
    assert not is_free(_RULES, record) or free_at(_RULES, record) is not None
    for edge in (*_TASK.edges.values(), *_TASK.by_name):
        if edge.source == _RULES.state(record):
            for due in edge.dues:
                due_at(_RULES, due, record)
                due_given(due, record)
            given_ = {"error": "x", "output": "1"}
            made, _ = take_edge(_RULES, edge, record, given_, _NOW, _WORLD, owner="w")
            try:
                body = _CODEC.encode(made, others)
            except Unstorable:
                continue
            again, _ = _CODEC.decode(_KEY, body)
            assert _RULES.state(again) == _RULES.state(made)


@settings(max_examples=1000 if DEEP else 50)
@given(st.binary(max_size=40) | _ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_no_entity(body: bytes) -> None:
    try:
        _CODEC.decode(_KEY, body)
    except Unreadable:
        return
    raise AssertionError(body)


def test_a_copy_is_not_the_entity_of_another_key() -> None:
    body = json.dumps(_usual()).encode()
    assert _CODEC.decode(_KEY, body)
    try:
        _CODEC.decode(derived_uuid("another"), body)
    except Unreadable as error:
        assert "copy" in str(error)
    else:
        raise AssertionError
