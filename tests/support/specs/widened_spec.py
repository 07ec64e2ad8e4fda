"""Any spec under another name, with more fields in one of its records, generated beside the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import generated
from tests.support import quick_yaml
from tests.support.specs.modules import generate_modules


@contextmanager
def generate_widened(
    spec: Path, root: Path, name: str, record: str, more: Collection[str]
) -> Iterator[list[str]]:
    """Generate the spec with further optional texts in a record; return those that it did not have before."""
    folder, added = root / "spec" / name, list[str]()
    folder.mkdir(parents=True)
    for path in spec.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        if path.stem in ("system", "deployments"):
            text = re.sub(rf"(?<= ){spec.name}(?=[\n._])", name, text)
        if path.stem == "types":
            data = quick_yaml.read(text)
            (proto,) = (each for each in data.values() if record in each.get("messages", {}))
            fields = proto["messages"][record]["fields"]
            added = sorted(each for each in more if each not in fields)
            numbered = enumerate(added, max(row["number"] for row in fields.values()) + 1)
            fields |= {
                each: {"number": number, "type": "string", "optional": True} for number, each in numbered
            }
            text = quick_yaml.write(data)
        (folder / path.name).write_text(text, encoding="utf-8")
    generate_modules(root)
    made = str(root / "generated")
    generated.__path__.append(made)
    try:
        yield added
    finally:
        generated.__path__.remove(made)
