"""The names of uvicorn's connection that ours builds on: a release that changes one is noticed here."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from runtime.transport.http import protocol
from runtime.transport.http.protocol import Connection

EXTENDED = {
    "__init__": ["config", "server_state", "app_state", "_loop"],
    "connection_lost": ["exc"],
    "connection_made": ["transport"],
    "data_received": ["data"],
    "on_header": ["name", "value"],
    "on_headers_complete": [],
    "on_message_begin": [],
    "on_message_complete": [],
    "on_response_complete": [],
    "on_url": ["url"],
    "send_400_response": ["msg"],
}
"""Methods that ours extends, and their parameters."""
READ = {"app_state", "connections", "cycle", "loop", "timeout_keep_alive_task", "transport"}
"""Attributes that ours reads or sets."""


async def theirs() -> HttpToolsProtocol:
    """A connection of uvicorn, before there is a transport."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Answer nothing."""

    config = Config(app, ws="none", lifespan="off", interface="asgi3", log_config=None)
    return HttpToolsProtocol(config, ServerState(), {})


def tree() -> ast.ClassDef:
    """The source of our connection."""
    module = ast.parse(Path(protocol.__file__).read_text(encoding="utf-8"))
    return next(
        each for each in module.body if isinstance(each, ast.ClassDef) and each.name == Connection.__name__
    )


def of_self(*contexts: type[ast.expr_context]) -> set[str]:
    """The attributes of itself that our connection reads or sets."""
    return {
        node.attr
        for node in ast.walk(tree())
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and isinstance(node.ctx, contexts)
    }


@pytest.mark.parametrize(("name", "parameters"), EXTENDED.items())
def test_methods_have_the_same_parameters(name: str, parameters: list[str]) -> None:
    """Each method that ours extends is there, and takes what ours passes on."""
    assert [*inspect.signature(getattr(HttpToolsProtocol, name)).parameters][1:] == parameters


async def test_attributes_are_set_from_the_start() -> None:
    """As are those of the state that all connections share, and of a request in flight."""
    assert vars(await theirs()).keys() >= READ
    assert vars(ServerState()).keys() >= {"connections", "tasks"}
    assert callable(HttpToolsProtocol.shutdown)
    assert "self.response_complete = False" in inspect.getsource(RequestResponseCycle.__init__)


async def test_ours_and_theirs_have_different_names() -> None:
    """No name of ours hides one of uvicorn's but those that are meant to."""
    their_names = {*vars(HttpToolsProtocol), *vars(await theirs())}
    our_names = {*vars(Connection), *of_self(ast.Store)} - {"app_state", "transport"}
    shared = {each for each in their_names & our_names if each == "__init__" or not each.startswith("__")}
    assert shared == {*EXTENDED}


async def test_the_lists_are_complete() -> None:
    """Attributes that ours reads are its own, or in the list above; so are the methods that it calls."""
    own = {*vars(Connection)} | (of_self(ast.Store) - {"app_state", "transport"})
    assert of_self(ast.Load, ast.Store) - own == READ
    called = {
        node.attr
        for node in ast.walk(tree())
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
    }
    assert called == {*EXTENDED} - {"send_400_response"}


def test_uvicorn_calls_the_extended_methods() -> None:
    """A refusal of the parser and the end of an answer reach ours, and answers go to our transport."""
    assert "self.send_400_response(" in inspect.getsource(HttpToolsProtocol.data_received)
    begun = inspect.getsource(HttpToolsProtocol.on_headers_complete)
    assert "transport=self.transport" in begun
    assert "on_response=self.on_response_complete" in begun
