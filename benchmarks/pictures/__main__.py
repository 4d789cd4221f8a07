"""The pictures of the README and the docs: relations, cover graphs, and how fast all of it is.

    python -m benchmarks.pictures

Those of speed show what is in build/bench/relate.json and match.json. `make pictures` takes screenshots
of a report and of the live map, `python -m benchmarks.pictures.notebooks` those of notebooks.
docs/images/message_flow.svg is drawn by hand.
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from benchmarks.command import command, result_of
from benchmarks.pictures import speed
from benchmarks.pictures.drawings import draw_graphs, draw_relations
from benchmarks.report import ROOT

IMAGES = ROOT / "docs" / "images"
SPEED = {
    "relate_speed.png": ("relate", "One message", speed.draw_scans),
    "match_speed.png": ("match", "Random operators", speed.draw_match),
}


def save(figure: Figure, name: str, dpi: int = 170) -> None:
    """Write the picture, twice as fine as the screen."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / name, dpi=dpi)
    plt.close(figure)
    print(f"wrote {(IMAGES / name).relative_to(ROOT)}")


def main() -> None:
    """Draw all for which there are numbers."""
    argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0]).parse_args()
    save(draw_relations(), "eight_relations.png")
    save(draw_graphs(), "cover_graphs.png", dpi=110)
    for picture, (name, section, draw) in SPEED.items():
        result = json.loads(result_of(name).read_text()) if result_of(name).exists() else {"rows": []}
        if any(row["section"].startswith(section) for row in result["rows"]):
            save(draw(result), picture)
        else:
            print(f"no {picture}: run `python -m benchmarks.{name}` first")


if __name__ == "__main__":
    main()
