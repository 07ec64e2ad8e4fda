"""Stage the pages for the site: one folder with every page and file that a page links to, links put right.

The pages are written to be read in the repository: they link to specs and generated files, and README.md and
the results are outside of docs/. The site has to be whole by itself, so what is linked comes along.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from scripts.links import ROOT, find_broken, list_links, list_pages, replace_links, resolve

PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/RESULTS.md": "results.md",
    "docs/explanation/decisions/README.md": "explanation/decisions/index.md",
}
"""Where a page goes whose place in the site differs from that below docs/."""
STYLE = "docs/site.css"
_LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]*\bsrc=[\"']?(https?:[^\"' >]+)|<link[^>]*\bhref=[\"']?(https?:[^\"' >]+)"
)


def stage(root: Path, target: Path) -> None:
    """Write everything that the site is made of to an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    pages = list_pages(root)
    linked = {
        resolve(page, link.partition("#")[0])
        for page in pages
        for link in list_links((root / page).read_text(encoding="utf-8"))
        if not link.startswith("#")
    }
    for path in sorted({*linked, STYLE} - set(pages)):
        if (root / path).is_file():
            place = target / place_of(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, place)
    for page in pages:
        place = target / place_of(page)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = (root / page).read_text(encoding="utf-8")
        # Without the attribute a page's own HTML keeps Markdown inside of it from being read.
        text = re.sub(r"^<details>$", '<details markdown="1">', text, flags=re.MULTILINE)
        place.write_text(replace_links(text, partial(_link, root, page)), encoding="utf-8")


def place_of(path: str) -> str:
    """Where a file of the repository is in the site. What is no page and not below docs/ is in `source/`."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    folder, name = posixpath.split(path)
    # Sites leave out names with a dot in front; a page that is none of the site is shown as it is written.
    shown = f"{name}.txt" if name.endswith(".md") else name.lstrip(".")
    return posixpath.join("source", folder, shown)


def _link(root: Path, page: str, label: str, target: str) -> str:
    path, mark, anchor = target.partition("#")
    if not path:
        return f"{label}]({target})"
    found = resolve(page, path)
    if (root / found).is_dir():
        # A folder is nothing that a site could show.
        return label.removeprefix("[")
    relative = posixpath.relpath(place_of(found), posixpath.dirname(place_of(page)) or ".")
    return f"{label}]({relative}{mark}{anchor})"


def find_loaded_from_network(site: Path) -> Iterator[str]:
    """A sentence for each script, style or picture of a site that a browser would fetch from a network."""
    for page in sorted(site.rglob("*.html")):
        for found in _LOADED.finditer(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)} loads {found[1] or found[2]}."


def main(arguments: list[str]) -> int:
    """Stage the site into a folder, or check one that is built: `--check FOLDER`; 1 if something is wrong."""
    if arguments[0] == "--check":
        loaded = list(find_loaded_from_network(Path(arguments[1])))
        print("\n".join(loaded) or "The site loads nothing from a network.")
        return 1 if loaded else 0
    broken = list(find_broken(ROOT))
    for each in broken:
        print(each)
    if broken:
        return 1
    stage(ROOT, Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
