"""One process that runs binaries, one after the other: each line it reads is a run, each it writes an end.

A binary sees its input and has two places to write to. There are no files, no variables, no arguments, no
network and no clock that it could set. What it may use is bounded: instructions, memory, time and output.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import wasmtime

_MODULES_KEPT = 32
_LOOK_S = 0.5
"""How often a process looks whether its runner is still there."""
_STACK_BYTES = 1 << 20
_OUT_OF_MEMORY_WORDS = ("memory minimum size", "exceeds memory limits", "table minimum size")


class Machine:
    """Compiles binaries, keeps what it compiled, and runs them."""

    def __init__(self, *, counts_fuel: bool) -> None:
        config = wasmtime.Config()
        config.epoch_interruption = True
        config.consume_fuel = counts_fuel
        config.max_wasm_stack = _STACK_BYTES
        # A binary reserves what it uses and no more, so that many fit beside each other.
        config.memory_reservation = 0
        config.memory_may_move = True
        self._engine = wasmtime.Engine(config)
        self._linker = wasmtime.Linker(self._engine)
        self._linker.define_wasi()
        self._counts_fuel = counts_fuel
        self._modules: OrderedDict[str, wasmtime.Module] = OrderedDict()

    def run(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Runs one binary; how it ended."""
        try:
            module = self._module(wanted["address"], Path(wanted["compiled"]), Path(wanted["binary"]))
        except (wasmtime.WasmtimeError, OSError) as error:
            return _ended("NOT_WASI", _first_line(error))
        store = wasmtime.Store(self._engine)
        store.set_limits(
            memory_size=wanted["memory_bytes"], table_elements=100_000, instances=1, tables=16, memories=4
        )
        wasi = wasmtime.WasiConfig()
        wasi.argv = ["job"]
        wasi.stdin_file = wanted["stdin"]
        wasi.stdout_file = wanted["stdout"]
        wasi.stderr_file = wanted["stderr"]
        store.set_wasi(wasi)
        store.set_epoch_deadline(1)
        if self._counts_fuel:
            store.set_fuel(wanted["fuel"])
        timer = threading.Timer(wanted["seconds"], self._engine.increment_epoch)
        timer.start()
        _limit_files(wanted["output_bytes"])
        try:
            instance = self._linker.instantiate(store, module)
            start = instance.exports(store).get("_start")
            if not isinstance(start, wasmtime.Func):
                return _ended("NOT_WASI", "it has no function _start")
            start(store)
        except wasmtime.ExitTrap as ended:
            return _exited(ended.code)
        except wasmtime.Trap as trap:
            return _trapped(trap)
        except wasmtime.WasmtimeError as error:
            words = str(error)
            cause = "OUT_OF_MEMORY" if any(each in words for each in _OUT_OF_MEMORY_WORDS) else "NOT_WASI"
            return _ended(cause, _first_line(error))
        finally:
            timer.cancel()
            # Closing writes what is still to be written.
            store.close()
            _limit_files(resource.RLIM_INFINITY)
        return _exited(0)

    def _module(self, address: str, compiled: Path, binary: Path) -> wasmtime.Module:
        """A binary as this machine runs it: from memory, from what another has compiled, or compiled now."""
        if address in self._modules:
            self._modules.move_to_end(address)
            return self._modules[address]
        try:
            module = wasmtime.Module.deserialize_file(self._engine, str(compiled))
        except wasmtime.WasmtimeError:
            content = binary.read_bytes()
            module = wasmtime.Module(self._engine, content)
            making = compiled.with_name(f"{compiled.name}.{threading.get_native_id()}")
            making.write_bytes(module.serialize())
            making.rename(compiled)
        self._modules[address] = module
        if len(self._modules) > _MODULES_KEPT:
            self._modules.popitem(last=False)
        return module


def _exited(code: int) -> dict[str, Any]:
    if code == 0:
        return {"exit_code": 0, "reason": None, "detail": ""}
    return {"exit_code": code, "reason": "EXITED", "detail": f"it ended with {code}"}


def _trapped(trap: wasmtime.Trap) -> dict[str, Any]:
    code = trap.trap_code
    if code is wasmtime.TrapCode.INTERRUPT:
        return _ended("OUT_OF_TIME", "it took longer than it may")
    if code is wasmtime.TrapCode.OUT_OF_FUEL:
        return _ended("OUT_OF_FUEL", "it did more than it may")
    return _ended("TRAPPED", code.name.lower().replace("_", " ") if code else _first_line(trap))


def _ended(reason: str, detail: str) -> dict[str, Any]:
    return {"exit_code": None, "reason": reason, "detail": detail}


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _limit_files(most: int) -> None:
    """Bounds what this process writes to one file; what is compiled may be larger than any output."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def _end_with(runner: int) -> None:
    """Ends the process soon after its runner, which cannot stop it when it is killed itself."""
    while os.getppid() == runner:
        time.sleep(_LOOK_S)
    os._exit(1)


def main() -> None:
    """Serves runs until there are no more."""
    # Whoever stops the runner decides when runs end; a signal to the whole group is none of ours.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    settings = json.loads(sys.argv[1])
    threading.Thread(target=_end_with, args=(settings["runner"],), daemon=True).start()
    machine = Machine(counts_fuel=settings["counts_fuel"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _say({"ready": True})
    for line in sys.stdin:
        _say(machine.run(json.loads(line)))


if __name__ == "__main__":
    main()
