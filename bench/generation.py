"""Benchmark of the generator: rendering against protoc, and a run without changes against parsing YAML.

`nox -s bench -- generation` prints the ratios and writes them to `bench/results/generation.json`.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.machine import describe_host
from bench.report.terminal import narrow_table
from codegen import cache
from codegen.generate import list_spec_folders

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
RUNS = 15
RENDERING_BAR = 1.0
NOTHING_TO_DO_BAR = 1.5

BUILD = """
import json, sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
import codegen.emit.template_cache
import codegen.generate as generate

def cpu():
    used = [getrusage(processes) for processes in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1000

def compile_protos(protos, compile_them=generate.compile_protos):
    readings.append(cpu())
    stubs = list(compile_them(protos))
    readings.append(cpu())
    return stubs

root, templates = sys.argv[1:]
if templates:
    codegen.emit.template_cache.FOLDER = Path(templates)
generate.compile_protos = compile_protos
readings = [cpu()]
wanted, outcome = generate.build(Path(root))
assert wanted, outcome.diagnostics
print(json.dumps({
    "rendering_ms": outcome.render_seconds * 1000,
    "protoc_ms": outcome.protoc_seconds * 1000,
    "rendering_cpu_ms": readings[1] - readings[0],
    "protoc_cpu_ms": readings[2] - readings[1],
}))
"""
PARSE = """
import sys, yaml
from pathlib import Path
for path in Path(sys.argv[1], "spec").glob("*/*.yaml"):
    yaml.load(path.read_bytes(), yaml.CSafeLoader)
"""


def main(_arguments: list[str]) -> int:
    """Run all comparisons; return 1 if one misses its bar."""
    command = "nox -s bench -- generation"
    found: dict[str, Any] = {"machine": describe_host(), "command": command, "runs": RUNS, "bars": {}}
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        for spec in list_spec_folders(ROOT):
            row = found[spec.name] = measure_rendering(Path(folder, spec.name), spec)
            found["bars"][f"rendering of {spec.name}"] = _check_bar(row["usual"]["ratio"], RENDERING_BAR)
        row = found["nothing to do"] = measure_unchanged_run(Path(folder, "whole"))
        found["bars"]["nothing to do"] = _check_bar(row["ratio"], NOTHING_TO_DO_BAR)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "generation.json").write_text(json.dumps(found, indent=2) + "\n")
    _show(Console(), found)
    return int(not all(each["met"] for each in found["bars"].values()))


def measure_rendering(root: Path, spec: Path) -> dict[str, Any]:
    """Measure rendering against compiling the stubs, each run in a new process.

    `usual` is a run with a warm template cache. `first` is one after a change of the generator itself, when
    templates have to be compiled anew.
    """
    shutil.copytree(spec, root / "spec" / spec.name)
    build = [sys.executable, "-c", BUILD, str(root)]
    json.loads(_run([*build, ""]))
    usual = [json.loads(_run([*build, ""])) for _ in range(RUNS)]
    first = [json.loads(_run([*build, str(root / f"templates-{number}")])) for number in range(RUNS // 3)]
    return {"usual": _summarize(usual), "first": _summarize(first)}


def _summarize(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {
        **{name: round(statistics.median(run[name] for run in runs), 1) for name in runs[0]},
        "ratio": round(statistics.median(run["rendering_ms"] / run["protoc_ms"] for run in runs), 3),
        "cpu_ratio": round(
            statistics.median(run["rendering_cpu_ms"] / run["protoc_cpu_ms"] for run in runs), 3
        ),
    }


def measure_unchanged_run(root: Path) -> dict[str, float]:
    """Measure a run that finds everything fresh against a bare Python that parses the specs, as processes."""
    for place in cache.INPUTS:
        source = ROOT / place
        copy = shutil.copytree if source.is_dir() else shutil.copy
        root.mkdir(exist_ok=True)
        copy(source, root / place)
    generate = [sys.executable, "-m", "codegen", "generate", "--root", str(root)]
    parse = [sys.executable, "-c", PARSE, str(root)]
    _run(generate)
    assert "nothing has changed" in _run(generate)
    pairs = [(_time_ms(generate), _time_ms(parse)) for _ in range(RUNS * 2)]
    return {
        "generate_ms": round(statistics.median(pair[0] for pair in pairs), 1),
        "bare_start_and_parsing_ms": round(statistics.median(pair[1] for pair in pairs), 1),
        "ratio": round(statistics.median(pair[0] / pair[1] for pair in pairs), 3),
    }


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _time_ms(command: Sequence[str]) -> float:
    started = time.perf_counter()
    _run(command)
    return (time.perf_counter() - started) * 1000


def _check_bar(ratio: float, bar: float) -> dict[str, Any]:
    return {"ratio": ratio, "less_than": bar, "met": ratio < bar}


def _show(console: Console, found: dict[str, Any]) -> None:
    table = narrow_table("comparison", "ours", "baseline", "ratio", "bar", title=found["command"])
    for spec in list_spec_folders(ROOT):
        for when, row in found[spec.name].items():
            bar = f"< {RENDERING_BAR:g}" if when == "usual" else ""
            ours, baseline = f"{row['rendering_ms']} ms", f"{row['protoc_ms']} ms of protoc"
            table.add_row(f"rendering of {spec.name}, {when} run", ours, baseline, f"{row['ratio']}", bar)
    row = found["nothing to do"]
    ours, baseline = f"{row['generate_ms']} ms", f"{row['bare_start_and_parsing_ms']} ms of Python and YAML"
    table.add_row("a run with nothing to do", ours, baseline, f"{row['ratio']}", f"< {NOTHING_TO_DO_BAR:g}")
    console.print(table)
    missed = [name for name, each in found["bars"].items() if not each["met"]]
    console.print(f"Missed: {', '.join(missed)}" if missed else "Every bar is met.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
