"""The child process that runs binaries one after the other: it reads a request and writes a result per line.

A binary has standard input, output and error. There are no files, no variables, no arguments, no network and
no clock that it could set. Its resources are limited: instructions, memory, time and output.
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

_MAX_MODULES = 32
_PARENT_CHECK_S = 0.5
"""Interval at which a process checks whether its runner is still alive."""
_STACK_BYTES = 1 << 20
_OUT_OF_MEMORY_WORDS = ("memory minimum size", "exceeds memory limits", "table minimum size")


class Machine:
    """A WASI machine: compiles binaries, caches the compiled modules, and runs them."""

    def __init__(self, *, counts_fuel: bool) -> None:
        config = wasmtime.Config()
        config.epoch_interruption = True
        config.consume_fuel = counts_fuel
        config.max_wasm_stack = _STACK_BYTES
        # A binary reserves only the memory that it uses, so that many fit on a machine.
        config.memory_reservation = 0
        config.memory_may_move = True
        self._engine = wasmtime.Engine(config)
        self._linker = wasmtime.Linker(self._engine)
        self._linker.define_wasi()
        self._counts_fuel = counts_fuel
        self._modules: OrderedDict[str, wasmtime.Module] = OrderedDict()

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one binary; return how it ended."""
        try:
            module = self._load_module(request["address"], Path(request["compiled"]), Path(request["binary"]))
        except (wasmtime.WasmtimeError, OSError) as error:
            return _build_result("NOT_WASI", _first_line(error))
        store = wasmtime.Store(self._engine)
        store.set_limits(
            memory_size=request["memory_bytes"], table_elements=100_000, instances=1, tables=16, memories=4
        )
        wasi = wasmtime.WasiConfig()
        wasi.argv = ["job"]
        wasi.stdin_file = request["stdin"]
        wasi.stdout_file = request["stdout"]
        wasi.stderr_file = request["stderr"]
        store.set_wasi(wasi)
        store.set_epoch_deadline(1)
        if self._counts_fuel:
            store.set_fuel(request["fuel"])
        timer = threading.Timer(request["seconds"], self._engine.increment_epoch)
        timer.start()
        _limit_files(request["output_bytes"])
        try:
            instance = self._linker.instantiate(store, module)
            start = instance.exports(store).get("_start")
            if not isinstance(start, wasmtime.Func):
                return _build_result("NOT_WASI", "it has no function _start")
            start(store)
        except wasmtime.ExitTrap as exit_trap:
            return _build_exit(exit_trap.code)
        except wasmtime.Trap as trap:
            return _build_trap(trap)
        except wasmtime.WasmtimeError as error:
            text = str(error)
            cause = "OUT_OF_MEMORY" if any(each in text for each in _OUT_OF_MEMORY_WORDS) else "NOT_WASI"
            return _build_result(cause, _first_line(error))
        finally:
            timer.cancel()
            # Closing flushes the output.
            store.close()
            _limit_files(resource.RLIM_INFINITY)
        return _build_exit(0)

    def _load_module(self, address: str, compiled: Path, binary: Path) -> wasmtime.Module:
        """Load a module: from memory, from the compiled file of another process, or compile it now."""
        if address in self._modules:
            self._modules.move_to_end(address)
            return self._modules[address]
        try:
            module = wasmtime.Module.deserialize_file(self._engine, str(compiled))
        except wasmtime.WasmtimeError:
            content = binary.read_bytes()
            module = wasmtime.Module(self._engine, content)
            temporary = compiled.with_name(f"{compiled.name}.{threading.get_native_id()}")
            temporary.write_bytes(module.serialize())
            temporary.rename(compiled)
        self._modules[address] = module
        if len(self._modules) > _MAX_MODULES:
            self._modules.popitem(last=False)
        return module


def _build_exit(code: int) -> dict[str, Any]:
    if code == 0:
        return {"exit_code": 0, "reason": None, "detail": ""}
    return {"exit_code": code, "reason": "EXITED", "detail": f"it ended with {code}"}


def _build_trap(trap: wasmtime.Trap) -> dict[str, Any]:
    code = trap.trap_code
    if code is wasmtime.TrapCode.INTERRUPT:
        return _build_result("OUT_OF_TIME", "it took longer than it may")
    if code is wasmtime.TrapCode.OUT_OF_FUEL:
        return _build_result("OUT_OF_FUEL", "it did more than it may")
    return _build_result("TRAPPED", code.name.lower().replace("_", " ") if code else _first_line(trap))


def _build_result(reason: str, detail: str) -> dict[str, Any]:
    return {"exit_code": None, "reason": reason, "detail": detail}


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _limit_files(max_bytes: int) -> None:
    """Limit the size of files that this process writes; compiled modules may be larger than any output."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))


def _write_message(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def _exit_with_runner(runner: int) -> None:
    """Exit soon after the runner, which cannot stop this process when it is killed itself."""
    while os.getppid() == runner:
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)


def main() -> None:
    """Serve requests until standard input ends."""
    # The runner decides when runs end, so ignore signals to the whole process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    settings = json.loads(sys.argv[1])
    threading.Thread(target=_exit_with_runner, args=(settings["runner"],), daemon=True).start()
    machine = Machine(counts_fuel=settings["counts_fuel"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _write_message({"ready": True})
    for line in sys.stdin:
        _write_message(machine.run(json.loads(line)))


if __name__ == "__main__":
    main()
