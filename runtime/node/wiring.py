"""Dependency injection: make the handlers of a node, with constructor arguments by type."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Protocol, get_args, get_origin, get_type_hints

from runtime.call.context import Channel
from runtime.call.step_order import keep_step_order
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.stores.contract import EntityStore
from runtime.transport.tls import HttpTls
from runtime.world import World


class StoreSource(Protocol):
    """Where the stores of a node come from."""

    def of(self, lifecycle: Lifecycle, record: type[Any]) -> Any: ...


ChannelFor = Callable[[str, str], Channel]
"""Takes the calling component and the service; makes the channel to it."""


class WiringError(Exception):
    """A handler that cannot be made: an argument of its constructor is not available."""


class Wiring:
    """The dependencies of the handlers of a node."""

    def __init__(
        self,
        system: System,
        world: World,
        values: Mapping[str, Any],
        channel_for: ChannelFor,
        stores: StoreSource,
    ) -> None:
        self._system = system
        self._world = world
        self._values = values
        self._channel_for = channel_for
        self._stores = stores

    def make(self, component: str) -> Any:
        """Make the handler of a component: the class of its name in the module of its name."""
        handler = handler_class(self._system.name, component)
        hints = get_type_hints(handler.__init__)
        wanted = [name for name in inspect.signature(handler).parameters if name in hints]
        return handler(**{name: self._provide(component, name, hints[name]) for name in wanted})

    def _provide(self, component: str, name: str, hint: Any) -> Any:
        if hint is World:
            return self._world
        if hint is HttpTls:
            return HttpTls.of(self._system, self._values)
        if hint is self._system.settings[component]:
            return self._system.settings[component].of(self._values)
        if get_origin(hint) is EntityStore:
            record = get_args(hint)[0]
            return self._stores.of(self._lifecycle(component, record), record)
        if (service := getattr(hint, "__name__", "")) in self._system.services:
            return self._client(component, service)
        raise WiringError(
            f"{component} asks for {name}: {hint}. A handler can have World, EntityStore[…], HttpTls, "
            f"{self._system.settings[component].__name__} and the services that it may call."
        )

    def _client(self, component: str, service: str) -> Any:
        methods = self._system.services[service].methods
        if not any(component in self._system.matrix.get(method.path, {}) for method in methods):
            raise WiringError(
                f"{component} asks for {service}, which the caller matrix does not let it call."
            )
        channel = keep_step_order(self._system, component, self._channel_for(component, service))
        return self._system.clients[service](channel)

    def _lifecycle(self, component: str, record: type[Any]) -> Lifecycle:
        """Find the entity of a store; by its record where a component holds several."""
        held = [
            each
            for each in self._system.lifecycles.values()
            if component == each.holder or component in each.holders
        ]
        named = [each for each in held if each.record is record]
        if len(named) == 1:
            return named[0]
        if len(held) != 1:
            raise WiringError(
                f"{component} asks for a store and holds {len(held)} kinds of entity; it must be one."
            )
        return held[0]


def class_name(component: str) -> str:
    """Return the class name of a component's handler."""
    return "".join(part.capitalize() for part in component.split("_"))


def handler_class(system: str, component: str) -> type[Any]:
    """Import the handler class of a component."""
    name = class_name(component)
    module: ModuleType = importlib.import_module(f"handlers.{system}.{component}")
    try:
        found: type[Any] = getattr(module, name)
    except AttributeError:
        raise WiringError(f"handlers/{system}/{component}.py has no class {name}.") from None
    return found


def needs_no_handler(system: System, component: str) -> bool:
    """Whether a component has only due transitions and serves nothing, so that the engine is all it needs."""
    drives = any(component in find_clock_drivers(lifecycle) for lifecycle in system.lifecycles.values())
    serves = any(service.component == component for service in system.services.values())
    try:
        found = importlib.util.find_spec(f"handlers.{system.name}.{component}")
    except ModuleNotFoundError:
        found = None
    return drives and not serves and found is None


def find_clock_drivers(lifecycle: Lifecycle) -> set[str]:
    """Find the components that drive the due transitions of an entity, or write its history."""
    edges, updates = lifecycle.transitions.values(), lifecycle.updates.values()
    dues = [
        *(due for edge in edges for due in edge.dues),
        *(due for each in updates for due in each.dues),
    ]
    found = {due.by for due in (*dues, lifecycle.deletion_due) if due is not None}
    return found | lifecycle.storage.drivers if lifecycle.storage is not None else found
