/** How things look on the map: palettes for light and dark, and MapLibre layers made from them. */
import type { ExpressionSpecification, LayerSpecification } from "maplibre-gl";
import type { LayerName, Theme } from "./view.ts";

/** Kinds of features that have a colour of their own; other kinds look like the default of their layer. */
export const KINDS = [
  "subscription", // a region that somebody asks about
  "paused", // of a paused subscription
  "tracked", // of a subscription that tracks objects
  "message", // a region or point that a message is about
  "match", // of a message that matched something
  "object", // a tracked object where it was last
  "trail", // where a tracked object came from
  "enter", // an object has entered a region
  "exit", // an object has left a region
  "asked", // in an answer: the region of the filter
  "found", // in an answer: the region of the message
  "shared", // in an answer: what both have in common, or where they touch
  "yes", // a verdict: true
  "no", // a verdict: false
  "unknown", // a verdict: neither
  "draft", // being drawn
  "broker", // a broker of the network
  "link", // between two brokers
] as const;
export type Kind = (typeof KINDS)[number];

export interface Palette {
  sea: string;
  land: string;
  border: string;
  place: string;
  halo: string;
  grid: string;
  kinds: Record<Kind, string>;
}

const LIGHT: Palette = {
  sea: "#dce6ec",
  land: "#f8f6f1",
  border: "#cfc8bb",
  place: "#5f6670",
  halo: "#fdfcfa",
  grid: "#d5dae0",
  kinds: {
    subscription: "#2361c5",
    paused: "#5f6670",
    tracked: "#0a706c",
    message: "#b3760b",
    match: "#c53f1a",
    object: "#7040c8",
    trail: "#a58bdb",
    enter: "#1d7f3d",
    exit: "#c02b48",
    asked: "#2361c5",
    found: "#c53f1a",
    shared: "#8a1fa3",
    yes: "#1d7f3d",
    no: "#c02b48",
    unknown: "#737b85",
    draft: "#a3128b",
    broker: "#27303a",
    link: "#5b6672",
  },
};

const DARK: Palette = {
  sea: "#11181f",
  land: "#1c252e",
  border: "#3a4652",
  place: "#9aa6b2",
  halo: "#141b22",
  grid: "#27323d",
  kinds: {
    subscription: "#6ea4ff",
    paused: "#8b95a0",
    tracked: "#4cc9bf",
    message: "#e5b34f",
    match: "#ff7d54",
    object: "#b898ff",
    trail: "#7d63ba",
    enter: "#5fd587",
    exit: "#ff7f98",
    asked: "#6ea4ff",
    found: "#ff7d54",
    shared: "#e08bf2",
    yes: "#5fd587",
    no: "#ff7f98",
    unknown: "#98a2ad",
    draft: "#f08ae0",
    broker: "#dfe6ee",
    link: "#93a0ad",
  },
};

export const PALETTES: Record<Theme, Palette> = { light: LIGHT, dark: DARK };

/** Below first. */
export const DRAWING_ORDER: readonly LayerName[] = [
  "flashes",
  "subscriptions",
  "messages",
  "tracks",
  "brokers",
  "answer",
  "relation",
  "draft",
];

const DEFAULT_KINDS: Record<LayerName, Kind> = {
  subscriptions: "subscription",
  flashes: "subscription",
  messages: "message",
  tracks: "object",
  answer: "asked",
  relation: "shared",
  draft: "draft",
  brokers: "broker",
};
const FILL_OPACITY: Record<LayerName, number> = {
  subscriptions: 0.08,
  flashes: 0.14, // and the subscription itself above it
  messages: 0.18,
  tracks: 0.15,
  answer: 0.12,
  relation: 0.35,
  draft: 0.15,
  brokers: 0.1,
};
const LINE_WIDTH: Record<LayerName, number> = {
  subscriptions: 1.1,
  flashes: 2.6,
  messages: 1.4,
  tracks: 1.6,
  answer: 2.4,
  relation: 3,
  draft: 2,
  brokers: 2,
};

