"""Check the links of the pages: every relative one leads to a file and, where it names one, to a heading."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/RESULTS.md")
"""The pages outside of docs/."""
_CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$|`+[^`\n]+`+", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)(\))")
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def list_pages(root: Path) -> list[str]:
    """Every page that people read, relative to the root."""
    docs = sorted(path.relative_to(root).as_posix() for path in root.glob("docs/**/*.md"))
    return [*(page for page in TOP if (root / page).is_file()), *docs]


def find_broken(root: Path) -> Iterator[str]:
    """A sentence for each relative link that leads nowhere."""
    for page in list_pages(root):
        for target in list_links((root / page).read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            found = root / resolve(page, path) if path else root / page
            if not found.exists():
                yield f"{page}: '{target}' leads to no file."
            elif anchor and found.suffix == ".md" and anchor not in list_anchors(found):
                yield f"{page}: '{target}' leads to no heading."


def list_links(text: str) -> list[str]:
    """The targets of all links that stay within the project; code does not count."""
    without_code = _CODE.sub(lambda found: "`code`" if found[2] is None else "", text)
    targets = (found[2] for found in _LINK.finditer(without_code))
    return [target for target in targets if not _ELSEWHERE.match(target)]


def replace_links(text: str, replace: Callable[[str, str], str]) -> str:
    """The text with each link made anew by a function of its label and its target; code stays as it is."""

    def rewrite(found: re.Match[str]) -> str:
        label, target = found[1][:-2], found[2]
        return found[0] if _ELSEWHERE.match(target) else replace(label, target)

    parts, end = [], 0
    for code in _CODE.finditer(text):
        # Code within the label of a link is part of the link.
        if code[2] is not None:
            parts += [_LINK.sub(rewrite, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, _LINK.sub(rewrite, text[end:])])


def resolve(page: str, path: str) -> str:
    """The path of a link relative to the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """The anchors of all headings of a page, in GitHub's form."""
    text = re.sub(r"^(```+).*?^\1 *$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *#*$", text, re.MULTILINE)
    named = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    return frozenset([*(_slug(heading) for heading in headings), *named])


def _slug(heading: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-")


def main() -> int:
    """Print what is broken; 1 if anything is."""
    broken = list(find_broken(ROOT))
    for each in broken:
        print(each)
    print(f"{len(list_pages(ROOT))} pages, {len(broken)} broken links.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
