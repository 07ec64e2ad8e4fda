"""The words in the page's code are those of the spec."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "handlers/objectqueue/page").glob("*.js"))
SPEC = ROOT / "generated/objectqueue/page/spec.js"
READS = re.compile(r"""(?:fields\??\.get|counter|\.(?:text|number|time))\("(\w+)\"""")
"""How scripts read a field of a task or a worker."""
OF_XML = {"IsTruncated", "NextKeyMarker", "NextVersionIdMarker", "Key", "ETag", "LastModified", "Size"}
OF_XML |= {"Code", "Message", "Region", "VersionId", "IsLatest"}


def read_model() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SPEC.read_text().partition("export const spec = ")[2].rstrip(";\n"))
    return found


def test_fields_that_the_page_names_are_those_of_the_spec() -> None:
    """Of a task it names no field: the spec says what a field is for."""
    named = {script.name: set(READS.findall(script.read_text())) - OF_XML for script in SCRIPTS}
    named = {name: found for name, found in named.items() if found}
    assert named.keys() == {"workers.js"}
    fields = {field["name"] for field in read_model()["worker"]["fields"]}
    assert {"shards", "tasks_completed"} <= named["workers.js"] <= fields


def test_states_that_the_page_names_are_those_of_the_spec() -> None:
    """Every one has a colour, and no script names one."""
    states = [state["word"] for state in read_model()["task"]["states"]]
    colours = (ROOT / "handlers/objectqueue/page/style.css").read_text() + (
        ROOT / "handlers/objectqueue/page/parts.css"
    ).read_text()
    for state in states:
        assert f'[data-state="{state.lower()}"]' in colours
        assert not any(re.search(rf"[\"'`]{state}[\"'`]", script.read_text(), re.I) for script in SCRIPTS)
