"""The pictures of the README and the docs: the eight relations, the way of a message, and how fast all of it is.

    python benchmarks/pictures.py

The relations in the first picture are computed, not assumed; those of speed show what is in
build/bench/relate.json, match.json and simplify.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import matplotlib

matplotlib.use("Agg")

import flow_picture
import match_paper_picture
import match_pictures
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import shapely
import simplify_picture
from command import result_of
from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline
from report import ROOT, duration

import contrada as ct

FloatArray = npt.NDArray[np.float64]
IMAGES = ROOT / "docs" / "images"
RESULT = result_of("relate")
INK, FIRST, SECOND, PALE = "#1f2933", "#1f77b4", "#e8702a", "#9aa5b1"
RCC8 = {
    ct.Relation.DISJOINT: "DC",
    ct.Relation.MEETS: "EC",
    ct.Relation.OVERLAPS: "PO",
    ct.Relation.EQUALS: "EQ",
    ct.Relation.INSIDE: "NTPP",
    ct.Relation.COVERED_BY: "TPP",
    ct.Relation.CONTAINS: "NTPPi",
    ct.Relation.COVERS: "TPPi",
}


def blob(x: float, y: float, radius: float, phase: float = 0.0, steps: int = 240) -> FloatArray:
    """A smooth, slightly irregular ring."""
    angle = 2 * np.pi * np.arange(steps) / steps
    distance = radius * (1 + 0.10 * np.sin(3 * angle + phase) + 0.05 * np.cos(5 * angle - phase))
    return np.stack([x + distance * np.cos(angle), y + distance * np.sin(angle)], axis=1)


def bite(ring: FloatArray, start: int, stop: int, depth: float) -> FloatArray:
    """The part of a ring next to its vertices start..stop, reaching `depth` of the way to its centre."""
    rim = np.take(ring, np.arange(start, stop), axis=0, mode="wrap")
    centre = ring.mean(axis=0)
    bow = np.sin(np.linspace(0, np.pi, len(rim)))[:, None] ** 0.5
    return np.concatenate([rim, (rim + (centre - rim) * depth * bow)[-2:0:-1]])


def bulge(ring: FloatArray, start: int, stop: int, height: float) -> FloatArray:
    """A region outside a ring that shares its vertices start..stop."""
    return bite(ring, start, stop, -height)


def pairs() -> Iterator[tuple[FloatArray, FloatArray]]:
    """Eight pairs of rings, one for each relation of the first to the second."""
    large = blob(0, 0, 1.0)
    yield blob(-0.8, 0.35, 0.55, 1.0), blob(0.75, -0.25, 0.6, 2.0)
    yield bulge(blob(0.5, 0, 0.75, 2.0), 80, 160, 1.1), blob(0.5, 0, 0.75, 2.0)
    yield blob(-0.4, 0.15, 0.75, 1.0), blob(0.45, -0.15, 0.75, 2.0)
    yield large, np.roll(large, 11, axis=0)[::-1]
    yield blob(0.05, 0.05, 0.5, 2.0), large
    yield bite(large, 50, 130, 0.7), large
    yield large, blob(0.05, 0.05, 0.5, 2.0)
    yield large, bite(large, 170, 250, 0.7)


def draw_region(axes: Axes, region: ct.Region, colour: str) -> None:
    """A translucent region with a crisp boundary."""
    shape = region.to_shapely()
    outline = Outline(np.asarray(shape.exterior.coords), closed=True)
    axes.add_patch(PathPatch(outline, facecolor=colour, alpha=0.38, edgecolor="none"))
    axes.add_patch(PathPatch(outline, facecolor="none", edgecolor=colour, linewidth=2.0, joinstyle="round"))


def draw_common_boundary(axes: Axes, a: ct.Region, b: ct.Region) -> None:
    """Dashes of the second colour where the boundaries run together, so that both are seen."""
    common = shapely.line_merge(shapely.intersection(a.to_shapely().boundary, b.to_shapely().boundary))
    for line in shapely.get_parts(common):
        if line.geom_type == "LineString":
            axes.plot(*np.asarray(line.coords).T, color=SECOND, linewidth=2.0, dashes=(3, 3))


def draw_relations() -> None:
    """Eight panels, each labelled with the relation that `relate` finds."""
    figure, panels = plt.subplots(2, 4, figsize=(11, 6.1), facecolor="white")
    found = []
    for axes, (first, second) in zip(panels.flat, pairs(), strict=True):
        a, b = ct.Region(first), ct.Region(second)
        relation = ct.Relation(ct.relate(a, b))
        found.append(relation)
        draw_region(axes, b, SECOND)
        draw_region(axes, a, FIRST)
        draw_common_boundary(axes, a, b)
        axes.set(xlim=(-1.55, 1.55), ylim=(-1.35, 1.3), aspect="equal")
        axes.axis("off")
        name = relation.name.lower().replace("_", "-")
        axes.set_title(name, fontsize=16, color=INK, fontweight="bold", pad=4)
        axes.text(0, -1.32, f"RCC-8: {RCC8[relation]}", ha="center", va="center", fontsize=12, color="#52606d")
    if sorted(found) != sorted(ct.Relation):
        raise SystemExit(f"the picture shows {[relation.name for relation in found]}, not each relation once")
    keys = [Patch(facecolor=FIRST, alpha=0.6, label="A"), Patch(facecolor=SECOND, alpha=0.6, label="B")]
    figure.legend(handles=keys, loc="lower center", ncols=2, frameon=False, fontsize=13)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.93, bottom=0.12, wspace=0.02, hspace=0.22)
    save(figure, "eight_relations.png")


KINDS = {
    "message of 20 points": "message of\n20 points",
    "message of kind A": "A: round,\n6 to 10 points",
    "message of kind B": "B: irregular,\n30 to 50 points",
    "message of kind C": "C: narrow,\n3 to 5 points",
}
LABELS = {
    "ours": ("Contrada, exact", FIRST),
    "shapely.intersects, message prepared": ("GEOS, prepared: only intersects or not", "#52606d"),
    "shapely.relate": ("GEOS relate", PALE),
    "relate_sampled (Algorithm 1, no halo)": ("Algorithm 1 (2011), compiled: approximate", SECOND),
}


def scan_times(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds per message for each kind of message and contender."""
    times: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["section"].startswith("One message") and row["against"] in LABELS:
            kind = times.setdefault(row["work"], {"ours": row["ours"]})
            kind[row["against"]] = row["theirs"]
    return times


