"""The site that `make docs` builds: complete, sufficient to itself, readable in both modes."""

import json
import re
from importlib import import_module
from urllib.parse import unquote, urldefrag

import pytest

import contrada
from built_docs import BuiltPage, build_site
from doc_pages import ROOT

PACKAGE = ROOT / "src"
DECLARED = re.compile(r"^__all__ = ", re.MULTILINE)
VARIABLES = re.compile(r"(--[\w-]+): (#[0-9a-f]{6});")
GROUNDS = {  # what is written on it
    "--md-default-bg-color": ("--md-default-fg-color", "--md-default-fg-color--light", "--md-typeset-a-color"),
    "--md-code-bg-color": ("--md-code-fg-color", "--md-typeset-a-color", "--md-code-hl-"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): BuiltPage(path) for path in sorted(site.rglob("*.html"))}


def page_names():
    """Names of all pages of the site as they are written in docs."""
    return sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def public_modules():
    """Names of all modules that declare public names."""
    found = [path for path in PACKAGE.rglob("*.py") if DECLARED.search(path.read_text())]
    return sorted(".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for path in found)


def test_every_page_is_built(pages):
    assert {name.replace(".md", ".html") for name in page_names()} | {"404.html"} == set(pages)


@pytest.mark.parametrize("module", public_modules())
def test_every_public_name_has_an_entry(pages, module):
    ids = set().union(*(page.ids for name, page in pages.items() if name.startswith("api/")))
    package = import_module(module)
    for name in package.__all__:
        is_root = getattr(contrada, name, None) is getattr(package, name)
        assert f"{'contrada' if is_root else module}.{name}" in ids, name


def test_nothing_is_fetched_from_elsewhere(site, pages):
    for name, page in pages.items():
        assert page.fetched, name
        for target in page.fetched:
            assert not re.match(r"(\w+:)?//", target), f"{name} fetches {target}"
            found = (site / name).parent / unquote(urldefrag(target).url)
            assert name == "404.html" or found.is_file(), f"{name}: {target}"
    for path in [*site.rglob("*.css"), *site.rglob("*.html")]:
        far = re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\s)]*", path.read_text())
        assert far == [], path


def test_links_lead_somewhere(site, pages):
    for name, page in pages.items():
        if name == "404.html":
            continue
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            target, fragment = urldefrag(link)
            path = ((site / name).parent / unquote(target)).resolve() if target else site / name
            assert path.is_file(), f"{name}: {link}"
            found = path.relative_to(site).as_posix()
            if fragment and found in pages and fragment != "__skip":
                assert unquote(fragment) in pages[found].ids, f"{name}: {link}"


def test_search_knows_every_page(site, pages):
    index = json.loads((site / "search.json").read_text())
    texts: dict[str, str] = {}
    for item in index["items"]:
        page = urldefrag(item["location"]).url
        texts[page] = texts.get(page, "") + re.sub(r"<[^>]+>", " ", f"{item['title']} {item['text']}")
    for name, page in pages.items():
        if name == "404.html":
            continue
        words = {word for word in page.words if re.fullmatch(r"[A-Za-z]{4,}", word)}
        missing = {word for word in words if word not in texts[name]}
        assert len(words) >= 5, name
        assert len(missing) <= len(words) // 20, f"{name}: {sorted(missing)[:20]}"
    script = (site / "search.js").read_text()
    assert json.loads(script.removeprefix("var __index = ").rstrip("; \n")) == index, "pages opened as files read this"


def luminance(colour):
    """Relative luminance of a colour, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_colours_have_contrast(scheme):
    text = (ROOT / "docs" / "stylesheets" / "contrada.css").read_text()
    colours = dict(VARIABLES.findall(re.search(rf'\[data-md-color-scheme="{scheme}"\] {{(.*?)}}', text, re.DOTALL)[1]))
    pairs = [(ground, name) for ground, on in GROUNDS.items() for name in colours if name.startswith(on)]
    assert len(pairs) >= 15
    low = {f"{name} on {ground}": contrast(colours[name], colours[ground]) for ground, name in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
