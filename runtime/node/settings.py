"""The environment as typed values, with everything that is wrong with it in one message."""

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
    """Variables that are missing or wrong: one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def strangers(prefix: str | None, known: Mapping[str, Variable], environ: Mapping[str, str]) -> list[str]:
    """A sentence for each name in the environment that begins as ours do and is none of them."""
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


class _Wrong(Exception):
    """Why a text is no value of its type."""


def read(
    variables: Iterable[Variable],
    rules: Iterable[VariableRule],
    environ: Mapping[str, str],
    defaults: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The values of some variables. An empty variable counts as unset."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for variable in variables:
        try:
            values[variable.name] = _value(variable, environ, defaults or {})
        except _Wrong as wrong:
            problems.append(f"{variable.name}: {wrong} ({variable.meaning.rstrip('.')})")
    problems += [problem for rule in rules for problem in _breaches(rule, values)]
    if problems:
        raise SettingsError(problems)
    return values


def _value(variable: Variable, environ: Mapping[str, str], defaults: Mapping[str, str]) -> Any:
    named = next((environ[name] for name in (variable.name, *variable.also_named) if environ.get(name)), None)
    if variable.choices and not environ.get(variable.name) and named not in variable.choices:
        named = None  # The other name is that of other programs too, which know other words.
    text = named or defaults.get(variable.name) or variable.default
    if not text and variable.default_from:
        text = _DEFAULTS[variable.default_from]()
    if not text:
        if variable.required:
            raise _Wrong("is required and not set")
        # A text that is empty by default is a text.
        return variable.default
    value = _PARSERS.get(variable.type, _text)(variable, text)
    return min(max(value, variable.clamp[0]), variable.clamp[1]) if variable.clamp else value


_RANDOM = secrets.token_hex(4)
"""The same for all that one process reads."""


def _process() -> str:
    """A name that no other process has, also not one that gets the same number after this one."""
    return f"{socket.gethostname()}-{os.getpid()}-{_RANDOM}"


_DEFAULTS: Mapping[str, Callable[[], str]] = {"hostname": socket.gethostname, "process": _process}


def _breaches(rule: VariableRule, values: Mapping[str, Any]) -> Iterable[str]:
    """Breaches of a rule whose variables were all read; others are no business of this process."""
    if rule.together:
        if all(name in values for name in rule.together):
            given = [name for name in rule.together if values[name] is not None]
            if given and len(given) < len(rule.together):
                lacking = ", ".join(name for name in rule.together if name not in given)
                yield f"{', '.join(given)}: needs {lacking} too ({rule.meaning})"
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


def host_in(host: str, values: Mapping[str, Any]) -> str:
    """An address to listen on; `${NAME}` is what a variable says."""
    return str(values[host[2:-1]]) if host.startswith("${") else host


def _text(variable: Variable, text: str) -> str:
    if variable.pattern is not None and re.fullmatch(variable.pattern, text) is None:
        raise _Wrong(f"must match {variable.pattern}, not {text!r}")
    return text


def _int(variable: Variable, text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text.strip()):
        raise _Wrong(f"must be a whole number, not {text!r}")
    number = int(text)
    _check_bounds(variable, number)
    return number


def _number(variable: Variable, text: str) -> float:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?", text.strip()):
        raise _Wrong(f"must be a number, not {text!r}")
    number = float(text)
    _check_bounds(variable, number)
    return number


def _check_bounds(variable: Variable, number: float) -> None:
    low, high = variable.minimum, variable.maximum
    if low is not None and number < low:
        raise _Wrong(f"must be at least {low}, not {number}")
    if high is not None and number > high:
        raise _Wrong(f"must be at most {high}, not {number}")


def _bool(_variable: Variable, text: str) -> bool:
    if text.strip().lower() not in _BOOLS:
        raise _Wrong(f"must be true or false, not {text!r}")
    return _BOOLS[text.strip().lower()]


_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def _url(_variable: Variable, text: str) -> str:
    # The text is not shown: a URL may hold a password.
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/]+(/\S*)?", text):
        raise _Wrong("must be a URL such as scheme://user:password@host:port/name")
    return text


def _port(variable: Variable, text: str) -> int:
    lowest = 1 if variable.minimum is None else int(variable.minimum)
    if not re.fullmatch(r"[0-9]{1,5}", text) or not lowest <= int(text) <= 65535:
        raise _Wrong(f"must be a port from {lowest} to 65535, not {text!r}")
    return int(text)


def _address(variable: Variable, text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or any(letter.isspace() for letter in text):
        raise _Wrong(f"must be host:port, not {text!r}")
    _port(variable, port)
    return text


def _addresses(variable: Variable, text: str) -> tuple[str, ...]:
    found = tuple(_address(variable, each.strip()) for each in text.split(","))
    if len(set(found)) < len(found):
        raise _Wrong("must not name an address twice")
    return found


def _choice(variable: Variable, text: str) -> str:
    if text not in variable.choices:
        raise _Wrong(f"must be one of {', '.join(variable.choices)}, not {text!r}")
    return text


def _path(_variable: Variable, text: str) -> str:
    if not Path(text).is_file():
        raise _Wrong(f"must be a file that exists, not {text!r}")
    return text


def _data_path(_variable: Variable, text: str) -> str:
    # It is made where it is not there yet; whether that can be done shows when it is.
    if not text.strip() or "\0" in text:
        raise _Wrong(f"must be the path of a file or folder, not {text!r}")
    return text


def _digests(_variable: Variable, text: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in text.split(","):
        name, _, digest = part.strip().partition("=")
        if not name or not re.fullmatch(r"[0-9a-f]{64}", digest):
            # The text is not shown: whoever mixes up token and digest must not find the token in a log.
            raise _Wrong("must be name=digest pairs, each digest the lowercase hex SHA-256 of a token")
        found[name] = bytes.fromhex(digest)
    return found


_PARSERS: Mapping[str, Callable[[Variable, str], Any]] = {
    "int": _int,
    "number": _number,
    "bool": _bool,
    "url": _url,
    "port": _port,
    "address": _address,
    "addresses": _addresses,
    "choice": _choice,
    "path": _path,
    "data_path": _data_path,
    "digests": _digests,
}
