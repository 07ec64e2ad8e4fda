"""Check the links of the pages: every relative link has a file and, where it has an anchor, a heading."""

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
_EXTERNAL = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def list_pages(root: Path) -> list[str]:
    """List every page of the documentation, relative to the root."""
    docs = sorted(path.relative_to(root).as_posix() for path in root.glob("docs/**/*.md"))
    return [*(page for page in TOP if (root / page).is_file()), *docs]


def find_broken(root: Path) -> Iterator[str]:
    """Find the broken relative links; a sentence for each."""
    for page in list_pages(root):
        for target in list_links((root / page).read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            match = root / resolve(page, path) if path else root / page
            if not match.exists():
                yield f"{page}: '{target}' leads to no file."
            elif anchor and match.suffix == ".md" and anchor not in list_anchors(match):
                yield f"{page}: '{target}' leads to no heading."


def list_links(text: str) -> list[str]:
    """List the targets of all links within the project, without those in code."""
    without_code = _CODE.sub(lambda match: "`code`" if match[2] is None else "", text)
    targets = (match[2] for match in _LINK.finditer(without_code))
    return [target for target in targets if not _EXTERNAL.match(target)]


def replace_links(text: str, replace: Callable[[str, str], str]) -> str:
    """Replace each link by the result of a function of its label and target; code stays unchanged."""

    def rewrite(match: re.Match[str]) -> str:
        label, target = match[1][:-2], match[2]
        return match[0] if _EXTERNAL.match(target) else replace(label, target)

    parts, end = [], 0
    for code in _CODE.finditer(text):
        # Code within the label of a link is part of the link.
        if code[2] is not None:
            parts += [_LINK.sub(rewrite, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, _LINK.sub(rewrite, text[end:])])


def resolve(page: str, path: str) -> str:
    """Resolve the path of a link relative to the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """List the anchors of all headings of a page, in GitHub's form."""
    text = re.sub(r"^(```+).*?^\1 *$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *#*$", text, re.MULTILINE)
    named = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    return frozenset([*(_slug(heading) for heading in headings), *named])


def _slug(heading: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-")


def main() -> int:
    """Print the broken links; return 1 if there are any."""
    broken = list(find_broken(ROOT))
    for each in broken:
        print(each)
    print(f"{len(list_pages(ROOT))} pages, {len(broken)} broken links.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
