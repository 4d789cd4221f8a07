"""The documentation as `make docs` builds it, in a folder of its own, and its pages as tests read them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

from doc_pages import ROOT

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src"}  # what a browser fetches by itself


def build_site(folder: Path) -> Path:
    """Build the site below a folder and return its own; any warning of the builder is an error."""
    shutil.copytree(ROOT / "docs", folder / "docs")  # Zensical takes no pages from outside
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("src", "tests"):
        (folder / name).symlink_to(ROOT / name)
    run = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "No issues found" in run.stdout + run.stderr, run.stdout + run.stderr
    return folder / "build" / "site"


class BuiltPage(HTMLParser):
    """A page of the site: ids, links, what the browser fetches for it, and the words of its article."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element says about other files."""
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.ids.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and {"stylesheet", "icon", "preload", "preconnect"} & set(found.get("rel", "").split()):
            self.fetched.append(found.get("href", ""))
        if SOURCES.get(tag, "-") in found:
            self.fetched.append(found[SOURCES[tag]])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element, and those within it that have no end."""
        while tag in self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Note words of the article."""
        if "article" in self._open and not {"script", "style"} & set(self._open):
            self.words += data.split()
