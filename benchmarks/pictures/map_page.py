"""The pictures of the live map for README.md and docs/map.md: screenshots, and a tour of it as a moving picture.

    make web
    python -m benchmarks.pictures.map_page [--folder docs/images]

The tour is the one that tests/web takes, so every step has been asserted when it is photographed. One picture is of
`contrada serve --demo`, which is a district two kilometres wide; another one is of areas and storms over a country, as
`benchmarks.web` publishes them, and shows the base map. Chromium is taken from PATH or fetched.
"""

import argparse
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import tour
from benchmarks.command import command
from benchmarks.pictures.moving import Frame, write_gif
from benchmarks.pictures.report_page import WAIT_UNTIL_DRAWN
from benchmarks.report import ROOT
from benchmarks.web.load import publishing, subscribe_all
from browser import browsing, context
from contrada.client import Client
from live_map import LiveMap
from server_process import serving

SIZE = (1280, 800)  # pixels of the window
SETTLING = 1200  # milliseconds until what was drawn on the map stands still
SECONDS = 2.4  # that a frame stays
KEPT = {"why": "map-why.png", "filter": "map-filter.png"}  # steps of the tour that are pictures by themselves
LAND = "#f8f6f1"  # of the light map
# Colours that the page gives to kinds of things on the map, and to signs beside it.
COLOURS = """() => {
    const style = getComputedStyle(document.documentElement);
    const names = [...document.documentElement.style].filter(name => name.startsWith("--kind-"));
    const colours = [...names, "--accent", "--ok", "--danger"].map(name => style.getPropertyValue(name).trim());
    return [...new Set(colours)];
}"""
COUNTRY = (12.2, 42.9, 6.0)
SEED, AREAS, STORMS_PER_SECOND, COUNTRY_SECONDS = 7, 1_500, 10, 15
DEMO_SECONDS = 25  # until storms and vehicles have left traces


def write_png(path: Path, png: bytes) -> None:
    """Write a screenshot with all of its colours: a palette would lose those of small things."""
    Image.open(BytesIO(png)).convert("RGB").save(path, optimize=True)
    print(f"wrote {path}")


def take_tour(browser: Browser, folder: Path) -> None:
    """Photograph every step of the tour, and write it as a moving picture."""
    frames: list[Frame] = []
    colours: list[str] = []

    def shoot(name: str, caption: str, page: Page) -> None:
        page.mouse.move(5, 5)
        page.evaluate(WAIT_UNTIL_DRAWN)
        page.wait_for_timeout(SETTLING)
        png = page.screenshot()
        frames.append(Frame(png, caption, SECONDS))
        colours[:] = page.evaluate(COLOURS)
        if name in KEPT:
            write_png(folder / KEPT[name], png)

    with (
        tempfile.TemporaryDirectory() as state,
        serving(Path(state)) as server,
        Client(server.url, server.key) as client,
        context(browser, SIZE) as window,
    ):
        tour.prepare(client)
        tour.take(LiveMap(window.new_page(), server.url), client, server.key, shoot)
    write_gif(folder / "tour.gif", frames, colours, ground=LAND)
    print(f"wrote {folder / 'tour.gif'}")


def photograph_demo(browser: Browser, folder: Path) -> None:
    """Photograph the demonstration after storms and vehicles have moved for a while."""
    with (
        tempfile.TemporaryDirectory() as state,
        serving(Path(state), "--demo") as server,
        context(browser, SIZE) as window,
    ):
        shown = LiveMap(window.new_page(), server.url)
        shown.open()
        shown.wait_until_live()
        expect(shown.page.get_by_test_id("messages").get_by_text("match").first).to_be_visible()
        shown.page.wait_for_timeout(1000 * DEMO_SECONDS)
        shown.page.evaluate(WAIT_UNTIL_DRAWN)
        write_png(folder / "map.png", shown.page.screenshot())


def photograph_country(browser: Browser, folder: Path) -> None:
    """Photograph areas over a country, and storms that move across it."""
    rng = np.random.default_rng(SEED)
    with (
        tempfile.TemporaryDirectory() as state,
        serving(Path(state), "--map-title", "Storms over Italy") as server,
        context(browser, SIZE) as window,
    ):
        subscribe_all(server.port, server.key, AREAS, rng)
        shown = LiveMap(window.new_page(), server.url)
        shown.open(COUNTRY)
        shown.log_in(server.key)
        shown.wait_for_subscriptions(AREAS)
        with publishing(server.port, server.key, STORMS_PER_SECOND, rng):
            shown.panel("Messages")
            shown.page.wait_for_timeout(1000 * COUNTRY_SECONDS)
        shown.page.mouse.move(5, 5)
        shown.page.evaluate(WAIT_UNTIL_DRAWN)
        write_png(folder / "map-country.png", shown.page.screenshot())


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().folder
    with browsing() as browser:
        take_tour(browser, folder)
        photograph_demo(browser, folder)
        photograph_country(browser, folder)


if __name__ == "__main__":
    main()
