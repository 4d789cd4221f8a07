"""Relate a storm to the districts around it, print the relations and draw them.

Run it with `make demo`, or cell by cell in an editor that knows `# %%`.
"""

# %% A storm, and the districts that subscribers care about
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws to a file, needs no screen

import matplotlib.pyplot as plt
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from rich.console import Console
from rich.table import Table

import contrada as ct

STORM = ct.Region([(4, 3), (10, 3), (12, 6), (10, 9), (4, 9), (2, 6)])
FRAME = [(-3, -2), (17, -2), (17, 14), (-3, 14)]
DISTRICTS = {
    "harbour": ct.Region.box(9, 1, 14, 5),
    "old town": ct.Region([(5, 5), (7, 4.5), (8, 6), (6.5, 7.5), (5, 7)]),
    "market": ct.Region.from_wkt("POLYGON ((4 9, 6 8, 8 9, 4 9))"),
    "north fields": ct.Region.box(4, 9, 10, 13),
    "county": ct.Region.box(0, 3, 14, 11),
    "province": ct.Region.box(-2, -1, 16, 13),
    # The same ring from another start, in the other direction: the same region.
    "last forecast": ct.Region([(12, 6), (10, 3), (4, 3), (2, 6), (4, 9), (10, 9)]),
    # Everything around the storm: its hole is the storm itself, so the two only meet.
    "evacuation belt": ct.Region(FRAME, holes=[[(4, 3), (10, 3), (12, 6), (10, 9), (4, 9), (2, 6)]]),
    "islands": ct.Region.from_wkt(
        "MULTIPOLYGON (((-2 0, 1 0, 0 2, -2 0)), ((13 8, 16 8, 15 11, 13 8), (14 8.5, 15 8.5, 14.5 9.5, 14 8.5)))"
    ),
}

# %% One call relates the storm to the whole column, exactly
column = ct.RegionArray.from_regions(list(DISTRICTS.values()))
relations = [ct.Relation(code) for code in ct.relate(STORM, column)]

# %% One relation answers every question about the pair
table = Table(title="The storm RELATION the district")
for heading in ("district", "relation", "S_INTERSECTS", "S_WITHIN", "S_CONTAINS"):
    table.add_column(heading)
for name, relation in zip(DISTRICTS, relations, strict=True):
    asked = (ct.RelationSet.S_INTERSECTS, ct.RelationSet.S_WITHIN, ct.RelationSet.S_CONTAINS)
    table.add_row(name, str(relation), *("yes" if relation in mask else "" for mask in asked))
Console().print(table)

towns = {"Siena": ct.Point(6, 6), "Fano": ct.Point(12, 6), "Pisa": ct.Point(-1, 12)}
for name, town in towns.items():
    print(f"{name} at ({town.x:g}, {town.y:g}) and the storm: {ct.relate(town, STORM)}")


# %% Draw each district with the storm
def outline(region: ct.Region, **style: object) -> PathPatch:
    """The region as one filled path; holes run the other way round and stay empty."""
    rings = [ring for shell, holes in region.parts for ring in (shell, *holes)]
    return PathPatch(Outline.make_compound_path(*(Outline(ring, closed=True) for ring in rings)), **style)


figure, axes = plt.subplots(3, 3, figsize=(10, 8.6), layout="constrained")
for axis, (name, district), relation in zip(axes.flat, DISTRICTS.items(), relations, strict=True):
    axis.add_patch(outline(district, facecolor="#e9c46a", edgecolor="#8a6d1d", linewidth=1.5))
    axis.add_patch(outline(STORM, facecolor="#457b9d", edgecolor="#1d3557", linewidth=1.5, alpha=0.6))
    axis.set(xlim=(-4, 18), ylim=(-3, 15), aspect="equal", xticks=[], yticks=[])
    axis.set_title(f"storm {relation} {name}")
figure.suptitle("A storm (blue) and districts (yellow): exactly one of eight relations each")

target = Path("build", "demo", "relate_regions.png")
target.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(target, dpi=120)
print(f"\nThe picture is in {target}")
