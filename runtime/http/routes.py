"""Finds what a path stands for: the resources of a node, with the methods of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

Handler = TypeVar("Handler")
_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")


class Found(NamedTuple, Generic[Handler]):
    """A resource, and what the placeholders of its path stand for."""

    methods: Mapping[str, Handler]
    allow: str
    parameters: Mapping[str, str]


class Routes(Generic[Handler]):
    """All routes of a node.

    A path that stands for itself is taken for the value of a placeholder only by a method that it does not
    have itself.
    """

    def __init__(self, routes: Iterable[tuple[str, str, Handler]]) -> None:
        resources: dict[str, dict[str, Handler]] = {}
        for method, path, handler in routes:
            resources.setdefault(path, {})[method] = handler
        self._fixed: dict[bytes, Found[Handler]] = {}
        self._patterns: list[tuple[re.Pattern[str], list[str], Mapping[str, Handler], str]] = []
        # The more of a path is fixed, the sooner it is tried.
        for path, methods in sorted(resources.items(), key=lambda each: -len(_PLACEHOLDER.sub("", each[0]))):
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])
            allow = ", ".join(sorted({*methods, "OPTIONS"}))
            if names := _PLACEHOLDER.findall(path):
                self._patterns.append((_pattern(path), names, methods, allow))
            else:
                self._fixed[path.encode()] = Found(methods, allow, {})

    def find(self, raw_path: bytes, method: str) -> Found[Handler] | None:
        """The resource at a path as it was sent, percent signs and all; one with the method, if there is."""
        fixed = self._fixed.get(raw_path)
        if fixed is not None and method in fixed.methods:
            return fixed
        path = raw_path.decode("ascii", "replace")
        first = fixed
        for pattern, names, methods, allow in self._patterns:
            if (match := pattern.fullmatch(path)) is not None:
                # Bytes that are no text become U+FFFD, under which nothing is ever found.
                values = map(unquote, match.groups())
                found = Found(methods, allow, dict(zip(names, values, strict=True)))
                if method in methods:
                    return found
                first = first or found
        return first


def _pattern(path: str) -> re.Pattern[str]:
    # Every second part is the name of a placeholder.
    parts = enumerate(_PLACEHOLDER.split(path))
    return re.compile("".join("([^/]+)" if index % 2 else re.escape(part) for index, part in parts))
