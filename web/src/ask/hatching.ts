/** Patterns that tell the two regions of a relation apart on the map without colours: hatching, and dashes. */

import type { Map as MapLibre } from "maplibre-gl";

type HatchKind = "asked" | "found";

const SIDE = 12; // pixels of a tile of the pattern
const SOURCE = "relation";
const OUTLINES = "relation-line"; // the map's own layer, below which hatching is drawn

/** Return a tile of diagonal lines that rise (1) or fall (-1), as RGBA. */
export function hatchTile([red, green, blue]: readonly [number, number, number], slope: 1 | -1): Uint8ClampedArray {
  const data = new Uint8ClampedArray(SIDE * SIDE * 4);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const place = (((x + slope * y) % SIDE) + SIDE) % SIDE;
      const distance = Math.min(place, SIDE - place);
      const alpha = Math.max(0, 1.6 - distance) / 1.6;
      data.set([red, green, blue, Math.round(150 * alpha)], (y * SIDE + x) * 4);
    }
  }
  return data;
}

/** Return the parts of a colour such as #2463c9; grey if it is written otherwise. */
export function parseColour(text: string): [number, number, number] {
  const digits = /^#([0-9a-f]{6})$/i.exec(text.trim())?.[1];
  if (digits === undefined) return [128, 128, 128];
  return [0, 2, 4].map((place) => parseInt(digits.slice(place, place + 2), 16)) as [number, number, number];
}

/** Hatch the regions of the layer `relation`, in the colours that the page has now. Calling it again renews colours. */
export function hatchRelation(map: MapLibre, colourOf: (kind: HatchKind) => string = pageColour): void {
  if (map.getSource(SOURCE) === undefined) return;
  for (const [kind, slope] of [["asked", 1], ["found", -1]] as const) {
    const name = `hatch-${kind}`;
    const image = { width: SIDE, height: SIDE, data: hatchTile(parseColour(colourOf(kind)), slope) };
    if (map.hasImage(name)) map.updateImage(name, image);
    else map.addImage(name, image, { pixelRatio: 1.5 });
    if (map.getLayer(`${SOURCE}-${name}`) !== undefined) continue;
    const before = map.getLayer(OUTLINES) === undefined ? undefined : OUTLINES;
    map.addLayer(
      {
        id: `${SOURCE}-${name}`,
        type: "fill",
        source: SOURCE,
        filter: ["==", ["get", "kind"], kind],
        paint: { "fill-pattern": name },
      },
      before,
    );
  }
  addDashes(map);
}

/** Break the outline of the message's region with light dashes. */
function addDashes(map: MapLibre): void {
  const id = `${SOURCE}-dashes`;
  if (map.getLayer(id) !== undefined) return;
  map.addLayer({
    id,
    type: "line",
    source: SOURCE,
    filter: ["==", ["get", "kind"], "found"],
    paint: { "line-color": "#ffffff", "line-width": 1.6, "line-dasharray": [1.5, 2.5] },
  });
}

function pageColour(kind: HatchKind): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--kind-${kind}`);
}
