/**
 * The model of the filter form: conditions and spatial conditions, joined by AND or OR, with groups one level deep.
 *
 * Values are kept as the text that was typed, so that a form that is half filled in loses nothing. `formProblems` says
 * what is still missing; `writeText` and `writeJson` take a form without problems.
 */

import type { Relation } from "./relations.ts";

export type ValueType = "text" | "number" | "decimal" | "boolean" | "timestamp";
export type Operator = "=" | "<>" | "<" | "<=" | ">" | ">=" | "between" | "in" | "like" | "isNull";
export type Join = "and" | "or";
export type Place = GeoJSON.Polygon | GeoJSON.MultiPolygon | GeoJSON.Point;

/** Compare an attribute with values; `values` has one item, two for BETWEEN, any number for IN, none for IS NULL. */
export interface Condition {
  kind: "condition";
  negated: boolean;
  attribute: string;
  operator: Operator;
  type: ValueType;
  values: string[];
  ignoreCase: boolean;
  ignoreAccents: boolean;
}

/** Ask for one of several relations of the region or point of an attribute to a place; `place` is null until drawn. */
export interface SpatialCondition {
  kind: "spatial";
  attribute: string;
  relations: Relation[];
  place: Place | null;
}

export type Leaf = Condition | SpatialCondition;

export interface Group {
  kind: "group";
  negated: boolean;
  join: Join;
  leaves: Leaf[];
}

export interface FilterForm {
  join: Join;
  terms: (Leaf | Group)[];
}

/** Something that a field of the form lacks; `path` is the place of the term, and in a group that of the leaf. */
export interface FormProblem {
  path: number[];
  field: "attribute" | "values" | "relations" | "place" | "leaves" | "terms";
  message: string;
}

export const OPERATOR_LABELS: Record<Operator, string> = {
  "=": "equals",
  "<>": "differs from",
  "<": "is less than",
  "<=": "is at most",
  ">": "is more than",
  ">=": "is at least",
  between: "is between",
  in: "is one of",
  like: "is like (% any text, _ one character)",
  isNull: "is missing",
};

const ORDERED: readonly Operator[] = ["=", "<>", "<", "<=", ">", ">=", "between", "in", "isNull"];

/** Operators that the language has for values of a type. */
export const OPERATORS_OF: Record<ValueType, readonly Operator[]> = {
  text: [...ORDERED.slice(0, -1), "like", "isNull"],
  number: ORDERED,
  decimal: ORDERED,
  timestamp: ORDERED,
  boolean: ["=", "<>", "in", "isNull"],
};

export function newCondition(attribute = ""): Condition {
  return {
    kind: "condition",
    negated: false,
    attribute,
    operator: "=",
    type: "text",
    values: [""],
    ignoreCase: false,
    ignoreAccents: false,
  };
}

export function newSpatial(attribute = "geometry", place: Place | null = null): SpatialCondition {
  return {
    kind: "spatial",
    attribute,
    relations: ["meets", "overlaps", "equals", "inside", "contains", "covers", "covered-by"],
    place,
  };
}

export function newForm(): FilterForm {
  return { join: "and", terms: [newSpatial()] };
}

/** Return a condition with another operator, with as many values as that operator takes. */
export function withOperator(condition: Condition, operator: Operator): Condition {
  const first = condition.values[0] ?? "";
  const values =
    operator === "isNull" ? [] : operator === "between" ? [first, condition.values[1] ?? ""] : operator === "in" ? keepAll(condition) : [first];
  return { ...condition, operator, values };
}

function keepAll(condition: Condition): string[] {
  return condition.values.length ? condition.values : [""];
}

/** Return a condition with another type of values; an operator that the type lacks becomes `=`. */
export function withType(condition: Condition, type: ValueType): Condition {
  const changed: Condition = {
    ...condition,
    type,
    ignoreCase: type === "text" && condition.ignoreCase,
    ignoreAccents: type === "text" && condition.ignoreAccents,
    values: type === "boolean" ? condition.values.map((value) => (value === "false" ? "false" : "true")) : condition.values,
  };
  return OPERATORS_OF[type].includes(condition.operator) ? changed : withOperator(changed, "=");
}

