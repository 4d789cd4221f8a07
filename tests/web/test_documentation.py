"""The documentation in a browser: readable in both modes, on a phone too, searchable, and sufficient to itself."""

import io
import re

import pytest
from matplotlib.image import imread

from browser import PHONE, WIDE, check_access, check_width, context, watch
from built_docs import build_site
from effort import FULL
from static_site import static_site

pytestmark = pytest.mark.slow

KINDS = ["index.html", "serve-settings.html", "performance.html", "api/broker.html"]  # one of each kind of page
SCHEMES = {"light": "default", "dark": "slate"}
# Marks one visible element for each way that text looks here and did not look on pages before: its colour, what lies
# behind it, and whether it is large. Contrast depends on nothing else; axe takes seconds for all text of a long page.
MARK_LOOKS = """known => {
    const looks = new Set(known);
    const grounds = new Map([[null, ""]]);
    function ground(element) {  // backgrounds and opacities from the element down to the first opaque one
        if (!grounds.has(element)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
            const isClear = /^rgba\\(.*, 0\\)$/.test(backgroundColor);
            const own = [isClear ? "" : backgroundColor, backgroundImage, opacity].join(" ").replace(" none 1", "");
            grounds.set(element, own.startsWith("rgb(") ? own : own + ground(element.parentElement));
        }
        return grounds.get(element);
    }
    function isLarge({ fontSize, fontWeight }) {  // as WCAG 2 defines it
        return parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
    }
    document.querySelectorAll("[data-look]").forEach(one => one.removeAttribute("data-look"));
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        const isSeen = element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
        if (!isSeen || !walker.currentNode.data.trim()) continue;
        const style = getComputedStyle(element);
        const look = `${style.color} on ${ground(element)}${isLarge(style) ? ", large" : ""}`;
        if (looks.has(look)) continue;
        looks.add(look);
        element.setAttribute("data-look", "");
    }
    return [...looks];
}"""


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


def some_names(built):
    """Addresses of some pages: of one kind each, and every third of the others; of all in `make verify`."""
    every = names(built)
    return every if FULL else sorted({*KINDS, *every[::3]})


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


def check_contrast(page, looks):
    """Look at text that does not look like text of pages before; return how text looks on all of them."""
    found = page.evaluate(MARK_LOOKS, looks)
    if len(found) > len(looks):
        check_access(page, within="[data-look]", rules=("color-contrast",))
    return found


def test_text_of_pages_has_contrast_in_both_modes(chromium, built, served):
    looks, schemes = {"light": [], "dark": []}, ["light", "dark"]
    with context(chromium) as window:
        page = window.new_page()
        for name in some_names(built):
            page.goto(f"{served}/{name}")
            page.add_style_tag(content="* { transition: none !important }")
            for scheme in schemes:
                page.emulate_media(color_scheme=scheme)
                page.locator(f"body[data-md-color-scheme={SCHEMES[scheme]}]").wait_for()
                looks[scheme] = check_contrast(page, looks[scheme])
            schemes.reverse()  # the next page opens in the mode of this one: each change draws the whole page
        assert min(map(len, looks.values())) >= 15
        page.emulate_media(color_scheme="dark")
        page.locator("body[data-md-color-scheme=slate]").wait_for()
        page.add_style_tag(content=".md-typeset p { color: #8a8a8a; background-color: #777777 }")
        with pytest.raises(AssertionError, match="color-contrast"):
            check_contrast(page, looks["dark"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable(chromium, served, scheme):
    assert not each_page(chromium, served, KINDS, WIDE, scheme, check_access)


def brightness(image):
    """The mean brightness of an image as it is shown, from 0 to 1."""
    return float(imread(io.BytesIO(image.screenshot()))[..., :3].mean())


def test_figures_are_dark_in_the_dark_and_screenshots_as_they_were_taken(chromium, served):
    with context(chromium, scheme="dark") as window:
        page = window.new_page()
        page.goto(f"{served}/index.html")
        assert brightness(page.locator("img[src$='eight_relations.png']")) < 0.3
        page.goto(f"{served}/matching.html")
        assert brightness(page.locator("img[src$='message_flow.svg']")) < 0.3
        page.goto(f"{served}/map.html")
        assert brightness(page.locator("img[src$='map.png']")) > 0.7


def test_pages_stay_in_the_window_of_a_phone(chromium, built, served):
    assert not each_page(chromium, served, some_names(built), PHONE, "light", check_width)
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
