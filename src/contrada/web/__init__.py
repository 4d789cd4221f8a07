"""Where the built web pages are: the live map, and the script of the report. `make web` builds them from `web/`."""

from __future__ import annotations

from pathlib import Path

BUILT = Path(__file__).parent / "built"
HOW_TO_BUILD = "run `make web` in a clone of the repository, or install a wheel, which carries the page"


def page_folder(built: Path = BUILT) -> Path | None:
    """Return the folder with the live map's `index.html` and `assets`; None if it was not built.

    >>> page_folder(Path("nowhere")) is None
    True
    """
    folder = built / "page"
    return folder if (folder / "index.html").is_file() else None


def report_folder(built: Path = BUILT) -> Path | None:
    """Return the folder with the scripts and styles that a report carries; None if they were not built.

    >>> report_folder(Path("nowhere")) is None
    True
    """
    folder = built / "report"
    return folder if (folder / "report.js").is_file() else None
