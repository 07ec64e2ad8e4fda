"""Parameter types of addresses, URLs, tokens and certificate files."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from runtime.transport.tls import Credentials


class Addresses(click.ParamType[str]):
    """One or more HOST:PORT, separated by commas."""

    name = "addresses"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = [each.strip() for each in str(value).split(",")]
        for each in found:
            host, _, port = each.rpartition(":")
            if "://" in each or "/" in each:
                self.fail(f"{each!r} is a URL; HOST:PORT is wanted, where gRPC is spoken.", param, ctx)
            if not host or not re.fullmatch(r"[0-9]{1,5}", port):
                self.fail(f"{each!r} is not HOST:PORT.", param, ctx)
            if not 0 < int(port) < 65536:
                self.fail(f"{each!r} has no port from 1 to 65535.", param, ctx)
            if (":" in host and not re.fullmatch(r"\[[0-9A-Fa-f:.%]+\]", host)) or re.search(r"\s", host):
                self.fail(f"{each!r} is not HOST:PORT; an IPv6 address stands in brackets.", param, ctx)
        return ",".join(found)


class Url(click.ParamType[str]):
    """An HTTP URL."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parts = urlsplit(str(value))
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url or not str(value).isascii() or re.search(r"\s", str(value)):
            self.fail(f"{value!r} is not a URL such as http://127.0.0.1:8100.", param, ctx)
        return str(value)


class Token(click.ParamType[str]):
    """A token that is valid in a header."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"[ -~]*", str(value)):
            self.fail("a token has only printable ASCII characters.", param, ctx)
        return str(value)


class AuthorityFile(click.Path):
    """A file with the certificate of an authority."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            Credentials(found.read_bytes()).for_client()
        except (OSError, ssl.SSLError, TypeError, ValueError):
            self.fail(f"{found} has no certificate in PEM form.", param, ctx)
        return found
