"""The picture of README.md and docs/report.md: a screenshot of the report of `make demo`, with one message chosen.

    make pictures
    python -m benchmarks.pictures.report_page [build/demo/report.html] [docs/images/report.png]

Chromium comes from PATH, or from Debian's packages.
"""

import argparse
from pathlib import Path

from benchmarks.command import command
from browser import browsing, context, watch
from report_pages import ReportData, read_report

SIZE = 1400, 1120  # pixels
MATCHES = 250  # about as many matches has the message in the picture


def row_to_show(data: ReportData) -> int:
    """Return the message with a region whose number of matches is closest to MATCHES, the first of several."""
    shapes = [detail[0] for detail in data.lines["details"]]
    rows = [row for row, shape in enumerate(shapes) if isinstance(shape, list) and len(shape) == 4] or range(
        len(shapes)
    )
    return min(rows, key=lambda row: abs(data.lines["counts"][row] - MATCHES))


def photograph(page: Path, picture: Path) -> None:
    """Write a screenshot of a report; an error in the page fails."""
    row = row_to_show(read_report(page))
    address = f"{page.absolute().as_uri()}#message={row}"
    with browsing() as browser, context(browser, SIZE) as window:
        opened = window.new_page()
        seen = watch(opened, address)
        opened.goto(address)
        opened.get_by_test_id("details").wait_for(timeout=60_000)
        opened.evaluate(WAIT_UNTIL_DRAWN)
        opened.screenshot(path=picture)
        seen.check()
    print(f"wrote {picture}: message {row} of {page}")


# Resolves when the map has drawn all that it was given.
WAIT_UNTIL_DRAWN = """() => new Promise((resolve) => {
    const map = document.querySelector("[data-testid=map]").contradaView.maplibre;
    const wait = () => (map.loaded() && map.areTilesLoaded() ? setTimeout(resolve, 500) : setTimeout(wait, 100));
    setTimeout(wait, 500);
})"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path, default=Path("build/demo/report.html"))
    parser.add_argument("picture", nargs="?", type=Path, default=Path("docs/images/report.png"))
    photograph(**vars(parser.parse_args()))
