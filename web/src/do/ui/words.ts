/** Words of the panels: verdicts, relations, times and values as people read them. */

import type { AskedKind, ExplainedConstraint, MapMessage, MapTransition, RelationName } from "../../api/types.ts";
import { RELATION_PHRASES } from "../filter/relations.ts";

export type Truth = boolean | null;

export const VERDICT_WORDS: Record<"yes" | "no" | "unknown", { mark: string; word: string }> = {
  yes: { mark: "✓", word: "yes" },
  no: { mark: "✗", word: "no" },
  unknown: { mark: "?", word: "unknown" },
};

export function verdictOf(truth: Truth): keyof typeof VERDICT_WORDS {
  return truth === null ? "unknown" : truth ? "yes" : "no";
}

/** Return how the message's region lies to that of the subscription, as a sentence. */
export function relationSentence(constraint: ExplainedConstraint): string | null {
  const { relation, spatial } = constraint;
  if (spatial === null) return null;
  if (relation === null) return `The message has no region or point in ${constraint.attribute}.`;
  const asked = listed(spatial.relations.map(String), "or");
  const verdict = spatial.relations.includes(relation) ? "" : ` The filter asks for ${asked}.`;
  return `The message's ${constraint.attribute} ${RELATION_PHRASES[relation]}.${verdict}`;
}

/** Return the constraint without the coordinates of its region, which may be thousands. */
export function shortConstraint(constraint: ExplainedConstraint): string {
  const { spatial } = constraint;
  if (spatial === null) return constraint.asked;
  const not = spatial.negated ? "NOT " : "";
  const region = spatial.asked.type.toUpperCase();
  const set = spatial.operator.toUpperCase() === "RELATION" ? `, ${spatial.relations.map((name) => `'${name}'`).join(", ")}` : "";
  return `${not}${spatial.operator}(${constraint.attribute}, ${region} …${set})`;
}

/** Return items as "a, b and c". */
export function listed(items: string[], joint: "and" | "or"): string {
  const last = items.at(-1) ?? "";
  return items.length < 2 ? last : `${items.slice(0, -1).join(", ")} ${joint} ${last}`;
}

/** Return the value of an attribute as text; a geometry by its type and number of vertices. */
export function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "missing";
  if (isGeometry(value)) return geometryText(value);
  return JSON.stringify(value);
}

function isGeometry(value: unknown): value is GeoJSON.Geometry {
  return typeof value === "object" && value !== null && "type" in value && "coordinates" in value;
}

export function geometryText(geometry: GeoJSON.Geometry): string {
  if (geometry.type === "Point") return `point ${geometry.coordinates.slice(0, 2).map(rounded).join(", ")}`;
  const vertices = countVertices("coordinates" in geometry ? geometry.coordinates : []);
  return `${geometry.type === "MultiPolygon" ? `region of ${String(geometry.coordinates.length)} parts` : "region"}, ${count(vertices, "vertex", "vertices")}`;
}

function countVertices(coordinates: unknown): number {
  if (!Array.isArray(coordinates)) return 0;
  if (typeof coordinates[0] === "number") return 1;
  const inner = coordinates.reduce<number>((sum, part) => sum + countVertices(part), 0);
  const isRing = Array.isArray(coordinates[0]) && typeof coordinates[0][0] === "number";
  return isRing ? Math.max(0, inner - 1) : inner; // the last position of a ring repeats the first
}

export function rounded(value: number): string {
  return String(Number(value.toPrecision(7)));
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** Return a time of day, with the date if it is not today's, in the browser's zone. */
export function timeText(iso: string, now: Date = new Date()): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  const clock = time.toLocaleTimeString("en-GB");
  return time.toDateString() === now.toDateString() ? clock : `${time.toLocaleDateString("en-CA")} ${clock}`;
}

/** Return a span of time as its largest unit: 45 s, 12 min, 3 h, 2 d. */
export function agoText(iso: string, now: Date = new Date()): string {
  const seconds = Math.max(0, (now.getTime() - new Date(iso).getTime()) / 1000);
  const [size, unit] = ([[86_400, "d"], [3_600, "h"], [60, "min"]] as const).find(([least]) => seconds >= least) ?? [1, "s"];
  return `${String(Math.floor(seconds / size))} ${unit}`;
}

/** Return a name for a message: an attribute that names it, else its number. */
export function messageTitle(message: MapMessage): string {
  const { attributes } = message;
  const name = ["name", "headline", "title", "event", "kind", "id"]
    .map((attribute) => attributes[attribute])
    .find((value): value is string | number => (typeof value === "string" && value !== "") || typeof value === "number");
  return name === undefined ? `Message ${message.sequence}` : String(name);
}

export function kindsText(on: string | AskedKind[]): string {
  if (typeof on === "string") return on;
  return on.map((kind) => (typeof kind === "string" ? kind : `dwell ${kind.dwell}`)).join(", ");
}

const KIND_WORDS: Record<MapTransition["kind"], string> = {
  enter: "entered",
  exit: "left",
  change: "changed its relation to",
  cross: "crossed",
  dwell: "stayed in",
};

export function transitionText(transition: MapTransition): string {
  const object = transition.id === null ? "An object" : String(transition.id);
  return `${object} ${KIND_WORDS[transition.kind]} ${transition.key}`;
}

export function relationStep(before: RelationName | null, after: RelationName | null): string {
  return `${before ?? "unknown"} → ${after ?? "unknown"}`;
}
