/** Write a filter form as CQL2 text, as the server writes it where one way of writing is as good as another. */

import { isDate, type Condition, type FilterForm, type Group, type Leaf, type Place, type SpatialCondition } from "./model.ts";
import { complement, relationWord } from "./relations.ts";

/** Words that are no names of attributes without double quotes. */
const KEYWORDS = new Set(
  (
    "and or not in like between is null true false casei accenti date timestamp interval decimal bbox point polygon " +
    "multipolygon linestring multilinestring multipoint geometrycollection prefix suffix contains relation div"
  ).split(" "),
);
const NAME = /^[\p{L}_:][\p{L}\p{N}_.:]*$/u;

/** Return the CQL2 text of a form. The form has no problems (`formProblems`), else the text is not a filter. */
export function writeText(form: FilterForm): string {
  const joined = form.terms.map((term) => writeTerm(term, form));
  return joined.join(` ${form.join.toUpperCase()} `);
}

function writeTerm(term: Leaf | Group, form: FilterForm): string {
  if (term.kind !== "group") return writeLeaf(term);
  const inner = term.leaves.map(writeLeaf).join(` ${term.join.toUpperCase()} `);
  if (term.negated) return `NOT (${inner})`;
  const needsBrackets = form.terms.length > 1 && term.leaves.length > 1;
  return needsBrackets ? `(${inner})` : inner;
}

export function writeLeaf(leaf: Leaf): string {
  return leaf.kind === "spatial" ? writeSpatial(leaf) : writeCondition(leaf);
}

function writeSpatial({ attribute, relations, place }: SpatialCondition): string {
  const name = writeName(attribute);
  const region = place === null ? "?" : writeWkt(place);
  const word = relationWord(relations);
  if (word !== null) return `${spelled(word)}(${name}, ${region})`;
  const others = relationWord(complement(relations));
  if (others !== null) return `NOT ${spelled(others)}(${name}, ${region})`;
  return `relation(${[name, region, ...relations.map(quoted)].join(", ")})`;
}

function spelled(word: string): string {
  return word.startsWith("s_") ? word.toUpperCase() : word;
}

function writeCondition(condition: Condition): string {
  const name = folded(writeName(condition.attribute), condition);
  const values = condition.values.map((value) => folded(writeValue(value, condition), condition));
  const not = condition.negated ? "NOT " : "";
  switch (condition.operator) {
    case "isNull":
      return `${name} IS ${not}NULL`;
    case "between":
      return `${name} ${not}BETWEEN ${values[0] ?? ""} AND ${values[1] ?? ""}`;
    case "in":
      return `${name} ${not}IN (${values.join(", ")})`;
    case "like":
      return `${name} ${not}LIKE ${values[0] ?? ""}`;
    default:
      return condition.negated
        ? `NOT (${name} ${condition.operator} ${values[0] ?? ""})`
        : `${name} ${condition.operator} ${values[0] ?? ""}`;
  }
}

function folded(text: string, { ignoreCase, ignoreAccents, operator }: Condition): string {
  if (operator === "isNull") return text;
  const inner = ignoreAccents ? `ACCENTI(${text})` : text;
  return ignoreCase ? `CASEI(${inner})` : inner;
}

function writeValue(value: string, { type }: Condition): string {
  switch (type) {
    case "text":
      return quoted(value);
    case "number":
      return value.trim().replace(/^\+/, "");
    case "decimal":
      return `DECIMAL(${quoted(value.trim())})`;
    case "boolean":
      return value.toUpperCase();
    case "timestamp":
      return `${isDate(value) ? "DATE" : "TIMESTAMP"}(${quoted(value.trim())})`;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Return the name of an attribute as the language reads it: in double quotes if it needs them. */
export function writeName(name: string): string {
  return NAME.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Return a region or point as WKT, with all digits of its coordinates. */
export function writeWkt(place: Place): string {
  switch (place.type) {
    case "Point":
      return `POINT (${writePosition(place.coordinates)})`;
    case "Polygon":
      return `POLYGON ${writeRings(place.coordinates)}`;
    case "MultiPolygon":
      return `MULTIPOLYGON (${place.coordinates.map(writeRings).join(", ")})`;
  }
}

function writeRings(rings: GeoJSON.Position[][]): string {
  return `(${rings.map((ring) => `(${ring.map(writePosition).join(", ")})`).join(", ")})`;
}

function writePosition(position: GeoJSON.Position): string {
  return `${String(position[0])} ${String(position[1])}`;
}
