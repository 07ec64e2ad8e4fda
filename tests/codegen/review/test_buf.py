"""buf and the review agree on breaking changes of the wire."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.proto import proto_files
from codegen.review import Verdict, compare
from codegen.review.form import encode_form
from codegen.source.loader import load
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.review_forms import apply_edits, spec
from tests.support.codegen.review_project import LOCKER

BUF = Path(sys.executable).with_name("buf")
# The wire, and methods that a current caller would miss on it.
RULES = ["WIRE_JSON", "RPC_NO_DELETE", "SERVICE_NO_DELETE", "MESSAGE_NO_DELETE", "ENUM_NO_DELETE"]
CONFIG = {"version": "v2", "modules": [{"path": "proto"}], "breaking": {"use": RULES}}
ITEM = "types/desk/messages/Item"
SIZE = "types/desk/enums/ParcelSize"
VAULT = "services/services/VaultService/methods"
LOST_FIELD = "FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED"
LOST_VALUE = "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED"


@pytest.mark.req("TQ-209")
@pytest.mark.parametrize(
    ("edits", "rule"),
    [
        ({f"{ITEM}/fields/colour": {"number": 3, "type": "string"}}, ""),
        ({f"{SIZE}/values/HUGE": {"number": 4}}, ""),
        ({"types/desk/messages/Hat": {"fields": {"size": {"number": 1, "type": "uint32"}}}}, ""),
        ({f"{ITEM}/reserved": {"numbers": [9], "names": ["hat"]}}, ""),
        ({f"{ITEM}/fields/note": None}, LOST_FIELD),
        (
            {f"{ITEM}/fields/note": None, f"{ITEM}/fields/text": {"number": 2, "type": "string"}},
            "FIELD_SAME_NAME",
        ),
        ({f"{ITEM}/fields/note/number": 3}, LOST_FIELD),
        ({f"{ITEM}/fields/note/type": "uint64"}, "FIELD_WIRE_JSON_COMPATIBLE_TYPE"),
        ({f"{SIZE}/values/LARGE": None}, LOST_VALUE),
        ({f"{SIZE}/values/LARGE/number": 5}, LOST_VALUE),
        ({"types/desk/messages/Parcel/reserved/numbers": []}, "RESERVED_MESSAGE_NO_DELETE"),
        ({f"{VAULT}/ReadParcel": None}, "RPC_NO_DELETE"),
        ({f"{VAULT}/MoveParcel/response": "ReadParcelResponse"}, "RPC_SAME_RESPONSE_TYPE"),
    ],
)
def test_buf_agrees(tmp_path: Path, edits: dict[str, Any], rule: str) -> None:
    """Where the review says that the wire breaks buf says so too, and where it does not buf is silent."""
    old, new = _make_locker({}), _make_locker(edits)
    breaks = any(each.verdict is Verdict.WIRE for each in compare(old, new))
    output = _run_buf_breaking(tmp_path, old, new)
    assert (breaks, bool(output)) == (bool(rule), bool(rule))
    assert rule in output


def test_a_reserved_deletion_keeps_the_wire(tmp_path: Path) -> None:
    """A field removed with number and name reserved changes behaviour but not the wire, for buf as well."""
    old = _make_locker({})
    new = _make_locker({f"{ITEM}/fields/note": None, f"{ITEM}/reserved": {"numbers": [2], "names": ["note"]}})
    assert compare(old, new)[0].verdict is Verdict.BEHAVIOUR
    assert _run_buf_breaking(tmp_path, old, new) == ""


def _make_locker(edits: dict[str, Any]) -> Spec:
    return spec(apply_edits(encode_form(load(LOCKER)), edits))


def _run_buf_breaking(root: Path, old: Spec, new: Spec) -> str:
    for name, each in (("old", old), ("new", new)):
        for artefact in proto_files.emit(each):
            path = root / name / artefact.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(artefact.text, encoding="utf-8")
        (root / name / "buf.yaml").write_text(quick_yaml.write(CONFIG), encoding="utf-8")
    command = [str(BUF), "breaking", "new", "--against", "old", "--error-format", "json"]
    completed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert completed.returncode in (0, 100), completed.stderr
    assert "COMPILE" not in completed.stdout
    return completed.stdout
