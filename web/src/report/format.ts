/** The data of a report, as contrada.report writes it: a header in the page, and chunks of lines. */

export const NAMES = ["items", "details", "counts", "subscriptions", "overview"] as const;
export type ChunkName = (typeof NAMES)[number];

export interface Header {
  format: 1;
  /** Coordinates are no degrees. */
  plain: boolean;
  /** xmin, ymin, xmax, ymax of all messages; null if none has a shape. */
  bounds: [number, number, number, number] | null;
  /** Where the chunks are, relative to the page; null if the page holds them. */
  files: string | null;
  /** For each name the first line of each chunk, and at the end the number of lines. */
  starts: Record<ChunkName, number[]>;
  /** Names of the attributes of messages that are shown. */
  columns: string[];
  /** Which of the columns is the title. */
  title: number | null;
  /** The attribute that messages are ordered by. */
  time: string | null;
  /** Who matches: a subscription by its key, or a subscriber. */
  unit: "key" | "subscriber";
  /** Names of relations; a detail has their numbers as digits. */
  relations: string[];
}

/** x, y of a point; or x, y, step and the parts of a region, each a list of rings of steps dx, dy. */
export type PointShape = [x: number, y: number];
export type RegionShape = [x: number, y: number, step: number, parts: number[][][]];
export type SingleShape = PointShape | RegionShape;
export type Shape = SingleShape | { shapes: SingleShape[] } | null;

/** id, milliseconds since 1970, and values in the order of the columns. */
export type ItemLine = [id: string | null, time: number | null, ...values: (string | null)[]];
/** Shape, steps between the numbers of matched subscriptions, a letter for each relation, reason of a rejection. */
export type DetailLine = [shape: Shape, subscriptions: number[], relations: string, rejected?: string];
export type SubscriptionLine = [
  key: string | null, subscriber: string | null, filter: string, matches: number, shape: Shape,
]; // prettier-ignore

export interface Lines {
  items: ItemLine;
  details: DetailLine;
  counts: number;
  subscriptions: SubscriptionLine;
  overview: SubscriptionLine;
}

/** The geometry of a shape; null where there is nothing to draw. */
export function geometryOf(shape: Shape): GeoJSON.Geometry | null {
  if (shape === null) return null;
  if ("shapes" in shape) {
    return { type: "GeometryCollection", geometries: shape.shapes.map((one) => singleGeometry(one)) };
  }
  return singleGeometry(shape);
}

function singleGeometry(shape: SingleShape): GeoJSON.Geometry {
  if (shape.length === 2) return { type: "Point", coordinates: shape };
  const [x, y, step, parts] = shape;
  const polygons = parts.map((rings) => rings.map((ring) => ringOf(ring, x, y, step)));
  return polygons.length === 1
    ? { type: "Polygon", coordinates: polygons[0] ?? [] }
    : { type: "MultiPolygon", coordinates: polygons };
}

function ringOf(steps: number[], x: number, y: number, step: number): GeoJSON.Position[] {
  const ring: GeoJSON.Position[] = [];
  let [across, up] = [0, 0];
  for (let place = 0; place + 1 < steps.length; place += 2) {
    across += steps[place] ?? 0;
    up += steps[place + 1] ?? 0;
    ring.push([x + across * step, y + up * step]);
  }
  const first = ring[0];
  if (first !== undefined) ring.push(first);
  return ring;
}

/** Single geometries of a geometry: a map draws no collections. */
export function partsOf(geometry: GeoJSON.Geometry): GeoJSON.Geometry[] {
  return geometry.type === "GeometryCollection" ? geometry.geometries : [geometry];
}

/** The numbers of the subscriptions that a message matched. */
export function subscriptionsOf(detail: DetailLine): number[] {
  let number = 0;
  return detail[1].map((step) => (number += step));
}
