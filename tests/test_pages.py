"""Pages of the documentation: no broken links, no unknown commands, and a short README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.docs_site import find_loaded_from_network, stage_site
from scripts.links import find_broken, list_anchors, list_links, list_pages, resolve

ROOT = Path(__file__).parent.parent


def test_every_relative_link_has_a_target() -> None:
    """README, changelog, the page for contributors, the results and all of docs/; headings count, too."""
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/RESULTS.md"} <= set(list_pages(ROOT))
    assert list(find_broken(ROOT)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](none.md)", "leads to no file"),
        ("![a](none.svg)", "leads to no file"),
        ("[`a`](none.md#b)", "leads to no file"),
        ("[a](#none)", "leads to no heading"),
        ("[a](CHANGELOG.md#none)", "leads to no heading"),
    ],
)
def test_a_broken_link_is_found(text: str, problem: str, tmp_path: Path) -> None:
    """Each kind of broken link is reported with its page."""
    (tmp_path / "README.md").write_text(f"# Title\n\n{text}\n")
    (tmp_path / "CHANGELOG.md").write_text("# Other\n")
    (broken,) = find_broken(tmp_path)
    assert broken.startswith("README.md: ") and problem in broken


def test_code_and_external_links_are_ignored() -> None:
    """Links in code and to other hosts are not checked."""
    text = "`[a](b)` [x](https://example.org) [y](y.md)\n\n```\n[c](d)\n```\n"
    assert list_links(text) == ["y.md"]


def test_the_readme_is_short() -> None:
    """A reader gets to its end."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", list_pages(ROOT))
def test_every_session_on_a_page_is_there(page: str) -> None:
    """A reader who types a command of a page finds a session of that name."""
    sessions = re.findall(
        r"^@nox\.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = re.findall(r"nox -s (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    assert set(named) <= set(sessions)


def test_the_site_is_self_contained(tmp_path: Path) -> None:
    """Linked files are in the site, and no relative link leaves it."""
    stage_site(ROOT, tmp_path)
    for page in tmp_path.rglob("*.md"):
        path_in_site = page.relative_to(tmp_path).as_posix()
        for link in list_links(page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            target = tmp_path / resolve(path_in_site, path) if path else page
            assert target.is_file(), f"{path_in_site}: {link}"
            assert not anchor or anchor in list_anchors(target), f"{path_in_site}: {link}"
    assert (tmp_path / "index.md").is_file() and (tmp_path / "results.md").is_file()


@pytest.mark.parametrize(
    ("tag", "is_loaded"),
    [
        ('<script src="https://example.org/a.js"></script>', True),
        ("<link rel=stylesheet href=https://example.org/a.css>", True),
        ('<a href="https://example.org/">', False),
        ('<script src="assets/a.js"></script>', False),
    ],
)
def test_resources_from_a_network_are_found(tag: str, is_loaded: bool, tmp_path: Path) -> None:
    """A link to another host is fine; a script, a style or a picture from there is not."""
    (tmp_path / "index.html").write_text(tag)
    assert bool(list(find_loaded_from_network(tmp_path))) is is_loaded
