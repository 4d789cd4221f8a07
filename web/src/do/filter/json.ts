/**
 * Write a filter form as CQL2 JSON, and read CQL2 JSON into a form.
 *
 * Reading says which part a form cannot show. The filter then stays as text: nothing of it is dropped.
 */

import {
  isDate,
  type Condition,
  type FilterForm,
  type Group,
  type Join,
  type Leaf,
  type Operator,
  type Place,
  type SpatialCondition,
  type ValueType,
} from "./model.ts";
import { complement, isRelation, relationsOfWord, relationWord, sortedRelations, type Relation } from "./relations.ts";

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export interface Operation {
  op: string;
  args: Json[];
}

/** A form, or the part of the filter that a form cannot show, in words. */
export type FormReading = { form: FilterForm; reason: null } | { form: null; reason: string };

export function writeJson(form: FilterForm): Json {
  return joined(
    form.join,
    form.terms.map((term) => (term.kind === "group" ? writeGroup(term) : leafJson(term))),
  );
}

function writeGroup(group: Group): Json {
  return negatedIf(group.negated, joined(group.join, group.leaves.map(leafJson)));
}

function joined(join: Join, parts: Json[]): Json {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { op: join, args: parts };
}

function negatedIf(negated: boolean, part: Json): Json {
  return negated ? { op: "not", args: [part] } : part;
}

function leafJson(leaf: Leaf): Json {
  return leaf.kind === "spatial" ? spatialJson(leaf) : conditionJson(leaf);
}

function spatialJson({ attribute, relations, place }: SpatialCondition): Json {
  const args: Json[] = [{ property: attribute }, place as unknown as Json];
  const word = relationWord(relations);
  if (word !== null) return { op: word, args };
  const others = relationWord(complement(relations));
  if (others !== null) return { op: "not", args: [{ op: others, args }] };
  return { op: "relation", args: [...args, ...relations] };
}

function conditionJson(condition: Condition): Json {
  const name = foldedJson({ property: condition.attribute }, condition);
  const values = condition.values.map((value) => foldedJson(valueJson(value, condition.type), condition));
  const args = condition.operator === "isNull" ? [] : condition.operator === "in" ? [values] : values;
  return negatedIf(condition.negated, { op: condition.operator, args: [name, ...args] });
}

function foldedJson(item: Json, { ignoreCase, ignoreAccents, operator }: Condition): Json {
  if (operator === "isNull") return item;
  const inner = ignoreAccents ? { op: "accenti", args: [item] } : item;
  return ignoreCase ? { op: "casei", args: [inner] } : inner;
}

function valueJson(value: string, type: ValueType): Json {
  switch (type) {
    case "text":
      return value;
    case "boolean":
      return value === "true";
    case "decimal":
      return { decimal: value.trim() };
    case "timestamp":
      return isDate(value) ? { date: value.trim() } : { timestamp: value.trim() };
    case "number":
      return numberJson(value.trim());
  }
}

/** Return a number; an integer that a double cannot hold is written as a decimal, which is exact. */
function numberJson(text: string): Json {
  const number = Number(text);
  const isExact = !/^[+-]?\d+$/.test(text) || Number.isSafeInteger(number);
  return isExact && Number.isFinite(number) ? number : { decimal: text };
}

/** Read CQL2 JSON into a form. */
export function readForm(json: Json): FormReading {
  try {
    return { form: formOf(json), reason: null };
  } catch (error) {
    if (error instanceof CannotShow) return { form: null, reason: error.message };
    throw error;
  }
}

class CannotShow extends Error {}

function formOf(json: Json): FilterForm {
  const { op, args } = operationOf(json);
  if (op === "and" || op === "or") return { join: op, terms: args.map((part) => termOf(part)) };
  return { join: "and", terms: [termOf(json)] };
}

function termOf(json: Json): Leaf | Group {
  const { op, args } = operationOf(json);
  if (op === "and" || op === "or") return groupOf(op, args, false);
  if (op !== "not") return leafOf(json, false);
  const inner = onlyArgument(args);
  const below = operationOf(inner);
  return below.op === "and" || below.op === "or" ? groupOf(below.op, below.args, true) : leafOf(json, false);
}

function groupOf(join: Join, args: Json[], negated: boolean): Group {
  return { kind: "group", negated, join, leaves: args.map((part) => leafOf(part, false)) };
}

function leafOf(json: Json, negated: boolean): Leaf {
  const { op, args } = operationOf(json);
  if (op === "not") return leafOf(onlyArgument(args), !negated);
  if (op === "and" || op === "or") {
    throw new CannotShow(`groups within groups: ${op.toUpperCase()} is nested more than one level deep`);
  }
  const relations = op === "relation" ? namedRelations(args.slice(2)) : relationsOfWord(op);
  return relations === null ? conditionOf(op, args, negated) : spatialOf(op, args, relations, negated);
}

function namedRelations(names: Json[]): Relation[] {
  return names.map((name) => {
    const word = typeof name === "string" ? name.toLowerCase().replace("_", "-") : name;
    if (!isRelation(word)) throw new CannotShow(`the relation ${shown(name)}`);
    return word;
  });
}

function spatialOf(op: string, args: Json[], relations: Relation[], negated: boolean): SpatialCondition {
  const [name, place] = args;
  if (name === undefined || place === undefined) throw new CannotShow(`${op} without two arguments`);
  return {
    kind: "spatial",
    attribute: propertyOf(name),
    relations: negated ? complement(relations) : sortedRelations(relations),
    place: placeOf(place),
  };
}

