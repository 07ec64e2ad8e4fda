"""Router: find the resource of a path, with its methods."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

Handler = TypeVar("Handler")
_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")


class RouteMatch(NamedTuple, Generic[Handler]):
    """A matched resource, and its path parameters."""

    methods: Mapping[str, Handler]
    allow: str
    parameters: Mapping[str, str]


class Routes(Generic[Handler]):
    """All routes of a node.

    A fixed path has precedence over a placeholder. The routes in `any_value`, each a method and a path, are a
    fallback for methods that the fixed path does not have.
    """

    def __init__(
        self, routes: Iterable[tuple[str, str, Handler]], any_value: Collection[tuple[str, str]] = ()
    ) -> None:
        resources: dict[str, dict[str, Handler]] = {}
        for method, path, handler in routes:
            resources.setdefault(path, {})[method] = handler
        self._fixed: dict[bytes, RouteMatch[Handler]] = {}
        self._patterns: list[tuple[re.Pattern[str], list[str], Mapping[str, Handler], str]] = []
        # The longer the fixed part of a path, the earlier it is tried.
        for path, methods in sorted(resources.items(), key=lambda each: -len(_PLACEHOLDER.sub("", each[0]))):
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])
            allow = ", ".join(sorted({*methods, "OPTIONS"}))
            if names := _PLACEHOLDER.findall(path):
                self._patterns.append((_compile_path(path), names, methods, allow))
            else:
                self._fixed[path.encode()] = RouteMatch(methods, allow, {})
        self._fallbacks: dict[tuple[bytes, str], RouteMatch[Handler]] = {}
        for method, path in any_value:
            for raw_path in self._fixed:
                if _compile_path(path).fullmatch(raw_path.decode()) and (
                    found := self._match_pattern(raw_path)
                ):
                    self._fallbacks[raw_path, method] = found

    def find(self, raw_path: bytes, method: str) -> RouteMatch[Handler] | None:
        """Find the resource of a path in its percent-encoded form."""
        fixed = self._fixed.get(raw_path)
        if fixed is None:
            return self._match_pattern(raw_path)
        return fixed if method in fixed.methods else self._fallbacks.get((raw_path, method), fixed)

    def _match_pattern(self, raw_path: bytes) -> RouteMatch[Handler] | None:
        path = raw_path.decode("ascii", "replace")
        for pattern, names, methods, allow in self._patterns:
            if (match := pattern.fullmatch(path)) is not None:
                # Invalid UTF-8 becomes U+FFFD, which no key has.
                values = map(unquote, match.groups())
                return RouteMatch(methods, allow, dict(zip(names, values, strict=True)))
        return None


def _compile_path(path: str) -> re.Pattern[str]:
    # Every second part is the name of a placeholder.
    parts = enumerate(_PLACEHOLDER.split(path))
    return re.compile("".join("([^/]+)" if index % 2 else re.escape(part) for index, part in parts))
