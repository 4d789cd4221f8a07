"""A real browser for tests: Chromium, driven by Playwright, with WebGL computed by the processor.

Chromium comes from PATH, or from the packages of Debian into build/engines. Where it cannot be had, tests are skipped
with the reason; with CI set in the environment they fail, so that nobody takes a skip for a pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from fetched_programs import CACHE, NoProgramError, program, unpack_package, write_script

NAMES = ("chromium", "google-chrome", "google-chrome-stable")
FLAGS = (
    # Pages are our own, and a sandbox needs rights that root and containers do not have.
    "--no-sandbox",
    # WebGL without a graphics card.
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # Containers have a small /dev/shm.
    "--disable-dev-shm-usage",
    # A page that asks for another host gets no answer, and tests see that it asked.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
WAITING = 90_000  # milliseconds that a busy machine may take for anything that a test waits for
WIDE = (1440, 900)
PHONE = (360, 740)
# A program of WebGL that draws one green pixel and returns it.
DRAWS = """() => {
    const gl = document.createElement("canvas").getContext("webgl2");
    gl.clearColor(0, 1, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const pixel = new Uint8Array(4);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    return [...pixel];
}"""
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
Scheme = Literal["light", "dark"]
expect.set_options(timeout=WAITING)


def chromium_program(cache: Path = CACHE) -> Path:
    """Return Chromium from PATH or the cache, or fetch it; raise NoProgramError if that fails."""
    return program(NAMES, cache, _fetch_chromium)


def _fetch_chromium(place: Path, cache: Path) -> None:
    """Unpack the package, libraries and fonts that are missing here, and write a script that starts it."""
    unpacked = cache / "chromium-files"
    libraries = unpack_package("chromium", place, unpacked)
    fonts = unpacked / "fonts.conf"
    fonts.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">\n<fontconfig>\n'
        '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>\n'
        f"<dir>{unpacked}/usr/share/fonts</dir>\n<cachedir>{unpacked}/font-cache</cachedir>\n</fontconfig>\n"
    )
    started = f'LD_LIBRARY_PATH={libraries} FONTCONFIG_FILE={fonts} exec {unpacked}/usr/lib/chromium/chromium "$@"'
    write_script("chromium", started, place, cache)


@contextmanager
def browsing(*flags: str, cache: Path = CACHE) -> Iterator[Browser]:
    """Run Chromium without a window until the block ends; raise NoProgramError if there is none."""
    found = chromium_program(cache)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


def give_up(reason: object) -> NoReturn:
    """Skip a test that cannot have what it needs; fail where CI is set in the environment."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have a browser: {reason}")
    pytest.skip(str(reason))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of a module; import this fixture into a conftest to use it.

    It ends with the module: while Playwright runs, nothing else in its thread can run an event loop.
    """
    try:
        chromium_program()
    except NoProgramError as error:
        give_up(error)
    with browsing() as browser:
        yield browser


@dataclass
class Seen:
    """What happened in a page that should not have: every list stays empty in a page that is in order."""

    origin: str
    errors: list[str] = field(default_factory=list)  # of the console, and exceptions that nobody caught
    strangers: list[str] = field(default_factory=list)  # addresses asked for beyond the page's own origin
    dialogs: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail if anything was seen."""
        assert not self.errors, f"the console says {self.errors}"
        assert not self.strangers, f"the page asked others for {self.strangers}"
        assert not self.dialogs, f"the page opened dialogs: {self.dialogs}"

    def hear(self, message: ConsoleMessage) -> None:
        """Note an error or a warning of the console; violations of a Content-Security-Policy are errors."""
        if message.type in ("error", "warning") and not _is_about_software_rendering(message.text):
            self.errors.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def ask(self, request: Request) -> None:
        """Note a request that leaves the origin."""
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob", "about") and f"{address.scheme}://{address.netloc}" != self.origin:
            self.strangers.append(request.url)

    def dismiss(self, dialog: Dialog) -> None:
        """Note a dialog and close it."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def _is_about_software_rendering(text: str) -> bool:
    """Whether a warning is the browser's own on WebGL without a graphics card."""
    return "WebGL" in text and any(sign in text for sign in ("swiftshader", "SwiftShader", "GPU stall", "software"))


@contextmanager
def context(
    browser: Browser, size: tuple[int, int] = WIDE, scheme: Scheme = "light", **options: Any
) -> Iterator[BrowserContext]:
    """Open a window of its own, with nothing stored, until the block ends; motion is reduced."""
    opened = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce", **options
    )
    opened.set_default_timeout(WAITING)
    try:
        yield opened
    finally:
        opened.close()


def watch(page: Page, url: str) -> Seen:
    """Note from now on what a page of this address should not do."""
    address = urlsplit(url)
    seen = Seen(f"{address.scheme}://{address.netloc}")
    page.on("console", seen.hear)
    page.on("pageerror", lambda error: seen.errors.append(f"uncaught: {error}"))
    page.on("request", seen.ask)
    page.on("dialog", seen.dismiss)
    return seen


def check_width(page: Page) -> None:
    """Fail if the page can be panned sideways."""
    width, inner = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    if width > inner:
        wide = page.evaluate(
            """() => [...document.querySelectorAll("body *")]
                .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
                .slice(0, 5).map(one => one.outerHTML.slice(0, 120))"""
        )
        raise AssertionError(f"{page.url} is {width} pixels wide in a window of {inner}: {wide}")


def check_access(
    page: Page, *, within: str = "html", without: tuple[str, ...] = (), rules: tuple[str, ...] = WCAG
) -> None:
    """Fail with what axe finds wrong: contrast below 4.5, controls without names, roles that are not there.

    `within` selects what it looks at, `without` are selectors of what it leaves out, `rules` the rules or sets of them
    that it applies.
    """
    scope = {"include": [[within]], "exclude": [[selector] for selector in without]}
    options = {"runOnly": list(rules), "resultTypes": ["violations"]}
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate("([scope, options]) => axe.run(scope, options)", [scope, options])
    told = [
        f"{one['id']} ({one['impact']}): {one['help']}\n"
        + "\n".join(f"    {node['html'][:160]}\n      {_reason(node)}" for node in one["nodes"][:5])
        for one in found["violations"]
    ]
    assert not told, f"{page.url}\n" + "\n".join(told)


def _reason(node: dict[str, Any]) -> str:
    return "; ".join(check["message"] for kind in ("any", "all", "none") for check in node[kind])
