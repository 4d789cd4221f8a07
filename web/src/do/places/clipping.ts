/** Union and intersection of regions for drawing. Relations are never decided here: the server decides them exactly. */

import { intersection, union, type Geom } from "polyclip-ts";
import type { Place } from "../filter/model.ts";

type Area = GeoJSON.Polygon | GeoJSON.MultiPolygon;

/** Return one place for several: their union; a point counts only if it is alone. */
export function unionOf(places: Place[]): Place {
  const areas = places.filter((place): place is Area => place.type !== "Point");
  const [only, ...others] = areas;
  if (only === undefined) {
    const [point] = places;
    if (point === undefined) throw new RangeError("unionOf needs at least one place");
    return point;
  }
  return others.length === 0 ? only : (asPlace(clip(union, only, others)) ?? allParts(areas));
}

/** Return regions side by side, as parts of one: the server names the fault if they overlap. */
function allParts(areas: Area[]): Area {
  const parts = areas.map((area) => (area.type === "Polygon" ? [area.coordinates] : area.coordinates));
  return { type: "MultiPolygon", coordinates: parts.flat() };
}

/** Return the part that two regions share, or null if they share none or the clipping fails. */
export function sharedPart(a: Area, b: Area): Area | null {
  return asPlace(clip(intersection, a, [b]));
}

function clip(operation: typeof union, first: Area, others: Area[]): GeoJSON.Position[][][] {
  try {
    return operation(first.coordinates as Geom, ...others.map((area) => area.coordinates as Geom));
  } catch {
    return []; // the picture goes without the shared part; the relation is named by the server
  }
}

function asPlace(parts: GeoJSON.Position[][][]): Area | null {
  const [only, ...others] = parts;
  if (only === undefined) return null;
  return others.length === 0 ? { type: "Polygon", coordinates: only } : { type: "MultiPolygon", coordinates: parts };
}
