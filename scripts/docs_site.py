"""Stage the pages for the site: one folder with every page and linked file, with rewritten links.

The pages are written to be read in the repository: they link to specs and generated files, and README.md and
the results are outside of docs/. The site has to be self-contained, so linked files are copied, too.
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

SITE_PATHS = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/RESULTS.md": "results.md",
    "docs/explanation/decisions/README.md": "explanation/decisions/index.md",
}
"""By page, its path in the site, where that is not its path below docs/."""
STYLE = "docs/site.css"
_EXTERNAL_RESOURCE = re.compile(
    r"<(?:script|img|iframe)[^>]*\bsrc=[\"']?(https?:[^\"' >]+)|<link[^>]*\bhref=[\"']?(https?:[^\"' >]+)"
)


def stage_site(root: Path, target: Path) -> None:
    """Write all sources of the site to an empty folder."""
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
            destination = target / map_to_site(path)
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, destination)
    for page in pages:
        destination = target / map_to_site(page)
        destination.parent.mkdir(parents=True, exist_ok=True)
        text = (root / page).read_text(encoding="utf-8")
        # Without the attribute a page's own HTML keeps Markdown inside of it from being read.
        text = re.sub(r"^<details>$", '<details markdown="1">', text, flags=re.MULTILINE)
        destination.write_text(replace_links(text, partial(_rewrite_link, root, page)), encoding="utf-8")


def map_to_site(path: str) -> str:
    """Map a file of the repository to its path in the site; other files than pages go to `source/`."""
    if path in SITE_PATHS:
        return SITE_PATHS[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    folder, name = posixpath.split(path)
    # Sites leave out names with a leading dot; Markdown that is no page of the site is shown as text.
    name_in_site = f"{name}.txt" if name.endswith(".md") else name.lstrip(".")
    return posixpath.join("source", folder, name_in_site)


def _rewrite_link(root: Path, page: str, label: str, target: str) -> str:
    path, separator, anchor = target.partition("#")
    if not path:
        return f"{label}]({target})"
    path_in_root = resolve(page, path)
    if (root / path_in_root).is_dir():
        # A site cannot show a folder.
        return label.removeprefix("[")
    relative = posixpath.relpath(map_to_site(path_in_root), posixpath.dirname(map_to_site(page)) or ".")
    return f"{label}]({relative}{separator}{anchor})"


def find_loaded_from_network(site: Path) -> Iterator[str]:
    """Find the scripts, styles and pictures that a browser would load from a network; a sentence for each."""
    for page in sorted(site.rglob("*.html")):
        for path_in_root in _EXTERNAL_RESOURCE.finditer(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)} loads {path_in_root[1] or path_in_root[2]}."


def main(arguments: list[str]) -> int:
    """Stage the site into a folder, or check one that is built: `--check FOLDER`; return 1 on an error."""
    if arguments[0] == "--check":
        external = list(find_loaded_from_network(Path(arguments[1])))
        print("\n".join(external) or "The site loads nothing from a network.")
        return 1 if external else 0
    broken = list(find_broken(ROOT))
    for each in broken:
        print(each)
    if broken:
        return 1
    stage_site(ROOT, Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
