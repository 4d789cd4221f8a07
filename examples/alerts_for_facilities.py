"""Alerts for facilities: which hospital, school or dam must hear of which warning, and why.

Made-up warnings in the Common Alerting Protocol and made-up facilities, in examples/data; at the end real warnings,
where the folder CONTRADA_DATA has them. Run it as it is, or cell by cell in an editor that knows `# %%`. The page
docs/tutorial_alerts.md tells the same story.
"""

# %% Read the alerts. Zones say which region a code stands for.
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws to a file, needs no screen

import matplotlib.pyplot as plt
import pyarrow.parquet as pq
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

import contrada as ct
from contrada.formats.reading import Read, Rejected, read_messages
from contrada.formats.subscriptions import read_subscription_table

DATA = Path(__file__).parent / "data"
METRES = "EPSG:32632"  # UTM zone 32: a buffer needs units of length, and degrees are none
Message = dict[str, Any]

read = list(read_messages(DATA / "alerts", zones=DATA / "zones.geojson", to_crs=METRES))
messages = [item.message for item in read if isinstance(item, Read)]
print(f"{len(messages)} messages")

# %% What could not be read is said, never dropped. This alert names a zone that nobody knows: it has no area.
rejected = [item for item in read if isinstance(item, Rejected)]
for item in rejected:
    print(f"rejected: {Path(item.source).name}: {item.reason}")


# %% Only what is meant, and what still stands: tests are no warnings, and a Cancel or an Update ends what it refers to.
def standing(messages: Iterable[Message]) -> dict[str, Message]:
    """The alerts that stand, by identifier: actual ones that no later alert of their sender cancels or updates."""
    stand: dict[str, Message] = {}
    for message in sorted(messages, key=lambda message: message["sent"]):
        if message["status"] != "Actual":
            continue
        for reference in message.get("references", "").split():
            sender, identifier, _ = reference.split(",")
            if sender == message["sender"]:
                stand.pop(identifier, None)
        if message["msgType"] in ("Alert", "Update"):
            stand[message["identifier"]] = message
    return stand


alerts = standing(messages)
gone = sorted({message["identifier"] for message in messages} - alerts.keys())
print(f"{len(alerts)} alerts stand; tests, cancelled and outdated: {', '.join(gone)}")

# %% Severity is a word in CAP. As a number it can be compared with what each facility asks for.
LEVELS = {"Minor": 1, "Moderate": 2, "Severe": 3, "Extreme": 4}  # Unknown has none: no comparison is true of it
for message in alerts.values():
    message["level"] = LEVELS.get(message["severity"])

# %% Every facility subscribes with its own region, 2 km around it, and its own least level.
TEMPLATE = ct.parse("S_INTERSECTS(area, $geometry) AND level >= $min_severity")
FILE = DATA / "facilities.geojson"
facilities = read_subscription_table(FILE, TEMPLATE, key="id", subscriber="name", to_crs=METRES, buffer=2000)
table = ct.ForwardingTable()
table.subscribe_many(facilities.table, TEMPLATE)
print(f"{len(table)} facilities, {len(facilities.rejected)} rejected")

# %% Who must hear of what?
matches = {identifier: set(table.match_keys(message)) for identifier, message in alerts.items()}
for identifier, message in alerts.items():
    names = sorted(map(str, table.match(message)))
    print(f"{identifier} {message['event']:<14} {message['severity']:<9} {', '.join(names) or '-'}")

# %% Why does the rail yard not hear of the heat, and why is nobody told of the frost?
quiet = table.explain(alerts["VALLEY-04"], "f04")
print(f"\nThe heat:  {quiet}")
lost = table.explain(alerts["VALLEY-12"], "f01")
print(f"\nThe frost: {lost}")


