"""The generator's cache from run to run: it may be lost or broken, but never wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest

from codegen.emit import template_cache as module
from codegen.emit.template_cache import TemplateBytecodeCache, cache_texts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, in a project whose generator is one file."""
    (tmp_path / "codegen").mkdir()
    (tmp_path / "codegen/code.py").write_text("1")
    monkeypatch.setattr(module, "PROJECT", tmp_path)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "kept")
    return tmp_path / "kept"


def make(text: str) -> dict[str, str]:
    return {"text": text}


def test_texts_are_rendered_once(folder: Path) -> None:
    """The second time they come from the folder."""
    assert cache_texts("name", "1", lambda: make("first")) == make("first")
    assert cache_texts("name", "1", lambda: make("second")) == make("first")


def test_texts_are_rendered_again_when_the_generator_changes(folder: Path) -> None:
    """New code of the generator or another version of its library invalidates them."""
    cache_texts("name", "1", lambda: make("first"))
    assert cache_texts("name", "2", lambda: make("second")) == make("second")
    (folder.parent / "codegen/code.py").write_text("2")
    assert cache_texts("name", "2", lambda: make("third")) == make("third")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"{}"])
def test_a_broken_file_is_rendered_again(folder: Path, content: bytes) -> None:
    """A truncated or foreign file is no reason to fail."""
    cache_texts("name", "1", lambda: make("first"))
    (folder / "name.json").write_bytes(content)
    assert cache_texts("name", "1", lambda: make("second")) == make("second")


def test_an_unwritable_cache_is_no_error(folder: Path) -> None:
    """Where nothing can be written, everything is rendered each time."""
    folder.write_text("a file where the folder should be")
    assert cache_texts("name", "1", lambda: make("first")) == make("first")
    assert render("{{ 1 + 1 }}", {}) == "2"


def test_a_template_compiled_under_other_options_is_not_used(folder: Path) -> None:
    """The options of the environment count, not only the text of the template."""
    text = "{% if true %}\nx\n{% endif %}\n"
    assert render(text, {"trim_blocks": True}) == "x\n"
    assert render(text, {"trim_blocks": False}) == "\nx\n"
    assert len(list((folder / "templates").iterdir())) == 1


def render(text: str, options: dict[str, Any]) -> str:
    """The text as a new process would render it."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({"template": text}), bytecode_cache=TemplateBytecodeCache(options), **options
    )
    return environment.get_template("template").render()
