/** Circles as polygons, on the sphere for degrees and in the plane for plain coordinates. */

import { ReadError } from "./checks.ts";

export const CIRCLE_SIDES = 32;
const EARTH_RADIUS_KM = 6371.0088;

/**
 * Return a polygon around a centre in degrees whose sides touch a circle of `radius` kilometres: it contains the circle.
 *
 * The server does the same for circles of CAP alerts, on the ellipsoid; this polygon is for drawing and for regions
 * that a person draws.
 */
export function circleInDegrees([lon, lat]: [number, number], radius: number, sides = CIRCLE_SIDES): GeoJSON.Polygon {
  if (!(radius > 0) || !Number.isFinite(radius)) throw new ReadError("circle", `need a radius above 0 km, got ${radius}`);
  const outer = radius / EARTH_RADIUS_KM / Math.cos(Math.PI / sides);
  const phi = radians(lat);
  if (Math.abs(lat) + degrees(outer) > 85) {
    throw new ReadError("circle", `a circle of ${radius} km around latitude ${lat} comes too near a pole`);
  }
  const ring = Array.from({ length: sides }, (_, k): [number, number] => {
    const bearing = (-2 * Math.PI * k) / sides;
    const y = Math.asin(Math.sin(phi) * Math.cos(outer) + Math.cos(phi) * Math.sin(outer) * Math.cos(bearing));
    const x =
      radians(lon) +
      Math.atan2(Math.sin(bearing) * Math.sin(outer) * Math.cos(phi), Math.cos(outer) - Math.sin(phi) * Math.sin(y));
    return [degrees(x), degrees(y)];
  });
  if (ring.some(([x]) => Math.abs(x) > 180)) {
    throw new ReadError("circle", "the circle crosses the antimeridian: draw it as two polygons");
  }
  return { type: "Polygon", coordinates: [[...ring, ring[0] ?? [lon, lat]]] };
}

/** Return a polygon in plain coordinates whose sides touch a circle. */
export function circleInPlane([x, y]: [number, number], radius: number, sides = CIRCLE_SIDES): GeoJSON.Polygon {
  if (!(radius > 0) || !Number.isFinite(radius)) throw new ReadError("circle", `need a radius above 0, got ${radius}`);
  const outer = radius / Math.cos(Math.PI / sides);
  const ring = Array.from({ length: sides }, (_, k): [number, number] => {
    const angle = (2 * Math.PI * k) / sides;
    return [x + outer * Math.cos(angle), y + outer * Math.sin(angle)];
  });
  return { type: "Polygon", coordinates: [[...ring, ring[0] ?? [x, y]]] };
}

function radians(value: number): number {
  return (value * Math.PI) / 180;
}

function degrees(value: number): number {
  return (value * 180) / Math.PI;
}
