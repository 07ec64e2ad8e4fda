"""Caches on disk of compiled templates and of texts that are the same for every spec."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from codegen import cache

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / ".charter"


def cache_texts(name: str, version: str, make: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Return the cached texts; make them again when the generator's code or the given version has changed."""
    path, key = FOLDER / f"{name}.json", f"{version} {cache.compute_digest(PROJECT, ('codegen',))}"
    with suppress(OSError, ValueError, KeyError):
        found: dict[str, dict[str, str]] = json.loads(path.read_bytes())
        return found[key]
    texts = make()
    with suppress(OSError):
        FOLDER.mkdir(exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps({key: texts}), encoding="utf-8")
        scratch.replace(path)
    return texts


class TemplateBytecodeCache(jinja2.FileSystemBytecodeCache):
    """Cache of compiled templates; without it, a run would spend most of its time compiling them."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        # The bytecode of a template depends on the options and on the version of jinja2.
        self._salt = f"{jinja2.__version__} {sorted(map(str, options.items()))}"
        super().__init__(str(FOLDER / "templates"))

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(f"{self._salt}\0{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
