"""The documentation in a browser: readable in both modes, on a phone too, searchable, and sufficient to itself."""

import re

import pytest

from browser import PHONE, WIDE, check_access, check_width, context, watch
from built_docs import build_site
from static_site import static_site

pytestmark = pytest.mark.slow

KINDS = ["index.html", "serve-settings.html", "performance.html", "api/broker.html"]  # one of each kind of page
# Code of every language, tables, pictures and notes: axe takes some seconds for the contrast of a long page.
COLOURED = ["index.html", "start.html", "cli.html", "pipeline.html", "map.html", "coming-from-postgis.html"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site, as `make docs` builds it."""
    return build_site(tmp_path_factory.mktemp("documentation"))


@pytest.fixture(scope="module")
def served(built):
    with static_site(built) as url:
        yield url


def names(built):
    """Addresses of all pages within the site."""
    found = sorted(str(path.relative_to(built)) for path in built.rglob("*.html") if path.name != "404.html")
    assert len(found) > 30
    return found


def background(page):
    """How bright the page is behind its text, from 0 to 255."""
    return page.evaluate(
        """() => {
            const seen = document.createElement("canvas").getContext("2d");
            seen.fillStyle = getComputedStyle(document.body).backgroundColor;
            seen.fillRect(0, 0, 1, 1);
            return Math.max(...seen.getImageData(0, 0, 1, 1).data.slice(0, 3));
        }"""
    )


def each_page(browser, served, pages, size, scheme, *checks):
    """What checks find wrong on pages."""
    faults = []
    with context(browser, size, scheme) as window:
        page = window.new_page()
        seen = watch(page, served)
        for name in pages:
            page.goto(f"{served}/{name}")
            assert (background(page) < 80) == (scheme == "dark"), name
            for check in checks:
                try:
                    check(page)
                except AssertionError as error:
                    faults.append(str(error))
    seen.check()
    return "\n\n".join(faults)


def contrast(page):
    check_access(page, rules=("color-contrast",))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable(chromium, served, scheme):
    assert not each_page(chromium, served, COLOURED, WIDE, scheme, contrast)
    assert not each_page(chromium, served, KINDS, WIDE, scheme, check_access)


def test_every_page_stays_in_the_window_of_a_phone(chromium, built, served):
    assert not each_page(chromium, served, names(built), PHONE, "light", check_width)
    for scheme in ("light", "dark"):
        assert not each_page(chromium, served, KINDS, PHONE, scheme, check_access)


@pytest.mark.parametrize("way", ["file", "http"])
def test_search_finds_pages(chromium, built, served, way):
    root = built.as_uri() if way == "file" else served
    with context(chromium) as window:
        page = window.new_page()
        seen = watch(page, root)
        page.goto(f"{root}/index.html")
        page.locator(".md-search__button").click()
        page.keyboard.type("covered-by")
        page.get_by_text(re.compile(r"^\d+ results$")).wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/index.html" not in url)
        assert "covered_by" in page.locator("article").inner_text().lower()
    seen.check()


def test_code_can_be_copied(chromium, served):
    with context(chromium, permissions=["clipboard-read", "clipboard-write"]) as window:
        page = window.new_page()
        page.goto(f"{served}/index.html")
        code = page.locator(".highlight:has(pre > code)").first
        code.hover()
        code.get_by_role("button", name="Copy to clipboard").click()
        copied = page.wait_for_function("navigator.clipboard.readText()").json_value()
        assert copied.strip()
        assert copied.strip().splitlines()[0].removeprefix(">>> ") in code.inner_text()
