/**
 * Plain coordinates on the canvas. The canvas is the Mercator square; plain coordinates lie on it by an affine map, so
 * straight lines stay straight and circles stay round. The server's tiles use the same map (see Plane).
 */
import type { Plane } from "./view.ts";

export type Position = [number, number];
export interface Projection {
  project: (xy: Position) => Position;
  unproject: (lngLat: Position) => Position;
}

export const IDENTITY: Projection = { project: (xy) => xy, unproject: (lngLat) => lngLat };
const SPAN_PER_EXTENT = 16; // the square is this many times as wide as what there is to see
const DEGREES = 180 / Math.PI;

/** A plane around `bounds`; around (0, 0) without any. */
export function planeAround(bounds: readonly [number, number, number, number] | null | undefined): Plane {
  if (!bounds) return { x: 0, y: 0, span: SPAN_PER_EXTENT * 100 };
  const [xmin, ymin, xmax, ymax] = bounds;
  const extent = Math.max(xmax - xmin, ymax - ymin);
  return { x: (xmin + xmax) / 2, y: (ymin + ymax) / 2, span: SPAN_PER_EXTENT * (extent > 0 ? extent : 1) };
}

export function projectionOf({ x, y, span }: Plane): Projection {
  return {
    project: ([px, py]) => [
      ((px - x) / span) * 360,
      Math.atan(Math.sinh((2 * Math.PI * (py - y)) / span)) * DEGREES,
    ],
    unproject: ([longitude, latitude]) => [
      x + (longitude / 360) * span,
      y + (Math.asinh(Math.tan(latitude / DEGREES)) / (2 * Math.PI)) * span,
    ],
  };
}

/** A geometry with every position mapped. */
export function mapGeometry(geometry: GeoJSON.Geometry, map: (xy: Position) => Position): GeoJSON.Geometry {
  const point = (position: GeoJSON.Position): Position => map([position[0] ?? 0, position[1] ?? 0]);
  const line = (positions: GeoJSON.Position[]) => positions.map(point);
  switch (geometry.type) {
    case "Point":
      return { type: geometry.type, coordinates: point(geometry.coordinates) };
    case "MultiPoint":
    case "LineString":
      return { type: geometry.type, coordinates: line(geometry.coordinates) };
    case "Polygon":
    case "MultiLineString":
      return { type: geometry.type, coordinates: geometry.coordinates.map(line) };
    case "MultiPolygon":
      return { type: geometry.type, coordinates: geometry.coordinates.map((rings) => rings.map(line)) };
    case "GeometryCollection":
      return { type: geometry.type, geometries: geometry.geometries.map((part) => mapGeometry(part, map)) };
  }
}

/** xmin, ymin, xmax, ymax of all positions; null if there are none. */
export function boundsOf(geometries: readonly GeoJSON.Geometry[]): [number, number, number, number] | null {
  let [xmin, ymin, xmax, ymax] = [Infinity, Infinity, -Infinity, -Infinity];
  const take = (position: Position): Position => {
    [xmin, ymin] = [Math.min(xmin, position[0]), Math.min(ymin, position[1])];
    [xmax, ymax] = [Math.max(xmax, position[0]), Math.max(ymax, position[1])];
    return position;
  };
  for (const geometry of geometries) mapGeometry(geometry, take);
  return xmin > xmax ? null : [xmin, ymin, xmax, ymax];
}

/** The numbers 1, 2 and 5 times a power of ten: the largest that is at most `most`. */
export function niceStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  const factor = [5, 2, 1].find((candidate) => candidate * power <= most * (1 + 1e-9)) ?? 1;
  return factor * power;
}

/** A coordinate with as many digits as a step between labels needs. */
export function formatCoordinate(value: number, step: number): string {
  const digits = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const text = (Math.abs(value) < step / 1e6 ? 0 : value).toFixed(digits);
  return digits === 0 && Math.abs(value) >= 10_000 ? Number(text).toLocaleString("en-US") : text;
}
