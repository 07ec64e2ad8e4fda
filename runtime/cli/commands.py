"""Commands for the methods of a system that external principals may call."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from google.protobuf import json_format
from google.protobuf.message import Message

from runtime.call.conditions import Failure
from runtime.cli.failures import ENDED_IN_FAILURE, UNREACHED, format_failure
from runtime.cli.fields import RequestField, build_request, list_request_fields
from runtime.cli.json_form import format_json
from runtime.cli.location import find_address, make_location_options
from runtime.cli.place_types import Addresses, AuthorityFile, Token
from runtime.cli.places import (
    check_files,
    choose_token,
    default_address,
    grpc_ingress,
    token_variables,
)
from runtime.cli.show import AnswerFormat, show
from runtime.cli.values import Text, Whole
from runtime.cli.watch import NotFinal, Watch, find_watch, wait_until_final
from runtime.model.system import Method, System, Violation
from runtime.node.systems import load_system, outside_principals

_RESERVED = (
    *("address", "ca-file", "cert-file", "deadline-ms", "help", "json", "key-file", "token", "watch", "wide"),
)
_LONGEST_MS = 2**31 - 1


def method_commands(name: str) -> dict[str, click.Command]:
    """Make the commands of a system, by name. Methods of equal name have that of their service in front.

    There are none for a system or a service without a gRPC listener.
    """
    system = load_system(name)
    outside = set(outside_principals(system))
    methods = [
        (service, method)
        for service, table in system.services.items()
        if any(grpc_ingress(each, service) for each in system.deployments.values())
        for method in table.methods
        if outside & set(system.matrix.get(method.path, ()))
    ]
    used = Counter(method.attribute for _, method in methods)
    callable_methods = [method for _, method in methods]
    found: dict[str, click.Command] = {}
    for service, method in methods:
        shown = method.attribute.replace("_", "-")
        if used[method.attribute] > 1:
            shown = f"{service}.{shown}"
        found[shown] = _Command(system, service, method, shown, callable_methods)
    return found


class _Command(click.Command):
    """The command of one method: its request fields are options, the key of an entity may be an argument."""

    def __init__(
        self, system: System, service: str, method: Method, name: str, callable_methods: list[Method]
    ) -> None:
        self._system = system
        self._service = service
        self._method = method
        self._location = make_location_options(system, service)
        taken = [each.name.replace("_", "-") for each in self._location if each.name]
        self._fields = list_request_fields(method.request, (*_RESERVED, *taken))
        self._watch = find_watch(system, method, callable_methods)
        self._key = next((each for each in self._fields if _is_key(system, each)), None)
        doc = getattr(system.clients[service], method.attribute).__doc__
        super().__init__(name, params=self._parameters(), callback=self._run, help=doc, short_help=doc)

    def _parameters(self) -> list[click.Parameter]:
        key = self._key
        found: list[click.Parameter] = [field.parameter() for field in self._fields]
        if key is not None:
            metavar = f"[{key.path[0].upper()}]"
            found.insert(0, click.Argument(["positional"], required=False, metavar=metavar, type=Text()))
        if self._watch is not None:
            entity = self._watch.lifecycle.entity
            found.append(
                click.Option(
                    ["--watch"],
                    is_flag=True,
                    help=f"Wait until the {entity} has ended; exit code {ENDED_IN_FAILURE} if it failed.",
                )
            )
        options = _call_options(self._system, self._service, self._method, is_announced=bool(self._location))
        return [*found, *self._location, *options]

    def _run(self, **given: Any) -> None:
        request = self._make_request(given)
        if given["address"] is None:
            given["address"] = asyncio.run(find_address(self._system, self._service, given))
        address, ca_file = given["address"], given["ca_file"]
        watch = self._watch if given.get("watch") else None
        check_files(ca_file, given["cert_file"], given["key_file"])
        variable = None
        if not given["token"]:
            methods = (self._method, watch.reader) if watch is not None else (self._method,)
            variable = choose_token(self._system, methods, os.environ)
            given["token"] = os.environ[variable] if variable is not None else None
        try:
            answer = asyncio.run(self._call(request, watch, given))
        except Failure as failure:
            message, code = format_failure(failure, address, tls=ca_file is not None)
            click.echo(message + self._token_advice(failure, given, variable), err=True)
            raise click.exceptions.Exit(code) from None
        except NotFinal as still:
            click.echo(str(still), err=True)
            raise click.exceptions.Exit(UNREACHED) from None
        if given["as_json"]:
            click.echo(format_json(answer))
        else:
            show(answer, AnswerFormat.of(self._system), wide=given["wide"])
        first, comma, _ = address.partition(",")
        if comma and self._is_per_node:
            click.echo(
                f"Only {first} was asked: each node answers for itself. --address asks another.", err=True
            )
        if watch is not None and watch.has_failed(answer):
            raise click.exceptions.Exit(ENDED_IN_FAILURE)

    def _token_advice(self, failure: Failure, given: dict[str, Any], variable: str | None) -> str:
        """Name the variable of the token that was refused, or those that were read."""
        names = token_variables(self._system, self._method)
        if failure.grpc not in ("UNAUTHENTICATED", "PERMISSION_DENIED") or not names:
            return ""
        if variable is not None:
            return f" The token was that of {variable}."
        return "" if given["token"] else f" A token is taken from {', '.join(('CHARTER_TOKEN', *names))}."

    @property
    def _is_per_node(self) -> bool:
        routings = [each.routing for each in self._system.deployments.values() if each.routing is not None]
        return any(self._method.path in each.per_node for each in routings)

    def _make_request(self, given: dict[str, Any]) -> Message:
        """Make the request; raises a usage error that names the invalid option."""
        if self._key is not None and (alone := given.pop("positional")) is not None:
            if given[self._key.key] not in (None, alone):
                raise click.UsageError(f"{self._key.path[0].upper()} is given twice, and differs.")
            given[self._key.key] = alone
        request = self._method.request()
        try:
            json_format.ParseDict(build_request(self._fields, given), request)
        except (json_format.ParseError, ValueError):
            raise click.UsageError("The options do not make a request together.") from None
        if found := self._find_violations(request):
            raise click.UsageError(
                "; ".join(f"{self._name_option(each.field)}: {each.problem}" for each in found)
            )
        return request

    def _find_violations(self, request: Message) -> Sequence[Violation]:
        """Find what the server would refuse, before the call."""
        check = self._method.check
        if check is None:
            return ()
        for each in check(request):
            field = request.DESCRIPTOR.fields_by_name.get(each.field)
            if field is not None and field.message_type is not None and not field.is_repeated:
                # A nested message is missing: its missing fields say more than that.
                getattr(request, field.name).SetInParent()
        return check(request)

    def _name_option(self, field: str) -> str:
        """Return the option of a request field, or those of the fields below it."""
        path = tuple(part.partition("[")[0] for part in field.split("."))
        if self._key is not None and path == self._key.path:
            return path[0].upper()
        below = [f"--{each.option}" for each in self._fields if each.path[: len(path)] == path]
        holding = [
            f"--{each.option} ({field})" for each in self._fields if path[: len(each.path)] == each.path
        ]
        return ", ".join(below or holding) or field

    async def _call(self, request: Message, watch: Watch | None, given: dict[str, Any]) -> Message:
        from runtime.client import connect

        async with connect(
            self._system,
            given["address"].split(","),
            ca_file=given["ca_file"],
            cert_file=given["cert_file"],
            key_file=given["key_file"],
            token=given["token"],
        ) as client:
            service = client.service(self._service)
            call = client.call(given["deadline_ms"])
            if watch is None:
                answer: Message = await getattr(service, self._method.attribute)(request, call)
                return answer
            key_holder = request
            if watch.reader is not self._method:
                key_holder = await getattr(service, self._method.attribute)(request, call)
            reader = next(
                name for name, table in self._system.services.items() if watch.reader in table.methods
            )
            read = getattr(client.service(reader), watch.reader.attribute)
            return await wait_until_final(watch, getattr(key_holder, watch.lifecycle.key), read, call)


def _call_options(
    system: System, service: str, method: Method, *, is_announced: bool
) -> list[click.Parameter]:
    tokens = ", ".join(("CHARTER_TOKEN", *token_variables(system, method)))
    return [
        click.Option(
            ["--address"],
            envvar="CHARTER_ADDRESS",
            type=Addresses(),
            default=None if is_announced else default_address(system, service),
            show_default=True,
            metavar="HOST:PORT",
            help="Where it listens, several separated by commas; or CHARTER_ADDRESS."
            + (" Else it is looked for on the network." if is_announced else ""),
        ),
        click.Option(
            ["--ca-file"],
            envvar="CHARTER_CA_FILE",
            type=AuthorityFile(),
            help="Authority behind its certificate, which means TLS; or CHARTER_CA_FILE.",
        ),
        *(
            click.Option(
                [f"--{kind}-file"],
                envvar=f"CHARTER_{kind.upper()}_FILE",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                help=f"{what} of a principal; or CHARTER_{kind.upper()}_FILE.",
            )
            for kind, what in (("cert", "Certificate"), ("key", "Private key of the certificate"))
        ),
        click.Option(
            ["--token"], envvar="CHARTER_TOKEN", type=Token(), help=f"Proof of a principal; or {tokens}."
        ),
        click.Option(
            ["--deadline-ms"],
            type=Whole(1, _LONGEST_MS),
            metavar="NUMBER",
            help="Give up after so long, retries and watching included.",
        ),
        click.Option(["--wide"], is_flag=True, help="Show every column of a listing."),
        click.Option(["as_json", "--json"], is_flag=True, help="Print the answer as JSON."),
    ]


def _is_key(system: System, field: RequestField) -> bool:
    return len(field.path) == 1 and any(field.path[0] == each.key for each in system.lifecycles.values())
