"""Settings: parse environment variables into typed values, with all problems in one error."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from runtime.model.system import Variable, VariableRule


class SettingsError(Exception):
    """Missing or invalid variables: one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def find_unknown_variables(
    prefix: str | None, known: Mapping[str, Variable], environ: Mapping[str, str]
) -> list[str]:
    """Return a sentence for each variable that has the prefix of the system and is unknown."""
    if prefix is None:
        return []
    names = [name for row in known.values() for name in (row.name, *row.also_named)]
    ours = [name for name in names if name.startswith(prefix)]
    found: list[str] = []
    for name in sorted(environ):
        if name.startswith(prefix) and name not in names:
            close = get_close_matches(name, ours, 1)
            found.append(f"{name} is set, and nothing reads it" + (f"; {close[0]}?" if close else ""))
    return found


class _InvalidValue(Exception):
    """Why a text is not a valid value of its type."""


def read(
    variables: Iterable[Variable],
    rules: Iterable[VariableRule],
    environ: Mapping[str, str],
    defaults: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Read the values of variables; raises SettingsError. An empty variable counts as unset."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for variable in variables:
        try:
            values[variable.name] = _read_value(variable, environ, defaults or {})
        except _InvalidValue as error:
            problems.append(f"{variable.name}: {error} ({variable.meaning.rstrip('.')})")
    problems += [problem for rule in rules for problem in _find_breaches(rule, values)]
    if problems:
        raise SettingsError(problems)
    return values


def _read_value(variable: Variable, environ: Mapping[str, str], defaults: Mapping[str, str]) -> Any:
    named = next((environ[name] for name in (variable.name, *variable.also_named) if environ.get(name)), None)
    if variable.choices and not environ.get(variable.name) and named not in variable.choices:
        named = None  # Other programs read the alias too, and know other values of it.
    text = named or defaults.get(variable.name) or variable.default
    if not text and variable.default_from:
        text = _DEFAULTS[variable.default_from]()
    if not text:
        if variable.required:
            raise _InvalidValue("is required and not set")
        # An empty default of a text is a value.
        return variable.default
    value = _PARSERS.get(variable.type, _parse_text)(variable, text)
    return min(max(value, variable.clamp[0]), variable.clamp[1]) if variable.clamp else value


_RANDOM = secrets.token_hex(4)
"""One value for the whole process."""


def _make_process_name() -> str:
    """Make a unique name of this process, different also from a later one with the same pid."""
    return f"{socket.gethostname()}-{os.getpid()}-{_RANDOM}"


_DEFAULTS: Mapping[str, Callable[[], str]] = {"hostname": socket.gethostname, "process": _make_process_name}


def _find_breaches(rule: VariableRule, values: Mapping[str, Any]) -> Iterable[str]:
    """Find breaches of a rule, if all its variables were read by this process."""
    if rule.together:
        if all(name in values for name in rule.together):
            given = [name for name in rule.together if values[name] is not None]
            if given and len(given) < len(rule.together):
                missing = ", ".join(name for name in rule.together if name not in given)
                yield f"{', '.join(given)}: needs {missing} too ({rule.meaning})"
        return
    value = values.get(rule.variable or "")
    greater = values.get(rule.greater_than or "")
    if value is not None and greater is not None and not value > greater:
        yield (
            f"{rule.variable}: {value} must be greater than {rule.greater_than}, which is {greater} "
            f"({rule.meaning})"
        )
    counted = values.get(rule.less_than_count_of or "")
    if value is not None and counted is not None and not value < len(counted):
        yield (
            f"{rule.variable}: {value} must be less than {len(counted)}, "
            f"the count of {rule.less_than_count_of} ({rule.meaning})"
        )


def resolve_host(host: str, values: Mapping[str, Any]) -> str:
    """Resolve the address to listen on; `${NAME}` is the value of a variable."""
    return str(values[host[2:-1]]) if host.startswith("${") else host


def _parse_text(variable: Variable, text: str) -> str:
    if variable.pattern is not None and re.fullmatch(variable.pattern, text) is None:
        raise _InvalidValue(f"must match {variable.pattern}, not {text!r}")
    return text


def _parse_int(variable: Variable, text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text.strip()):
        raise _InvalidValue(f"must be a whole number, not {text!r}")
    number = int(text)
    _check_bounds(variable, number)
    return number


def _parse_number(variable: Variable, text: str) -> float:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?", text.strip()):
        raise _InvalidValue(f"must be a number, not {text!r}")
    number = float(text)
    _check_bounds(variable, number)
    return number


def _check_bounds(variable: Variable, number: float) -> None:
    low, high = variable.minimum, variable.maximum
    if low is not None and number < low:
        raise _InvalidValue(f"must be at least {low}, not {number}")
    if high is not None and number > high:
        raise _InvalidValue(f"must be at most {high}, not {number}")


def _parse_bool(_variable: Variable, text: str) -> bool:
    if text.strip().lower() not in _BOOLS:
        raise _InvalidValue(f"must be true or false, not {text!r}")
    return _BOOLS[text.strip().lower()]


_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def _parse_url(_variable: Variable, text: str) -> str:
    # The text is not shown: a URL may hold a password.
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/]+(/\S*)?", text):
        raise _InvalidValue("must be a URL such as scheme://user:password@host:port/name")
    return text


def _parse_port(variable: Variable, text: str) -> int:
    lowest = 1 if variable.minimum is None else int(variable.minimum)
    if not re.fullmatch(r"[0-9]{1,5}", text) or not lowest <= int(text) <= 65535:
        raise _InvalidValue(f"must be a port from {lowest} to 65535, not {text!r}")
    return int(text)


def _parse_address(variable: Variable, text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or any(letter.isspace() for letter in text):
        raise _InvalidValue(f"must be host:port, not {text!r}")
    _parse_port(variable, port)
    return text


def _parse_addresses(variable: Variable, text: str) -> tuple[str, ...]:
    found = tuple(_parse_address(variable, each.strip()) for each in text.split(","))
    if len(set(found)) < len(found):
        raise _InvalidValue("must not name an address twice")
    return found


def _parse_choice(variable: Variable, text: str) -> str:
    if text not in variable.choices:
        raise _InvalidValue(f"must be one of {', '.join(variable.choices)}, not {text!r}")
    return text


def _parse_path(_variable: Variable, text: str) -> str:
    if not Path(text).is_file():
        raise _InvalidValue(f"must be a file that exists, not {text!r}")
    return text


def _parse_data_path(_variable: Variable, text: str) -> str:
    # It is created where it does not exist yet; whether that is possible shows then.
    if not text.strip() or "\0" in text:
        raise _InvalidValue(f"must be the path of a file or folder, not {text!r}")
    return text


def _parse_digests(_variable: Variable, text: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in text.split(","):
        name, _, digest = part.strip().partition("=")
        if not name or not re.fullmatch(r"[0-9a-f]{64}", digest):
            # The text is not shown: it may be a token that was set instead of its digest.
            raise _InvalidValue("must be name=digest pairs, each digest the lowercase hex SHA-256 of a token")
        found[name] = bytes.fromhex(digest)
    return found


_PARSERS: Mapping[str, Callable[[Variable, str], Any]] = {
    "int": _parse_int,
    "number": _parse_number,
    "bool": _parse_bool,
    "url": _parse_url,
    "port": _parse_port,
    "address": _parse_address,
    "addresses": _parse_addresses,
    "choice": _parse_choice,
    "path": _parse_path,
    "data_path": _parse_data_path,
    "digests": _parse_digests,
}
