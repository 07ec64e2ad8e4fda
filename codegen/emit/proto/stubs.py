"""Message classes, gRPC stubs and their type stubs, compiled from the .proto files."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.emit.artefact import Artefact

_IMPORT = re.compile(r"^import (\w+_pb2)( as \w+)?$", re.MULTILINE)


class ProtocError(Exception):
    """protoc rejected a generated .proto file, which is a bug of the generator."""


def compile_protos(
    protos: Sequence[Artefact], package: str = "generated", *, typed: bool = True
) -> Iterator[Artefact]:
    """Compile all .proto files in one run of protoc, with or without types for a type checker."""
    if not protos:
        return
    # A lazy import: it is slow, and most runs need no compiler.
    import grpc_tools
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory(prefix="charter-") as scratch:
        source, output = Path(scratch, "proto"), Path(scratch, "out")
        source.mkdir()
        output.mkdir()
        for proto in protos:
            (source / Path(proto.path).name).write_text(proto.text, encoding="utf-8")
        arguments = [
            "protoc",
            f"-I{source}",
            f"-I{Path(grpc_tools.__path__[0], '_proto')}",
            f"--python_out={output}",
            f"--grpc_python_out={output}",
            *(_type_options(output) if typed else ()),
            *sorted(Path(proto.path).name for proto in protos),
        ]
        if protoc.main(arguments) != 0:
            raise ProtocError(f"protoc failed on {', '.join(arguments[-len(protos) :])}")
        for path in sorted(output.rglob("*.py*")):
            text = _rewrite_imports(path.read_text(encoding="utf-8"), package)
            yield Artefact(f"{package}/{path.relative_to(output).as_posix()}", text)


def _type_options(output: Path) -> Iterator[str]:
    yield f"--mypy_out=quiet:{output}"
    yield f"--mypy_grpc_out=quiet:{output}"
    for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc"):
        yield f"--plugin={name}={_find_tool(name)}"


def _find_tool(tool: str) -> str:
    """Find a tool of this Python environment, also when the environment is not activated."""
    return shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool) or tool


def _rewrite_imports(text: str, package: str) -> str:
    """Rewrite protoc's top-level imports to imports from the package, so that `sys.path` stays untouched."""
    return _IMPORT.sub(lambda match: f"from {package} import {match[1]}{match[2] or ''}", text)
