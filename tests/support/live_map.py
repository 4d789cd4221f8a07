"""The live map as somebody uses it in a browser: sign in, draw, subscribe, publish, ask why.

Things are found by their roles and names, as a screen reader finds them, and the map is clicked by pixel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

TILE = 512  # pixels of the world at zoom 0
VIEW = "document.querySelector('[data-testid=map]').contradaView"
# Features of a layer that the map has drawn, by their ids.
DRAWN = f"""layer => {{
    const {{ maplibre }} = {VIEW};
    const layers = maplibre.getStyle().layers.filter(one => one.source === layer).map(one => one.id);
    return [...new Set(maplibre.queryRenderedFeatures({{ layers }}).map(one => String(one.id)))].sort();
}}"""
Point = tuple[float, float]


class LiveMap:
    """A page with the map of a server. Coordinates are longitude and latitude."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url

    # --- opening ---

    def open(self, view: tuple[float, float, float] | None = None, **link: str) -> None:
        """Open the page at a view (longitude, latitude, zoom) with other parts of a permalink."""
        parts = ({} if view is None else {"at": ",".join(map(str, view))}) | link
        self.page.goto(f"{self.url}/{'#' + urlencode(parts, safe=',:') if parts else ''}")

    def log_in(self, key: str) -> None:
        """Sign in with an API key, by typing it, and wait until the page follows the server."""
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.wait_until_live()

    def wait_until_live(self) -> None:
        """Wait until the page follows the server."""
        expect(self.page.get_by_test_id("connection")).to_have_attribute("data-state", "live")

    def panel(self, name: str) -> Locator:
        """Open a panel (Messages, Ask, Do, Tracks or Network) and return it."""
        self.page.get_by_role("tab", name=name).click()  # raises it on a phone, also if it is the current one
        return self.page.get_by_role("tabpanel", name=name)

    # --- the map ---

    @property
    def link(self) -> dict[str, str]:
        """The parts of the permalink in the address."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).fragment).items()}

    def pixel(self, place: Point) -> Point:
        """Return where a place is in the window, for the view that the address tells."""
        x, y, zoom = map(float, self.link["at"].split(","))
        box = self.page.get_by_test_id("map").bounding_box()
        assert box is not None
        size = TILE * 2**zoom
        across, down = (place[0] - x) / 360 * size, (_mercator(y) - _mercator(place[1])) * size
        return box["x"] + box["width"] / 2 + across, box["y"] + box["height"] / 2 + down

    def click_map(self, place: Point) -> None:
        """Click a place of the map."""
        self.page.mouse.click(*self.pixel(place))

    def drawn(self, layer: str) -> list[str]:
        """Return the ids of the features of a layer that are to be seen, each once."""
        found: list[str] = self.page.evaluate(DRAWN, layer)
        return found

    def wait_until_drawn(self, layer: str, *ids: str, exactly: bool = False) -> None:
        """Wait until these features of a layer are to be seen; `exactly` these and no others."""
        holds = "shown.join() === ids.join()" if exactly else "ids.every(id => shown.includes(id))"
        script = f"([layer, ids]) => {{ const shown = ({DRAWN})(layer); return {holds}; }}"
        self.page.wait_for_function(script, arg=[layer, sorted(ids)])

    def draw(self, within: Locator, shape: str, places: Sequence[Point]) -> None:
        """Draw a shape (Polygon, Rectangle, Circle or Point) by clicks, for a region of a form."""
        within.get_by_role("button", name=shape, exact=True).click()
        expect(within.get_by_role("status").filter(has_text="Click")).to_be_visible()
        self._click_slowly(places)
        expect(within.get_by_label("WKT or coordinates")).not_to_have_value("")

    def drag(self, start: Point, end: Point) -> None:
        """Drag with the mouse from one place of the map to another."""
        self.page.mouse.move(*self.pixel(start), steps=4)
        self.page.mouse.down()
        self.page.mouse.move(*self.pixel(end), steps=8)
        self.page.mouse.up()

    def draw_rectangle(self, within: Locator, first: Point, second: Point) -> None:
        """Draw a rectangle with the mouse by two opposite corners, for a region of a form."""
        self.draw(within, "Rectangle", [first, second])

    def draw_polygon(self, within: Locator, corners: Sequence[Point]) -> None:
        """Draw a polygon with the mouse; the last click is on the first corner again."""
        self.draw(within, "Polygon", [*corners, corners[0]])

    def _click_slowly(self, places: Sequence[Point]) -> None:
        """Click with the pauses of a hand: two clicks at once are a double click."""
        for place in places:
            pixel = self.pixel(place)
            self.page.mouse.move(*pixel, steps=4)
            self.page.wait_for_timeout(350)
            self.page.mouse.click(*pixel)

    # --- doing ---

    def form(self, task: str) -> Locator:
        """Open the form of a new Subscription or Message."""
        panel = self.panel("Do")
        panel.get_by_role("group", name="What to do").get_by_role("button", name=task).click()
        return panel.get_by_role("form", name=f"New {task.lower()}")

    def fill_condition(self, form: Locator, attribute: str, operator: str, number: float) -> None:
        """Add a condition on a number to the form of a subscription."""
        form.get_by_role("button", name="Add a condition").first.click()
        condition = form.get_by_role("group", name="Condition").last
        condition.get_by_label("Type").select_option("number")
        condition.get_by_label("Attribute").fill(attribute)
        condition.get_by_label("Operator").select_option(operator)
        condition.get_by_label("Value").fill(str(number))

    def fill_attribute(self, form: Locator, name: str, kind: str, value: Any) -> None:
        """Add an attribute to the form of a message."""
        rows = form.get_by_role("group", name="Attribute ")
        if rows.count() == 0 or rows.last.get_by_label("Name").input_value():
            form.get_by_role("button", name="Add an attribute").click()
        row = rows.last
        row.get_by_label("Name").fill(name)
        row.get_by_label("Type").select_option(kind)
        row.get_by_label("Value").fill(str(value))

    def submit(self, form: Locator, button: str, outcome: str) -> Locator:
        """Press a button of a form, wait for the article that shows what came of it, and return that.

        The page opens the article once the server has answered: a panel that is opened before stays open.
        """
        form.get_by_role("button", name=button, exact=True).click()
        article = self.page.get_by_role("article", name=outcome)
        expect(article).to_be_visible()
        return article

    # --- waiting ---

    def wait_for_link(self, **parts: str) -> None:
        """Wait until the address has these parts; the page writes the view and the time there after a moment."""
        looked_for = (f"(?=.*[#&]{name}={re.escape(value)}(&|$))" for name, value in parts.items())
        expect(self.page).to_have_url(re.compile("".join(looked_for)))

    def wait_for_subscriptions(self, count: int) -> None:
        """Wait until the page has so many subscriptions; opens the panel that tells it."""
        panel = self.panel("Ask")
        other = panel.get_by_role("button", name="Ask about something else")
        if other.is_visible():
            other.click()
        text = f"{count:,} subscription{'' if count == 1 else 's'}"
        expect(panel.get_by_role("status").filter(has_text="subscription")).to_have_text(re.compile(f"^{text}(,|$)"))

    def wait_for_message(self, sequence: int) -> None:
        """Wait until the page has a message; opens the panel that lists them."""
        expect(self.panel("Messages").get_by_test_id(f"message-{sequence}")).to_be_visible()

    @property
    def messages(self) -> Locator:
        """The messages of the list, newest first."""
        return self.panel("Messages").get_by_test_id("messages").get_by_role("button")


def _mercator(latitude: float) -> float:
    """Return how far north of the equator a latitude lies on the Mercator square, in sides of it."""
    return math.asinh(math.tan(math.radians(latitude))) / (2 * math.pi)
