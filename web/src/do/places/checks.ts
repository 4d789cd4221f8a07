/** Checks of coordinates that all readers of dropped files share, and errors that name where a fault is. */

import type { Place } from "../filter/model.ts";

/** A fault of a file or of typed text: what is wrong, and where. */
export class ReadError extends Error {
  override name = "ReadError";
  readonly where: string;
  readonly what: string;

  constructor(where: string, what: string) {
    super(where === "" ? what : `${where}: ${what}`);
    this.where = where;
    this.what = what;
  }
}

/** Coordinates of plain maps may have any value; on a map of the world they are degrees. */
export interface PlaceLimits {
  plain: boolean;
}

export function checkPosition(position: unknown, where: string, { plain }: PlaceLimits): [number, number] {
  if (!Array.isArray(position) || position.length < 2) {
    throw new ReadError(where, `need a pair of numbers, got ${shown(position)}`);
  }
  const [x, y] = position as unknown[];
  if (typeof x !== "number" || typeof y !== "number" || !Number.isFinite(x) || !Number.isFinite(y)) {
    throw new ReadError(where, `need two finite numbers, got ${shown(position)}`);
  }
  if (!plain && (Math.abs(x) > 180 || Math.abs(y) > 90)) {
    throw new ReadError(where, `(${x}, ${y}) is no longitude and latitude in degrees`);
  }
  return [x, y];
}

/** Return a ring of a polygon: closed, of at least four positions, heights dropped. */
export function checkRing(ring: unknown, where: string, limits: PlaceLimits): [number, number][] {
  if (!Array.isArray(ring)) throw new ReadError(where, `need a list of positions, got ${shown(ring)}`);
  const positions = ring.map((position, k) => checkPosition(position, `${where}[${k}]`, limits));
  const [first, last] = [positions[0], positions.at(-1)];
  if (positions.length < 4) {
    throw new ReadError(where, `a ring needs at least four positions, got ${positions.length}`);
  }
  if (first === undefined || last === undefined || first[0] !== last[0] || first[1] !== last[1]) {
    throw new ReadError(where, "the ring is not closed: its last position differs from its first");
  }
  return positions;
}

/** Return a GeoJSON geometry as a place of the map; `where` names it in errors. */
export function checkPlace(geometry: unknown, where: string, limits: PlaceLimits): Place {
  if (!isRecord(geometry)) throw new ReadError(where, `need a geometry, got ${shown(geometry)}`);
  const { type, coordinates } = geometry;
  const below = `${where}.coordinates`;
  switch (type) {
    case "Point":
      return { type, coordinates: checkPosition(coordinates, below, limits) };
    case "Polygon":
      return { type, coordinates: checkRings(coordinates, below, limits) };
    case "MultiPolygon":
      if (!Array.isArray(coordinates) || coordinates.length === 0) {
        throw new ReadError(below, `need a list of polygons, got ${shown(coordinates)}`);
      }
      return { type, coordinates: coordinates.map((part, k) => checkRings(part, `${below}[${k}]`, limits)) };
    default:
      throw new ReadError(`${where}.type`, `need Polygon, MultiPolygon or Point, got ${shown(type)}`);
  }
}

function checkRings(rings: unknown, where: string, limits: PlaceLimits): [number, number][][] {
  if (!Array.isArray(rings) || rings.length === 0) throw new ReadError(where, `need a list of rings, got ${shown(rings)}`);
  return rings.map((ring, k) => checkRing(ring, `${where}[${k}]`, limits));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function shown(value: unknown): string {
  // JSON.stringify(undefined) is undefined, whatever its type says.
  const text = (JSON.stringify(value) as string | undefined) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
