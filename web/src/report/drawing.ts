/** Draw subscriptions and one chosen message on the map. */
import type { ExpressionSpecification } from "maplibre-gl";
import type { Feature, MapView } from "../map/view.ts";
import { type DetailLine, geometryOf, partsOf, type SubscriptionLine } from "./format.ts";

/** A match of the chosen message. */
export interface Match {
  /** Number of the subscription in the report. */
  number: number;
  subscription: SubscriptionLine;
  /** The relation of the message to the region of the subscription; null if one of them has none. */
  relation: string | null;
}

const FAINT = 0.25; // of the regions that step back behind a chosen message

/** Features of a shape: one for each part of a collection. Their ids begin with `id` and a colon. */
function featuresOf(id: string, shape: SubscriptionLine[4], kind: string, properties: Record<string, unknown>): Feature[] {
  const geometry = geometryOf(shape);
  if (geometry === null) return [];
  return partsOf(geometry).map((part, place) => ({ id: `${id}:${place}`, geometry: part, kind, properties }));
}

/** The number that an id of a feature begins with. */
export function numberOf(featureId: string): number {
  return Number.parseInt(featureId, 10);
}

/** Share from 0 to 1 of the most matches, by logarithms. */
export function weightOf(matches: number, most: number): number {
  return most > 0 && matches > 0 ? Math.max(0.15, Math.log1p(matches) / Math.log1p(most)) : 0;
}

/** The regions that are shown while no message is chosen, large ones below small ones. */
export function overviewFeatures(lines: readonly SubscriptionLine[]): Feature[] {
  const most = lines.reduce((found, [, , , matches]) => Math.max(found, matches), 0);
  return lines
    .flatMap((line, number) => {
      const kind = line[3] > 0 ? "subscription" : "paused";
      return featuresOf(String(number), line[4], kind, { weight: weightOf(line[3], most), radius: 3 });
    })
    .sort((a, b) => sizeOf(b.geometry) - sizeOf(a.geometry));
}

function sizeOf(geometry: GeoJSON.Geometry): number {
  const ring = geometry.type === "Polygon" ? geometry.coordinates[0] : undefined;
  if (ring === undefined) return geometry.type === "Point" ? 0 : Number.POSITIVE_INFINITY;
  const [x, y] = [ring.map((position) => position[0] ?? 0), ring.map((position) => position[1] ?? 0)];
  return (Math.max(...x) - Math.min(...x)) * (Math.max(...y) - Math.min(...y));
}

/** Shade regions by their weight, and let them step back behind a chosen message. */
export function shadeOverview(view: MapView, isBehind: boolean): void {
  const strength = isBehind ? FAINT : 1;
  const { maplibre } = view;
  maplibre.setPaintProperty("subscriptions-fill", "fill-opacity", [
    "*", strength,
    ["case", ["boolean", ["feature-state", "selected"], false], 0.75,
     ["interpolate", ["linear"], ["get", "weight"], 0, 0.1, 1, 0.65]],
  ]); // prettier-ignore
  maplibre.setPaintProperty("subscriptions-line", "line-opacity", 0.6 * strength);
  maplibre.setPaintProperty("subscriptions-line", "line-width", 0.6);
  maplibre.setPaintProperty("subscriptions-point", "circle-opacity", strength);
  maplibre.setPaintProperty("subscriptions-point", "circle-stroke-opacity", strength);
}

/** Draw a message and all its matches, and move the map to them. Returns how many matches have a shape. */
export function drawChosen(view: MapView, detail: DetailLine, matches: readonly Match[]): number {
  const message = featuresOf("0", detail[0], matches.length > 0 ? "match" : "message", { radius: 7 });
  const drawn = matches.map(({ number, subscription }) => featuresOf(String(number), subscription[4], "asked", {}));
  view.setFeatures("relation", message);
  view.setFeatures("answer", drawn.flat());
  thinLines(view, matches.length);
  const shapes = [...message, ...drawn.flat()].map(({ geometry }) => geometry);
  if (shapes.length > 0) view.fit(shapes, { maxZoom: 17, animate: !matchMedia("(prefers-reduced-motion)").matches });
  return drawn.filter((features) => features.length > 0).length;
}

/** The more matches, the thinner their outlines, until the user zooms in; the message stays visible above them. */
function thinLines({ maplibre }: MapView, matches: number): void {
  const width = matches < 50 ? 2 : matches < 500 ? 1.2 : 0.5;
  maplibre.setPaintProperty("answer-line", "line-width", [
    "interpolate", ["linear"], ["zoom"], 13, marked(width, 4), 17, marked(2, 5),
  ]); // prettier-ignore
  maplibre.setPaintProperty("answer-fill", "fill-opacity", marked(matches < 500 ? 0.3 : 0.4, 0.75));
  maplibre.setPaintProperty("relation-fill", "fill-opacity", 0.1);
}

function marked(usual: number, selected: number): ExpressionSpecification {
  return ["case", ["boolean", ["feature-state", "selected"], false], selected, usual];
}

export function clearChosen(view: MapView): void {
  view.setFeatures("relation", []);
  view.setFeatures("answer", []);
}
