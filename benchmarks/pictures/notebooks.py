"""Pictures of what notebooks and plots show, for docs/regions.md, explain.md, matching.md and tutorial_alerts.md.

    python -m benchmarks.pictures.notebooks

Needs Chromium (`apt-get install chromium`).
"""

import argparse
import doctest
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbclient
import nbformat
import numpy as np
import shapely

import contrada as ct
from benchmarks.command import command
from benchmarks.report import ROOT

IMAGES = ROOT / "docs" / "images"
SCALE = 2  # twice as fine as the screen
PAGE = """<!doctype html><meta charset="utf-8"><style>
body{margin:12px;font-family:system-ui,sans-serif;background:#fff;color:#1f2328}
main{display:flex;gap:32px;align-items:flex-start}
.cell{margin:0 0 14px}
.cell pre{font-size:12px;line-height:1.4;background:#f6f8fa;border:1px solid #d8dee4;padding:8px;margin:0 0 8px}
.cell img{max-width:760px}
</style><main>%s</main>"""


def shown_by(page: str, name: str) -> Any:
    """Run the examples of a page until they define a name, and return its value; examples of errors are passed over."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((ROOT / "docs" / page).read_text()):
        with suppress(ct.ContradaError):
            exec(compile(example.source, page, "exec"), names)
        if name in names:
            return names[name]
    raise SystemExit(f"docs/{page} has no {name!r}")


def photograph(html: str, picture: str, size: tuple[int, int]) -> None:
    """Write a screenshot of what a notebook shows; `size` is in pixels of the page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(PAGE % html, encoding="utf-8")
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--blink-settings=preferredColorScheme=1", f"--user-data-dir={folder}/profile",
             f"--window-size={size[0]},{size[1]}", f"--force-device-scale-factor={SCALE}",
             f"--screenshot={IMAGES / picture}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
    print(f"wrote docs/images/{picture}")


def regions() -> str:
    """Return a region with holes and parts, and a column of a million regions, as notebooks show them."""
    ring = "(0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 5 2, 5 5, 2 5, 2 2), (6 6, 8 6, 8 8, 6 8, 6 6)"
    one = ct.Region.from_wkt(f"MULTIPOLYGON (({ring}), ((12 1, 16 1, 14 6, 12 1)))", crs="EPSG:25832")
    random = np.random.default_rng(7)
    x, y, side = random.uniform(0, 100, 1_000_000), random.uniform(0, 70, 1_000_000), random.uniform(0.2, 4, 1_000_000)
    many = ct.RegionArray.from_shapely(shapely.box(x, y, x + side, y + side))
    return f"<div>{one._repr_html_()}</div><div>{many._repr_html_()}</div>"


def notebook(path: Path, cells: tuple[str, ...]) -> str:
    """Run a notebook and return cells of code with what they show; `cells` has words of those that are wanted."""
    ran = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(ran, resources={"metadata": {"path": str(path.parent)}}).execute()
    found = []
    for cell in ran.cells:
        if cell.cell_type == "code" and any(word in cell.source for word in cells):
            shown = "".join(map(_output, cell.outputs))
            found.append(f'<div class="cell"><pre>{escape(cell.source)}</pre>{shown}</div>')
    return f"<div>{''.join(found)}</div>"


def _output(output: Any) -> str:
    data = output.get("data", {})
    picture = data.get("image/png")
    return f'<img src="data:image/png;base64,{picture}">' if picture else data.get("text/html", "")


def main() -> None:
    """Write all pictures."""
    argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0]).parse_args()
    photograph(f"<div>{shown_by('explain.md', 'why')._repr_html_()}</div>", "explain.png", (660, 545))
    photograph(regions(), "regions.png", (760, 375))
    cells = "table.match(alerts", 'explain(alerts["Heat"]', "table.plot"
    photograph(notebook(ROOT / "examples" / "alerts.ipynb", cells), "notebook.png", (900, 1120))
    figure = shown_by("matching.md", "axes").figure
    figure.set_size_inches(8.4, 4.4)
    figure.savefig(IMAGES / "plot.png", dpi=150)
    print("wrote docs/images/plot.png")


if __name__ == "__main__":
    main()