# %% A map: the alerts that stand, and the facilities that hear of one
def outline(region: ct.Region, **style: Any) -> PathPatch:
    """The region as one filled path; holes run the other way round and stay empty."""
    rings = [ring for shell, holes in region.parts for ring in (shell, *holes)]
    return PathPatch(Outline.make_compound_path(*(Outline(ring, closed=True) for ring in rings)), **style)


LABELS = {"Heat": 0.95, "Fog": 0.3, "Thunderstorm": 0.42, "Wind": 0.2, "Wildfire": 0.47}  # how high, where all is free
COLOURS = {"Moderate": "#f4e3b2", "Severe": "#f4a261", "Extreme": "#c1121f"}
circles = ct.RegionArray.from_arrow(facilities.table.column("geometry"))
keys, least = (facilities.table.column(name).to_pylist() for name in ("key", "min_severity"))
told = set().union(*matches.values())
figure, axis = plt.subplots(figsize=(9, 8.8), layout="constrained")
for message in sorted(alerts.values(), key=lambda message: message["level"]):
    if "area" not in message:
        continue
    colour = COLOURS[message["severity"]]
    axis.add_patch(outline(message["area"], facecolor=colour, edgecolor="#6b3a1e", alpha=0.55, linewidth=1.2))
    (xmin, ymin, xmax, ymax), height = message["area"].bounds, LABELS.get(message["event"], 1.07)
    at = ((xmin + xmax) / 2, ymin + height * (ymax - ymin))
    axis.annotate(f"{message['event']}, {message['severity'].lower()}", at, weight="bold", size=9, ha="center")
for key, circle, asked in zip(keys, circles, least, strict=True):
    is_told = key in told
    axis.add_patch(outline(circle, facecolor="#1d3557" if is_told else "white", edgecolor="#1d3557", linewidth=1))
    xmin, ymin, xmax, ymax = circle.bounds
    centre = ((xmin + xmax) / 2, (ymin + ymax) / 2)
    axis.annotate(str(asked), centre, ha="center", va="center", size=8, color="white" if is_told else "#1d3557")
axis.autoscale_view()
axis.set(aspect="equal")
axis.axis("off")
axis.set_title(
    "Facilities with 2 km around them; the number is the least level each asks for\n"
    "(2 moderate, 3 severe, 4 extreme). Filled: an alert that stands reaches it at that level."
)
target = Path("build", "demo", "alerts.png")
target.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(target, dpi=110)
print(f"\nThe picture is in {target}")


# %% The same on real warnings of the US National Weather Service, if they are there
def match_warnings(path: Path, step: float = 0.5) -> tuple[int, int, int]:
    """Match real warnings with a facility on every half degree: warnings, those rejected, and matches."""
    places = [(x / 2, y / 2) for x in range(-250, -130) for y in range(50, 98)]
    boxes = ct.RegionArray.from_regions([ct.Region.box(x, y, x + 0.1, y + 0.1) for x, y in places])
    rows = {"key": [f"{x:g} {y:g}" for x, y in places], "geometry": boxes.to_wkb()}
    # VTEC codes: O is operational (T would be a test), CAN and EXP end a warning.
    asked = (
        "S_INTERSECTS(geometry, $geometry) AND sig = 'W' AND vtec LIKE '/O.%' "
        "AND vtec NOT LIKE '/O.CAN.%' AND vtec NOT LIKE '/O.EXP.%'"
    )
    table = ct.ForwardingTable()
    table.subscribe_many(rows, asked)
    answer = table.match_many(pq.read_table(path), by="subscription")
    return len(answer.offsets) - 1, len(answer.rejected), len(answer.rows)


WARNINGS = Path(os.environ.get("CONTRADA_DATA", "."), "events_nws.parquet")
if WARNINGS.exists():
    began = time.perf_counter()
    count, bad, found = match_warnings(WARNINGS)
    print(f"{count:,} real warnings, {bad} rejected, {found:,} matches in {time.perf_counter() - began:.1f} s")
else:
    print("No real warnings here: set CONTRADA_DATA to a folder that has events_nws.parquet")