type Shape = "fill" | "line" | "point" | "label";
export const FONT = "Noto Sans Regular";

export function layerId(layer: LayerName, shape: Shape): string {
  return `${layer}-${shape}`;
}

/** The value for the first of these states that a feature has, else `otherwise`. */
function byState(
  values: { selected: number; hit: number; hover: number; dimmed: number },
  otherwise: number,
): ExpressionSpecification {
  const is = (name: string): ExpressionSpecification => ["boolean", ["feature-state", name], false];
  return [
    "case",
    is("selected"), values.selected,
    is("hit"), values.hit,
    is("flashing"), values.hit,
    is("hover"), values.hover,
    is("dimmed"), values.dimmed,
    otherwise,
  ]; // prettier-ignore
}

function colourOf(layer: LayerName, palette: Palette): ExpressionSpecification {
  const pairs = KINDS.flatMap((kind) => [kind, palette.kinds[kind]]);
  return ["match", ["get", "kind"], ...pairs, palette.kinds[DEFAULT_KINDS[layer]]] as unknown as ExpressionSpecification;
}

/** Tiles of the server name no kind: they say whether a subscription is paused or tracks objects. */
function colourInTiles(palette: Palette): ExpressionSpecification {
  const { paused, tracked, subscription } = palette.kinds;
  return ["case", ["to-boolean", ["get", "paused"]], paused, ["to-boolean", ["get", "tracked"]], tracked, subscription];
}

/** In tiles, small shapes are counted by cells, which have a count and no key: the more, the darker. */
function fillInTiles(opacity: ExpressionSpecification): ExpressionSpecification {
  const byCount: ExpressionSpecification = ["interpolate", ["linear"], ["ln", ["max", 1, ["get", "count"]]], 0, 0.2, 7, 0.75];
  return ["case", ["has", "key"], opacity, byCount];
}

function isShape(...types: string[]): ExpressionSpecification {
  return ["in", ["geometry-type"], ["literal", types]];
}
const POLYGONS = isShape("Polygon", "MultiPolygon");
const LINES = isShape("Polygon", "MultiPolygon", "LineString", "MultiLineString");
const POINTS = isShape("Point", "MultiPoint");

/** The layers that show a layer of the map: fill, line, point and label. */
export function featureLayers(layer: LayerName, palette: Palette, sourceLayer?: string): LayerSpecification[] {
  const isTiled = sourceLayer !== undefined;
  const colour = isTiled ? colourInTiles(palette) : colourOf(layer, palette);
  const [fill, width] = [FILL_OPACITY[layer], LINE_WIDTH[layer]];
  const opacity = byState({ selected: fill + 0.2, hit: fill + 0.14, hover: fill + 0.1, dimmed: fill / 4 }, fill);
  const source = !isTiled ? { source: layer } : { source: layer, "source-layer": sourceLayer };
  const labelStrength = byState({ selected: 1, hit: 1, hover: 1, dimmed: 0.2 }, 1);
  const strength = byState({ selected: 1, hit: 1, hover: 1, dimmed: 0.2 }, layer === "subscriptions" ? 0.75 : 0.95);
  return [
    {
      id: layerId(layer, "fill"),
      type: "fill",
      ...source,
      filter: POLYGONS,
      paint: {
        "fill-color": colour,
        "fill-opacity": isTiled ? fillInTiles(opacity) : opacity,
        "fill-antialias": false, // the line layer draws outlines
      },
    },
    {
      id: layerId(layer, "line"),
      type: "line",
      ...source,
      filter: isTiled ? ["all", ["has", "key"], LINES] : LINES,
      layout: { "line-join": "round", "line-cap": "round" },
      paint: {
        "line-color": colour,
        "line-width": byState({ selected: width + 2, hit: width + 1.2, hover: width + 1, dimmed: width }, width),
        "line-opacity": strength,
        ...(layer === "draft" ? { "line-dasharray": [2, 1.5] } : {}),
      },
    },
    {
      id: layerId(layer, "point"),
      type: "circle",
      ...source,
      filter: POINTS,
      paint: {
        "circle-color": colour,
        "circle-radius": [
          "+",
          ["coalesce", ["get", "radius"], layer === "subscriptions" ? 3.5 : 5],
          byState({ selected: 3, hit: 2, hover: 2, dimmed: 0 }, 0),
        ],
        "circle-opacity": strength,
        "circle-stroke-color": palette.halo,
        "circle-stroke-width": 1.5,
        "circle-stroke-opacity": strength,
      },
    },
    {
      id: layerId(layer, "label"),
      type: "symbol",
      ...source,
      filter: ["has", "label"],
      ...(layer === "subscriptions" ? { minzoom: 1 } : {}),
      layout: {
        "text-field": ["to-string", ["get", "label"]],
        "text-font": [FONT],
        "text-size": 12,
        "text-max-width": 12,
        "text-variable-anchor": ["top", "bottom", "left", "right"],
        "text-radial-offset": 0.7,
        "text-optional": true,
      },
      paint: { "text-color": colour, "text-halo-color": palette.halo, "text-halo-width": 1.6, "text-opacity": labelStrength },
    },
  ];
}

