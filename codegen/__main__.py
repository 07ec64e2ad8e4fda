"""`python -m codegen generate|review`: the generator on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from codegen import cache

USAGE = """usage: python -m codegen generate [--check] [--full] [--format text|json|github] [--root FOLDER]
       python -m codegen review [options]

generate   writes every artefact of the specs
  --check  writes nothing; fails on any stale, missing or orphan file
  --full   renders everything even if nothing changed since the last run
review     compares the specs with their accepted form; see `review --help`
"""


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    command, options = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "review":
        from codegen.review import main as review

        return review(options, Path.cwd())
    if command != "generate" or "--help" in options:
        print(USAGE, end="")
        return 0 if "--help" in arguments else 2
    return _generate(options)


def _generate(options: list[str]) -> int:
    values = {"--root": ".", "--format": "text"}
    flags = set()
    pending = list(options)
    while pending:
        option = pending.pop(0)
        if option in values and pending:
            values[option] = pending.pop(0)
        elif option in ("--check", "--full"):
            flags.add(option)
        else:
            print(
                f"codegen generate: '{option}' is not an option or lacks its value.\n{USAGE}",
                end="",
                file=sys.stderr,
            )
            return 2
    root = Path(values["--root"]).resolve()
    if "--full" not in flags and cache.is_fresh(root):
        print("All generated files are fresh; nothing has changed since the last run.")
        return 0
    # Imported here so that a run with nothing to do is fast.
    from codegen.generate import generate

    return generate(root, check="--check" in flags, style=values["--format"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