function placeOf(json: Json): Place {
  if (isObject(json)) {
    if (Array.isArray(json["bbox"]) && json["type"] === undefined) return boxPlace(json["bbox"]);
    const type = json["type"];
    if ((type === "Polygon" || type === "MultiPolygon" || type === "Point") && Array.isArray(json["coordinates"])) {
      return { type, coordinates: json["coordinates"] } as unknown as Place;
    }
    if (typeof json["column"] === "string") throw new CannotShow(`the column $${json["column"]} of a template`);
  }
  throw new CannotShow(`the region ${shown(json)}`);
}

function boxPlace(corners: Json[]): GeoJSON.Polygon {
  const [xmin, ymin, xmax, ymax] = corners;
  if (corners.length !== 4 || !corners.every((corner) => typeof corner === "number")) {
    throw new CannotShow(`the box ${shown(corners)}`);
  }
  return boxPolygon(xmin as number, ymin as number, xmax as number, ymax as number);
}

export function boxPolygon(xmin: number, ymin: number, xmax: number, ymax: number): GeoJSON.Polygon {
  return {
    type: "Polygon",
    coordinates: [
      [
        [xmin, ymin],
        [xmax, ymin],
        [xmax, ymax],
        [xmin, ymax],
        [xmin, ymin],
      ],
    ],
  };
}

const COMPARISONS: readonly string[] = ["=", "<>", "<", "<=", ">", ">=", "between", "in", "like"];

function conditionOf(op: string, args: Json[], negated: boolean): Condition {
  if (op === "isnull") {
    const attribute = propertyOf(args[0] ?? null);
    return { ...blank(attribute, negated), operator: "isNull" };
  }
  const operator = op === "!=" ? "<>" : op;
  if (!COMPARISONS.includes(operator)) throw new CannotShow(`the operator ${op}`);
  const [left, ...rest] = args;
  const name = unfolded(left ?? null);
  const items = operator === "in" && Array.isArray(rest[0]) ? rest[0] : rest;
  const values = items.map((item) => unfolded(item));
  if (values.some((one) => one.ignoreCase !== name.ignoreCase || one.ignoreAccents !== name.ignoreAccents)) {
    throw new CannotShow(`a comparison of ${shown(name.item)} that folds one side only`);
  }
  const read = values.map(({ item }) => valueOf(item));
  const type = commonType(read.map((one) => one.type));
  return {
    ...blank(propertyOf(name.item), negated),
    operator: operator as Operator,
    type,
    values: read.map((one) => one.text),
    ignoreCase: name.ignoreCase,
    ignoreAccents: name.ignoreAccents,
  };
}

function blank(attribute: string, negated: boolean): Condition {
  return {
    kind: "condition",
    negated,
    attribute,
    operator: "=",
    type: "text",
    values: [],
    ignoreCase: false,
    ignoreAccents: false,
  };
}

interface Unfolded {
  item: Json;
  ignoreCase: boolean;
  ignoreAccents: boolean;
}

function unfolded(json: Json): Unfolded {
  if (isObject(json) && typeof json["op"] === "string" && Array.isArray(json["args"])) {
    const op = json["op"].toLowerCase();
    if (op === "casei" || op === "accenti") {
      const inner = unfolded(onlyArgument(json["args"]));
      return op === "casei" ? { ...inner, ignoreCase: true } : { ...inner, ignoreAccents: true };
    }
  }
  return { item: json, ignoreCase: false, ignoreAccents: false };
}

interface ReadValue {
  type: ValueType;
  text: string;
}

function valueOf(json: Json): ReadValue {
  if (typeof json === "string") return { type: "text", text: json };
  if (typeof json === "boolean") return { type: "boolean", text: String(json) };
  if (typeof json === "number") {
    // JSON.parse has rounded such an integer already: the text has the digits, the form must not replace them.
    if (Number.isInteger(json) && !Number.isSafeInteger(json)) {
      throw new CannotShow(`${json}, an integer with more digits than the form keeps`);
    }
    return { type: "number", text: String(json) };
  }
  if (isObject(json)) {
    for (const type of ["decimal", "timestamp", "date"] as const) {
      const text = json[type];
      if (typeof text === "string") return { type: type === "date" ? "timestamp" : type, text };
    }
    if (typeof json["column"] === "string") throw new CannotShow(`the column $${json["column"]} of a template`);
  }
  throw new CannotShow(`the value ${shown(json)}`);
}

function commonType(types: ValueType[]): ValueType {
  const [first = "text", ...others] = types;
  const isNumeric = (type: ValueType) => type === "number" || type === "decimal";
  if (others.every((type) => type === first)) return first;
  if (types.every(isNumeric)) {
    throw new CannotShow("a list of exact decimals and doubles");
  }
  throw new CannotShow(`a list of values of different types (${[...new Set(types)].join(", ")})`);
}

function propertyOf(json: Json): string {
  if (isObject(json) && typeof json["property"] === "string") return json["property"];
  throw new CannotShow(`${shown(json)} in place of an attribute`);
}

function operationOf(json: Json): Operation {
  if (isObject(json)) {
    if (typeof json["op"] === "string" && Array.isArray(json["args"])) {
      return { op: json["op"].toLowerCase(), args: json["args"] };
    }
    // A boolean attribute stands for `x = TRUE`.
    if (typeof json["property"] === "string") return { op: "=", args: [json, true] };
  }
  throw new CannotShow(`the expression ${shown(json)}`);
}

function onlyArgument(args: Json[]): Json {
  const [only, ...others] = args;
  if (only === undefined || others.length > 0) throw new CannotShow("an operator with a wrong number of arguments");
  return only;
}

function isObject(json: Json): json is { [name: string]: Json } {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function shown(json: Json): string {
  const text = JSON.stringify(json);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
