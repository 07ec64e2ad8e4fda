"""No module uses a private name of another library, but for a short list of exceptions.

A name is private if it or a module on the way to it begins with one underscore, if the module ends in
`_impl`, or if its library does not document the module. Such a name may change with any release. Each
exception is still needed, and its library has an upper bound in pyproject.toml. Python itself has none, and
its exceptions are tested by running with each version.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "codegen", "handlers", "runtime", "scripts")
OURS = {*FOLDERS, "generated", "tests"}
DOCUMENTED = {"_thread", "os._exit"}
"""Public names of Python in spite of their underscore."""
UNDOCUMENTED = {"hpack.huffman_table", "hpack.table"}
"""Modules that are no part of the documented interface of their library in spite of their name."""
EXCEPTIONS = {
    "codegen/emit/http/pattern_samples.py": {
        "re._constants": "the kinds of nodes of a parsed regular expression; Python has no public ones",
        "re._parser": "the parser of regular expressions, for examples in documents only",
    },
    "runtime/transport/http/protocol.py": {
        "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol": "no option bounds a head in bytes or time",
        "uvicorn.protocols.http.httptools_impl.RequestResponseCycle": "the type of a request under way",
    },
    "runtime/transport/grpc/direct/http2/header_blocks.py": {
        "hpack.huffman_table.decode_huffman": "one string; by the public decoder it costs 4 µs more (0014)",
    },
}
"""Module, imported name, reason."""


def test_only_the_exceptions_are_used() -> None:
    """A new exception needs a reason in the list; one that is no longer needed is removed."""
    found = {
        str(path.relative_to(ROOT)): names
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := {*find_private_names(path.read_text(encoding="utf-8"))})
    }
    assert found == {module: {*names} for module, names in EXCEPTIONS.items()}


def test_the_libraries_of_exceptions_are_pinned() -> None:
    """A release that may change a private name is not installed before it was tried."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"]]
    listed += [each for extra in project["optional-dependencies"].values() for each in extra]
    bounds = {each.name: each.specifier for each in map(Requirement, listed)}
    libraries = {name.partition(".")[0] for names in EXCEPTIONS.values() for name in names}
    for library in libraries - sys.stdlib_module_names:
        operators = {each.operator for each in bounds[library]}
        assert operators & {"<", "<=", "==", "~="}, f"{library} has no upper bound in pyproject.toml"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import library._hidden", ["library._hidden"]),
        ("import library._hidden as plain", ["library._hidden"]),
        ("from library import _hidden", ["library._hidden"]),
        ("from library._hidden import Public", ["library._hidden.Public"]),
        ("from library.fast_impl import Public", ["library.fast_impl.Public"]),
        ("def late():\n    from library import _hidden", ["library._hidden"]),
        ("import library\nlibrary.part._hidden()", ["library.part._hidden"]),
        ("from library import part as other\nother._hidden", ["library.part._hidden"]),
        ("import importlib\nimportlib.import_module('library._hidden')", ["library._hidden"]),
        ("from library import _hidden\n_hidden.part.call()", ["library._hidden"]),
        ("from hpack.table import HeaderTable", ["hpack.table.HeaderTable"]),
        ("from library import Public, __version__\nself._own = Public()", []),
        ("from runtime.part import _ours\nfrom . import _near", []),
        ("import os\nos._exit(1)\nfrom _thread import allocate_lock", []),
    ],
)
def test_private_names_are_found(source: str, names: list[str]) -> None:
    """In all forms of an import, and as attributes of what was imported."""
    assert find_private_names(source) == names


def find_private_names(source: str) -> list[str]:
    """Find the private names of other libraries that a module imports, or reads from its imports."""
    nodes = list(ast.walk(ast.parse(source)))
    imported: dict[str, str] = {}
    used: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            used += [each.name for each in node.names]
            for each in node.names:
                root = each.name.partition(".")[0]
                imported[each.asname or root] = each.name if each.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            used += [f"{node.module}.{each.name}" for each in node.names]
            imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            used += _resolve_name(node, imported)
        elif isinstance(node, ast.Call) and _resolve_name(node.func, imported) == ["importlib.import_module"]:
            used += [str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)]
    found = [name for name in dict.fromkeys(used) if _is_private(name)]
    # An attribute of a private name does not count again.
    return [name for name in found if not any(name.startswith(f"{each}.") for each in found)]


def _resolve_name(node: ast.expr, imported: dict[str, str]) -> list[str]:
    """Resolve an attribute of an import to its full name; nothing for other expressions."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in imported:
        return []
    return [".".join((imported[node.id], *attributes))]


def _is_private(name: str) -> bool:
    parts = name.split(".")
    if parts[0] in OURS | {"__future__"} or {name, parts[0]} & DOCUMENTED:
        return False
    if any(name == each or name.startswith(f"{each}.") for each in UNDOCUMENTED):
        return True
    return any(
        part.endswith("_impl") or (part.startswith("_") and not part.startswith("__")) for part in parts
    )