/** The layers of all features, names above all shapes; `tiles` is the layer of the server's tiles, if there are any. */
export function dataLayers(palette: Palette, tiles?: string): LayerSpecification[] {
  const layers = DRAWING_ORDER.flatMap((layer) => featureLayers(layer, palette, layer === "subscriptions" ? tiles : undefined));
  return [...layers.filter(({ type }) => type !== "symbol"), ...layers.filter(({ type }) => type === "symbol")];
}

/** Background, land, borders and places; a grid if coordinates are plain; the user's own tiles. */
export function baseLayers(palette: Palette, options: { plain: boolean; tiles: boolean }): LayerSpecification[] {
  const background: LayerSpecification = {
    id: "background",
    type: "background",
    paint: { "background-color": options.plain ? palette.land : palette.sea },
  };
  if (options.plain) {
    return [
      background,
      {
        id: "grid",
        type: "line",
        source: "grid",
        paint: { "line-color": palette.grid, "line-width": ["case", ["get", "axis"], 2, 1] },
      },
    ];
  }
  const layers: LayerSpecification[] = [background];
  for (const [suffix, range] of [["", {}], ["-fine", { minzoom: FINE_ZOOM }]] as const) {
    layers.push(
      { id: `land${suffix}`, type: "fill", source: `land${suffix}`, ...range, paint: { "fill-color": palette.land } },
      {
        id: `borders${suffix}`,
        type: "line",
        source: `borders${suffix}`,
        ...range,
        paint: { "line-color": palette.border, "line-width": ["interpolate", ["linear"], ["zoom"], 2, 0.6, 8, 1.4] },
      },
    );
  }
  if (options.tiles) layers.push({ id: "tiles", type: "raster", source: "tiles" });
  else layers.push(placeLayer(palette));
  return layers;
}

/** From this zoom level on the fine coast is shown, once it is loaded. */
export const FINE_ZOOM = 5;

function placeLayer(palette: Palette): LayerSpecification {
  return {
    id: "places",
    type: "symbol",
    source: "places",
    // Countries (ranks 0 to 2) come first and go again when cities fill the view.
    filter: [
      "any",
      ["all", ["<", ["get", "rank"], 3], ["<", ["zoom"], 6], [">=", ["zoom"], ["get", "rank"]]],
      ["all", [">=", ["get", "rank"], 3], [">=", ["zoom"], ["get", "rank"]]],
    ],
    layout: {
      "text-field": ["get", "name"],
      "text-font": [FONT],
      "text-size": ["case", ["<", ["get", "rank"], 3], 12.5, 11.5],
      "text-letter-spacing": ["case", ["<", ["get", "rank"], 3], 0.08, 0],
      "text-max-width": 8,
      "symbol-sort-key": ["get", "order"],
    },
    paint: {
      "text-color": palette.place,
      "text-halo-color": palette.halo,
      "text-halo-width": 1.2,
    },
  };
}
