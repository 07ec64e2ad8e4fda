"""Finds what a path stands for: the resources of a node, with the methods of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
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

    A path that stands for itself is never taken for the value of a placeholder, but by the routes named in
    `any_value`, each a method and a path, for a method that it does not have itself.
    """

    def __init__(
        self, routes: Iterable[tuple[str, str, Handler]], any_value: Collection[tuple[str, str]] = ()
    ) -> None:
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
        self._also: dict[tuple[bytes, str], Found[Handler]] = {}
        for method, path in any_value:
            for raw_path in self._fixed:
                if _pattern(path).fullmatch(raw_path.decode()) and (found := self._matched(raw_path)):
                    self._also[raw_path, method] = found

    def find(self, raw_path: bytes, method: str) -> Found[Handler] | None:
        """The resource at a path as it was sent, percent signs and all."""
        fixed = self._fixed.get(raw_path)
        if fixed is None:
            return self._matched(raw_path)
        return fixed if method in fixed.methods else self._also.get((raw_path, method), fixed)

    def _matched(self, raw_path: bytes) -> Found[Handler] | None:
        path = raw_path.decode("ascii", "replace")
        for pattern, names, methods, allow in self._patterns:
            if (match := pattern.fullmatch(path)) is not None:
                # Bytes that are no text become U+FFFD, under which nothing is ever found.
                values = map(unquote, match.groups())
                return Found(methods, allow, dict(zip(names, values, strict=True)))
        return None


def _pattern(path: str) -> re.Pattern[str]:
    # Every second part is the name of a placeholder.
    parts = enumerate(_PLACEHOLDER.split(path))
    return re.compile("".join("([^/]+)" if index % 2 else re.escape(part) for index, part in parts))
