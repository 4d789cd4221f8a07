/** Tracked objects as messages tell of them: where each was last, its trail, and what it is inside of. */

import type { MapMessage, MapTransition, TrackPage } from "../../api/types.ts";
import type { Feature } from "../../map/view.ts";

export interface TrackedObject {
  attribute: string;
  id: string;
  /** Latest place; null if no message of the page has one. */
  at: GeoJSON.Position | null;
  /** When the latest message came; null if it came before those that the page keeps. */
  seen: string | null;
  sequence: number | null;
  /** Places in order of arrival, the latest last. */
  trail: GeoJSON.Position[];
  /** Subscriptions that it is inside of, with the time since when. */
  inside: { key: string; since: string }[];
}

const LONGEST_TRAIL = 200;

export function objectName(attribute: string, id: string): string {
  return `${attribute} ${id}`;
}

/**
 * Return the tracked objects of messages and of the server's list of who is inside, by name.
 *
 * Transitions that came after that list was loaded change it: an enter adds, an exit removes.
 */
export function trackedObjects(
  messages: readonly MapMessage[],
  attributes: readonly string[],
  inside: TrackPage["inside"],
  later: readonly MapTransition[],
  trackOf: (key: string) => string | null,
): TrackedObject[] {
  const found = new Map<string, TrackedObject>();
  const objectAt = (attribute: string, id: string): TrackedObject => {
    const name = objectName(attribute, id);
    const known = found.get(name);
    if (known !== undefined) return known;
    const made: TrackedObject = { attribute, id, at: null, seen: null, sequence: null, trail: [], inside: [] };
    found.set(name, made);
    return made;
  };
  for (const message of messages) addFix(message, attributes, objectAt);
  for (const { attribute, id, key, since } of inside) {
    if (id !== null) objectAt(attribute, String(id)).inside.push({ key, since });
  }
  for (const transition of later) {
    const attribute = trackOf(transition.key);
    if (attribute !== null && transition.id !== null) apply(transition, objectAt(attribute, String(transition.id)));
  }
  return [...found.values()].sort((a, b) => a.attribute.localeCompare(b.attribute) || a.id.localeCompare(b.id, "en", { numeric: true }));
}

function addFix(message: MapMessage, attributes: readonly string[], objectAt: (attribute: string, id: string) => TrackedObject): void {
  for (const attribute of attributes) {
    const id = message.attributes[attribute];
    if (typeof id !== "string" && typeof id !== "number") continue;
    const object = objectAt(attribute, String(id));
    [object.seen, object.sequence] = [message.at, message.sequence];
    const place = centreOf(message.shapes[0]?.geometry);
    if (place === null) continue;
    object.at = place;
    object.trail.push(place);
    if (object.trail.length > LONGEST_TRAIL) object.trail.shift();
  }
}

function apply(transition: MapTransition, object: TrackedObject): void {
  const others = object.inside.filter(({ key }) => key !== transition.key);
  if (transition.kind === "exit") object.inside = others;
  else if (transition.kind === "enter") object.inside = [...others, { key: transition.key, since: transition.time }];
}

/** Return a point, or the middle of the box of a region. */
export function centreOf(geometry: GeoJSON.Geometry | undefined): GeoJSON.Position | null {
  if (geometry === undefined) return null;
  if (geometry.type === "Point") return geometry.coordinates;
  if (geometry.type !== "Polygon" && geometry.type !== "MultiPolygon") return null;
  const rings: GeoJSON.Position[][] = geometry.type === "Polygon" ? geometry.coordinates : geometry.coordinates.flat();
  let [xmin, ymin, xmax, ymax] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x = NaN, y = NaN] of rings.flat()) {
    [xmin, ymin] = [Math.min(xmin, x), Math.min(ymin, y)];
    [xmax, ymax] = [Math.max(xmax, x), Math.max(ymax, y)];
  }
  return xmin <= xmax ? [(xmin + xmax) / 2, (ymin + ymax) / 2] : null;
}

/** Return the whole trail of an object for the layer `answer`; the map itself shows the last places of all objects. */
export function trailFeatures(object: TrackedObject | undefined): Feature[] {
  if (object === undefined || object.trail.length < 2) return [];
  return [{ id: "trail", geometry: { type: "LineString", coordinates: object.trail }, kind: "trail" }];
}