/** Return all that keeps a form from being a filter, in the order of the form. */
export function formProblems(form: FilterForm): FormProblem[] {
  if (form.terms.length === 0) {
    return [{ path: [], field: "terms", message: "Add a condition: a filter needs at least one." }];
  }
  return form.terms.flatMap((term, k) => {
    if (term.kind !== "group") return leafProblems(term, [k]);
    if (term.leaves.length === 0) {
      return [{ path: [k], field: "leaves" as const, message: "Add a condition to this group, or remove the group." }];
    }
    return term.leaves.flatMap((leaf, j) => leafProblems(leaf, [k, j]));
  });
}

function leafProblems(leaf: Leaf, path: number[]): FormProblem[] {
  const found: FormProblem[] = [];
  if (leaf.attribute === "") found.push({ path, field: "attribute", message: "Name the attribute." });
  if (leaf.kind === "spatial") {
    if (leaf.relations.length === 0) {
      found.push({ path, field: "relations", message: "Choose at least one relation." });
    } else if (leaf.relations.length === 8) {
      found.push({ path, field: "relations", message: "All eight relations together are always true: leave one out." });
    }
    if (leaf.place === null) found.push({ path, field: "place", message: "Draw, drop or type a region." });
    return found;
  }
  if (leaf.operator !== "isNull" && leaf.values.length === 0) {
    found.push({ path, field: "values", message: "Add a value." });
  }
  for (const value of leaf.values) {
    const message = valueProblem(value, leaf.type);
    if (message !== null) {
      found.push({ path, field: "values", message });
      break;
    }
  }
  return found;
}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/;

/** Return why text is no value of a type, or null if it is one. */
export function valueProblem(value: string, type: ValueType): string | null {
  switch (type) {
    case "text":
      return null;
    case "number":
    case "decimal":
      return NUMBER.test(value.trim()) ? null : `Type a number such as 3 or -0.5${gotten(value)}.`;
    case "boolean":
      return value === "true" || value === "false" ? null : "Choose true or false.";
    case "timestamp":
      return isTime(value.trim()) ? null : `Type a time such as 2024-05-01T12:00:00Z${gotten(value)}.`;
  }
}

function gotten(value: string): string {
  return value.trim() === "" ? "" : `; got "${value.trim().slice(0, 40)}"`;
}

function isTime(value: string): boolean {
  return (DATE.test(value) || TIMESTAMP.test(value)) && !Number.isNaN(Date.parse(value.slice(0, 10)));
}

/** Whether a timestamp names a day alone, which the language writes as DATE. */
export function isDate(value: string): boolean {
  return DATE.test(value.trim());
}

/** Return the spatial conditions of a form with their paths, in the order of the form. */
export function spatialConditions(form: FilterForm): { path: number[]; condition: SpatialCondition }[] {
  return form.terms.flatMap((term, k) => {
    if (term.kind === "spatial") return [{ path: [k], condition: term }];
    if (term.kind !== "group") return [];
    return term.leaves.flatMap((leaf, j) => (leaf.kind === "spatial" ? [{ path: [k, j], condition: leaf }] : []));
  });
}

/** Return the leaf at a path, or undefined. */
export function leafAt(form: FilterForm, path: readonly number[]): Leaf | undefined {
  const [k, j] = path;
  const term = k === undefined ? undefined : form.terms[k];
  if (term === undefined) return undefined;
  if (term.kind !== "group") return j === undefined ? term : undefined;
  return j === undefined ? undefined : term.leaves[j];
}

/** Return a form in which the term or leaf at a path is replaced, or removed if `item` is null. */
export function replaceAt(form: FilterForm, path: readonly number[], item: Leaf | Group | null): FilterForm {
  const [k, j] = path;
  if (k === undefined) return form;
  const term = form.terms[k];
  if (j === undefined) return { ...form, terms: replaced(form.terms, k, item) };
  if (term?.kind !== "group" || item?.kind === "group") return form;
  return { ...form, terms: replaced(form.terms, k, { ...term, leaves: replaced(term.leaves, j, item) }) };
}

function replaced<T>(items: readonly T[], k: number, item: T | null): T[] {
  return item === null ? items.filter((_, place) => place !== k) : items.map((old, place) => (place === k ? item : old));
}
