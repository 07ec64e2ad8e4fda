"""Small WASI programs in text form, for demos and tests; wasmtime compiles them."""

from __future__ import annotations

from importlib.resources import files


def names() -> list[str]:
    """List the names of all samples."""
    return sorted(
        each.name.removesuffix(".wat") for each in files(__name__).iterdir() if each.name.endswith(".wat")
    )


def binary(name: str) -> bytes:
    """Compile a sample to a binary."""
    import wasmtime

    text = files(__name__).joinpath(f"{name}.wat").read_text(encoding="utf-8")
    return bytes(wasmtime.wat2wasm(text))
