"""Sentences in a spec may be any text; the generated files stay valid."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.artefact import format_docstring
from codegen.generate import build
from tests.support import quick_yaml
from tests.support.codegen.projects import BAKERY, LOCKER
from tests.support.deep import DEEP

SENTENCES = [
    'It says "no"',
    'Three quotes """ and more"',
    "A path C:\\new\\user \\",
    "Two\nlines",
    "{braces}, {{ templates }}, {% tags %} and %s",
    "# hash // slash */ --> <b> & | `tick`",
    "Später ✓ \u2028 ",
    " ".join(["long"] * 60),
]
CASES = [
    (spec, sentence)
    for index, sentence in enumerate(SENTENCES)
    for spec in ((LOCKER, BAKERY) if DEEP else ((LOCKER, BAKERY)[index % 2],))
]
"""Each sentence in one of two specs, and with `--deep` in both."""
PROSE = {"doc", "trigger", "title", "summary", "owns"}


@pytest.mark.parametrize(("spec", "sentence"), CASES, ids=lambda each: getattr(each, "name", None))
def test_any_sentence_gives_valid_files(spec: Path, sentence: str, tmp_path: Path) -> None:
    """With an odd sentence in every place for one, all Python compiles, YAML loads, and protoc succeeds."""
    for path in spec.glob("*.yaml"):
        target = tmp_path / "spec" / spec.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        data = replace_sentences(quick_yaml.read(path.read_text(encoding="utf-8")), sentence)
        target.write_text(quick_yaml.write(data), encoding="utf-8")
    wanted, outcome = build(tmp_path)
    assert not outcome.diagnostics
    for name, text in wanted.items():
        if name.endswith((".py", ".pyi")):
            ast.parse(text, name)
        if name.endswith(".yaml"):
            list(quick_yaml.read_all(text))
        if name.startswith(f"generated/{spec.name}/") and name.endswith(".py"):
            assert max(map(len, list_code_lines(text))) <= 110, name


def replace_sentences(data: Any, sentence: str) -> Any:
    """A spec in which every sentence is this one."""
    if isinstance(data, dict):
        return {
            key: sentence if key in PROSE and isinstance(value, str) else replace_sentences(value, sentence)
            for key, value in data.items()
        }
    return [replace_sentences(each, sentence) for each in data] if isinstance(data, list) else data


def list_code_lines(text: str) -> list[str]:
    """The lines of a module without comments and one-line strings, which no formatter may break."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        plain = token.type == tokenize.STRING and token.start[0] == token.end[0]
        if token.type == tokenize.COMMENT or plain:
            lines[token.start[0] - 1] = ""
    return lines


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("indent", [0, 4, 8])
def test_a_docstring_is_the_sentence_of_the_spec(sentence: str, indent: int) -> None:
    """Read by Python, the text between the quotes is the sentence of the spec, line breaks apart."""
    literal = f'"""{format_docstring(sentence, indent)}"""'
    assert " ".join(ast.literal_eval(literal).split()) == " ".join(sentence.split())
    assert all(len(line) <= 110 for line in f"{' ' * indent}{literal}".splitlines())
