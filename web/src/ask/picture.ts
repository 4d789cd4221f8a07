/** The picture of a relation: what is drawn of a subscription's region and a message's, on the map and in a panel. */

import type { RelationName } from "../api/types.ts";
import type { Place } from "../do/filter/model.ts";
import { sharedPart } from "../do/places/clipping.ts";
import { contactsOf, gapBetween, polygonsOf, type Xy } from "../do/places/segments.ts";

/** A part of the picture; the legend names its kind. */
export type PictureKind = "asked" | "found" | "shared" | "contact" | "gap";

export interface PicturePart {
  kind: PictureKind;
  geometry: GeoJSON.Geometry;
}

/** Return a GeoJSON geometry as a place, or null if it is neither a region nor a point. */
export function asPlace(geometry: GeoJSON.Geometry | null): Place | null {
  if (geometry === null) return null;
  const { type } = geometry;
  return type === "Polygon" || type === "MultiPolygon" || type === "Point" ? geometry : null;
}

/** Return the parts of the picture, the lowest first. The relation is the server's; it decides what is looked for. */
export function pictureParts(asked: Place | null, found: Place | null, relation: RelationName | null): PicturePart[] {
  const parts: PicturePart[] = [];
  if (asked !== null) parts.push({ kind: "asked", geometry: asked });
  if (found !== null) parts.push({ kind: "found", geometry: found });
  if (asked === null || found === null || relation === null) return parts;
  if (relation === "disjoint") {
    const gap = gapBetween(found, asked);
    if (gap !== null) parts.push({ kind: "gap", geometry: { type: "LineString", coordinates: gap } });
    return parts;
  }
  if (relation !== "meets" && asked.type !== "Point" && found.type !== "Point") {
    const shared = relation === "equals" ? asked : sharedPart(asked, found);
    if (shared !== null) parts.push({ kind: "shared", geometry: shared });
  }
  if (relation === "meets" || relation === "covers" || relation === "covered-by") {
    parts.push(...contactParts(asked, found));
  }
  return parts;
}

function contactParts(asked: Place, found: Place): PicturePart[] {
  const { points, lines } = contactsOf(asked, found);
  const geometries: GeoJSON.Geometry[] = [];
  if (lines.length) geometries.push({ type: "MultiLineString", coordinates: lines });
  if (points.length) geometries.push({ type: "MultiPoint", coordinates: points });
  return geometries.map((geometry) => ({ kind: "contact", geometry }));
}

/** From coordinates of the map to those of a drawing, whose y grows downwards. */
export interface Frame {
  width: number;
  height: number;
  toDrawing: (position: GeoJSON.Position) => Xy;
}

/**
 * Return a frame of `width` by `height` that holds all places with a margin, in their true proportions.
 *
 * Degrees of longitude are shortened by the cosine of the latitude, so that circles look round.
 */
export function frameOf(places: Place[], width: number, height: number, options: { plain: boolean; margin?: number }): Frame {
  const positions = places.flatMap((place) => (place.type === "Point" ? [place.coordinates] : polygonsOf(place).flat(2)));
  const [xmin, ymin, xmax, ymax] = boundsOf(positions);
  const squeeze = options.plain ? 1 : Math.max(0.05, Math.cos((((ymin + ymax) / 2) * Math.PI) / 180));
  const margin = options.margin ?? 16;
  const across = (xmax - xmin) * squeeze;
  const span = Math.max(across / (width - 2 * margin), (ymax - ymin) / (height - 2 * margin));
  const scale = span > 0 ? 1 / span : 1;
  const [x, y] = [(xmin + xmax) / 2, (ymin + ymax) / 2];
  return {
    width,
    height,
    toDrawing: (position) => [
      width / 2 + ((position[0] ?? 0) - x) * squeeze * scale,
      height / 2 - ((position[1] ?? 0) - y) * scale,
    ],
  };
}

export function boundsOf(positions: GeoJSON.Position[]): [number, number, number, number] {
  let [xmin, ymin, xmax, ymax] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x = NaN, y = NaN] of positions) {
    [xmin, ymin] = [Math.min(xmin, x), Math.min(ymin, y)];
    [xmax, ymax] = [Math.max(xmax, x), Math.max(ymax, y)];
  }
  return [xmin, ymin, xmax, ymax];
}

/** Return the `d` of an SVG path for lines and regions, and the centres of dots for points. */
export function drawn(geometry: GeoJSON.Geometry, frame: Frame): { path: string; dots: Xy[] } {
  switch (geometry.type) {
    case "Point":
      return { path: "", dots: [frame.toDrawing(geometry.coordinates)] };
    case "MultiPoint":
      return { path: "", dots: geometry.coordinates.map(frame.toDrawing) };
    case "LineString":
      return { path: line(geometry.coordinates, frame), dots: [] };
    case "MultiLineString":
      return { path: geometry.coordinates.map((part) => line(part, frame)).join(""), dots: [] };
    case "Polygon":
      return withDot(geometry.coordinates, frame);
    case "MultiPolygon":
      return withDot(geometry.coordinates.flat(), frame);
    case "GeometryCollection":
      return { path: "", dots: [] };
  }
}

const LEAST_PIXELS = 5;

/** A region too small to be seen gets a dot in its middle. */
function withDot(rings: GeoJSON.Position[][], frame: Frame): { path: string; dots: Xy[] } {
  const path = rings.map((ring) => `${line(ring, frame)}Z`).join("");
  const [xmin, ymin, xmax, ymax] = boundsOf(rings.flat().map((position) => frame.toDrawing(position)));
  const isSmall = Math.max(xmax - xmin, ymax - ymin) < LEAST_PIXELS;
  return { path, dots: isSmall ? [[(xmin + xmax) / 2, (ymin + ymax) / 2]] : [] };
}

function line(positions: GeoJSON.Position[], frame: Frame): string {
  const points = positions.map((position) => frame.toDrawing(position).map((value) => value.toFixed(1)).join(" "));
  return points.length ? `M${points.join("L")}` : "";
}
