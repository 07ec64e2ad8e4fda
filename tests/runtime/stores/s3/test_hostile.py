"""Objects that somebody else wrote: each is an entity, or it is said to be none; nothing else happens."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.node.systems import load_system
from runtime.stores.s3.changes import Changes
from runtime.stores.s3.keys import Keys, derived_uuid
from runtime.stores.s3.rows import Rows, Unreadable
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
_ROWS: Rows[Any] = Rows(_TASK, _KEPT)
_CHANGES: Changes[Any] = Changes(
    _TASK, _KEPT, Keys(_TASK, _KEPT), {"QO_MAX_CLOCK_SKEW_MS": 2000, "QO_MONITOR_GRACE": 5}, TestWorld()
)
_KEY = derived_uuid("hostile")


def _usual() -> dict[str, Any]:
    assert _TASK.record is not None
    record = _CHANGES.created(_TASK.record(id=_KEY, task_type="t", input="1"))
    found: dict[str, Any] = json.loads(_ROWS.write(record, {}))
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
        record, others = _ROWS.read(_KEY, json.dumps(found).encode())
    except Unreadable:
        return
    now = _CHANGES.now()
    _CHANGES.is_free(record, now)
    for edge in (*_TASK.edges.values(), *_TASK.by_name):
        if edge.source == _CHANGES.state(record):
            if edge.due is not None:
                _CHANGES.due_at(record, edge.due)
                _CHANGES.gives(record, edge.due)
            made, _ = _CHANGES.moved(record, edge, {"error": "x", "output": "1"}, owner="w")
            try:
                body = _ROWS.write(made, others)
            except Unstorable:
                continue
            again, _ = _ROWS.read(_KEY, body)
            assert _CHANGES.state(again) == _CHANGES.state(made)


@settings(max_examples=1000 if DEEP else 50)
@given(st.binary(max_size=40) | _ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_no_entity(body: bytes) -> None:
    try:
        _ROWS.read(_KEY, body)
    except Unreadable:
        return
    raise AssertionError(body)


def test_a_copy_is_not_the_entity_of_another_key() -> None:
    body = json.dumps(_usual()).encode()
    assert _ROWS.read(_KEY, body)
    try:
        _ROWS.read(derived_uuid("another"), body)
    except Unreadable as error:
        assert "copy" in str(error)
    else:
        raise AssertionError
