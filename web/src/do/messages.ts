/** Regions and names of attributes that messages have. */

import type { MapMessage } from "../api/types.ts";

const GEOMETRY_TYPES: readonly unknown[] = ["Point", "Polygon", "MultiPolygon"];

function isShape(value: unknown): value is GeoJSON.Geometry {
  return typeof value === "object" && value !== null && "type" in value && "coordinates" in value && GEOMETRY_TYPES.includes(value.type);
}

/** Return all regions and points of a message as it was published, however deep they are nested. */
export function shapesOf(message: unknown): GeoJSON.Geometry[] {
  if (isShape(message)) return [message];
  if (typeof message !== "object" || message === null || Array.isArray(message)) return [];
  return Object.values(message).flatMap(shapesOf);
}

/** Return the attribute in which most messages have their region or point; `geometry` if there are none. */
export function regionAttribute(messages: readonly MapMessage[]): string {
  const counts = new Map<string, number>();
  for (const { shapes } of messages.slice(-200)) {
    for (const { attribute } of shapes) counts.set(attribute, (counts.get(attribute) ?? 0) + 1);
  }
  const [most] = [...counts].sort(([, m], [, n]) => n - m);
  return most?.[0] ?? "geometry";
}

/** Return the names of attributes of messages, those of regions first, then the most frequent. */
export function attributeNames(messages: readonly MapMessage[], most = 40): string[] {
  const regions = new Set<string>();
  const others = new Map<string, number>();
  for (const message of messages.slice(-200)) {
    for (const { attribute } of message.shapes) regions.add(attribute);
    for (const name of Object.keys(message.attributes)) others.set(name, (others.get(name) ?? 0) + 1);
  }
  const frequent = [...others].sort(([a, m], [b, n]) => n - m || a.localeCompare(b)).map(([name]) => name);
  return [...regions, ...frequent].slice(0, most);
}