def draw_speed() -> None:
    """Milliseconds per scan on a logarithmic axis."""
    result = json.loads(RESULT.read_text())
    times = scan_times(result["rows"])
    section = next(row["section"] for row in result["rows"] if row["section"].startswith("One message"))
    figure, axes = plt.subplots(figsize=(11, 6.4), facecolor="white")
    for group, seconds in enumerate(times.values()):
        for place, (contender, (label, colour)) in enumerate(LABELS.items()):
            y, value = group + 0.2 * (place - 1.5), seconds[contender] * 1e3
            axes.barh(y, value, height=0.18, color=colour, label=label if group == 0 else None)
            factor = "" if contender == "ours" else f"  ({seconds[contender] / seconds['ours']:.0f} times)"
            text = f" {duration(seconds[contender])}{factor}"
            axes.text(value, y, text, va="center", fontsize=9.5, color=INK)
    lowest = min(min(seconds.values()) for seconds in times.values()) * 1e3
    highest = max(max(seconds.values()) for seconds in times.values()) * 1e3
    axes.set(xscale="log", xlim=(lowest / 2, highest * 5), xlabel="milliseconds per message (logarithmic)")
    axes.set_yticks(range(len(times)), [KINDS[work] for work in times], fontsize=11)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(f"{section.split(' (')[0]}, one thread", fontsize=15, color=INK, loc="left", pad=34)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, frameon=False, fontsize=9.5)
    figure.text(0.985, 0.012, caption(result), ha="right", fontsize=8, color="#52606d")
    figure.subplots_adjust(left=0.125, right=0.985, top=0.86, bottom=0.115)
    save(figure, "relate_speed.png")


def caption(result: dict[str, Any]) -> str:
    """Where the numbers come from."""
    machine, versions = result["machine"], result["versions"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("GEOS", "shapely", "numba"))
    text = f"{machine['cpu']}; {libraries}"
    return text + (" (quick run)" if result["quick"] else "")


def save(figure: Any, name: str) -> None:
    """Write the picture, twice as fine as the screen."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / name, dpi=170)
    plt.close(figure)
    print(f"wrote {(IMAGES / name).relative_to(ROOT)}")


def main() -> None:
    """Draw all for which there are numbers."""
    draw_relations()
    save(flow_picture.draw_flow(), "message_flow.png")
    if RESULT.exists():
        draw_speed()
    else:
        print(f"no {RESULT.relative_to(ROOT)}: run benchmarks/relate.py first for relate_speed.png")
    if match_pictures.RESULT.exists():
        save(match_pictures.draw_match(), "match_speed.png")
    else:
        print(f"no {match_pictures.RESULT.relative_to(ROOT)}: run benchmarks/match.py first for match_speed.png")
    if match_paper_picture.has_figure():
        save(match_paper_picture.draw_figure_4a(), "match_paper.png")
    if simplify_picture.has_figure():
        save(simplify_picture.draw_figure_4b(), "figure4b.png")


if __name__ == "__main__":
    main()
