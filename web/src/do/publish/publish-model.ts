/** The state of the form that publishes a message: a region, attributes, or a file as it is. */

import { signal } from "@preact/signals";
import type { Api } from "../../api/client.ts";
import type { PublishedBatch, PublishedMessage } from "../../api/types.ts";
import type { Place } from "../filter/model.ts";
import type { ReadFile, ReadItem } from "../read/files.ts";
import { problemOf, type FieldProblem } from "../ui/problems.ts";

export type AttributeType = "text" | "number" | "boolean" | "json";

/** An attribute as it was typed. */
export interface AttributeRow {
  name: string;
  type: AttributeType;
  value: string;
}

/** A file that was dropped: what it holds, and its text, which can be published as it is. */
export interface LoadedFile {
  name: string;
  text: string;
  mediaType: "application/cap+xml" | "application/geo+json" | null;
  items: ReadItem[];
}

export const PUBLISH_FIELDS = ["attribute", "place", "rows"] as const;
export type PublishField = (typeof PUBLISH_FIELDS)[number];

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

type PublishApi = Pick<Api, "publishBody">;

export class PublishModel {
  readonly place = signal<Place | null>(null);
  /** What is wrong with text that was typed as the place, or null. */
  readonly placeFault = signal<string | null>(null);
  /** The attribute that holds the region. */
  readonly attribute = signal("geometry");
  readonly rows = signal<AttributeRow[]>([{ name: "", type: "text", value: "" }]);
  readonly file = signal<LoadedFile | null>(null);
  readonly problem = signal<FieldProblem<PublishField> | null>(null);
  readonly isBusy = signal(false);
  /** How often the form was emptied: fields with a state of their own begin anew then. */
  readonly resets = signal(0);

  private readonly api: PublishApi;

  constructor(api: PublishApi) {
    this.api = api;
  }

  setRow(k: number, row: AttributeRow | null): void {
    const rows = this.rows.value;
    this.rows.value = row === null ? rows.filter((_, place) => place !== k) : rows.map((old, place) => (place === k ? row : old));
    this.problem.value = null;
  }

  addRow(): void {
    this.rows.value = [...this.rows.value, { name: "", type: "text", value: "" }];
  }

  /** Take a file: its first item fills the form, and all of it can be published as it is. */
  take(read: ReadFile, name: string, text: string): void {
    const isXml = text.replace(/^\uFEFF/, "").trimStart().startsWith("<");
    const hasMessages = read.items.some((item) => Object.keys(item.attributes).length > 0);
    const mediaType = isXml ? "application/cap+xml" : hasMessages ? "application/geo+json" : null;
    this.file.value = mediaType === null ? null : { name, text, mediaType, items: read.items };
    const [first] = read.items;
    if (first !== undefined) this.choose(first);
  }

  /** Fill the form with an item of a file. */
  choose(item: ReadItem): void {
    this.place.value = item.place;
    this.placeFault.value = null;
    this.attribute.value = item.attribute;
    const rows = Object.entries(item.attributes).map(([name, value]) => rowOf(name, value));
    this.rows.value = rows.length ? rows : [{ name: "", type: "text", value: "" }];
    this.problem.value = null;
  }

  reset(): void {
    this.place.value = null;
    this.placeFault.value = null;
    this.attribute.value = "geometry";
    this.rows.value = [{ name: "", type: "text", value: "" }];
    this.file.value = null;
    this.problem.value = null;
    this.resets.value += 1;
  }

  /** Publish the form as one message. Return its sequence number, or null if there is a problem. */
  async publish(): Promise<number | null> {
    if (this.placeFault.value !== null) {
      this.problem.value = { field: "place", message: this.placeFault.value };
      return null;
    }
    const { text, problem } = messageText(this.rows.value, this.attribute.value, this.place.value);
    if (text === null) {
      this.problem.value = problem;
      return null;
    }
    const answer = await this.send(text, "application/json");
    return answer !== null && "sequence" in answer ? answer.sequence : null;
  }

  /** Publish the file as it is. Return the answer, or null if there is a problem. */
  async publishFile(): Promise<PublishedMessage | PublishedBatch | null> {
    const file = this.file.value;
    if (file === null || file.mediaType === null) return null;
    return this.send(file.text, file.mediaType);
  }

  private async send(body: string, mediaType: string): Promise<PublishedMessage | PublishedBatch | null> {
    this.problem.value = null;
    this.isBusy.value = true;
    try {
      return await this.api.publishBody(body, mediaType);
    } catch (error) {
      this.problem.value = problemOf(error, PUBLISH_FIELDS);
      return null;
    } finally {
      this.isBusy.value = false;
    }
  }
}

type MessageText = { text: string; problem: null } | { text: null; problem: FieldProblem<PublishField> };

/**
 * Return the JSON of a message. Numbers are written with the digits that were typed: JSON.stringify would round
 * integers beyond 2^53.
 */
export function messageText(rows: readonly AttributeRow[], attribute: string, place: Place | null): MessageText {
  const members = new Map<string, string>();
  for (const row of rows) {
    const name = row.name.trim();
    if (name === "" && row.value.trim() === "") continue;
    const fault = rowProblem(row) ?? (members.has(name) ? `There are two attributes ${name}.` : null);
    if (fault !== null) return { text: null, problem: { field: "rows", message: fault } };
    members.set(name, valueText(row));
  }
  if (place !== null) {
    const name = attribute.trim();
    if (name === "") return { text: null, problem: { field: "attribute", message: "Name the attribute of the region." } };
    if (members.has(name)) {
      return { text: null, problem: { field: "attribute", message: `There is another attribute ${name}.` } };
    }
    members.set(name, JSON.stringify(place));
  }
  if (members.size === 0) {
    return { text: null, problem: { field: "place", message: "Draw a region, or give an attribute." } };
  }
  const text = [...members].map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(", ");
  return { text: `{${text}}`, problem: null };
}

function rowProblem({ name, type, value }: AttributeRow): string | null {
  if (name.trim() === "") return `Name the attribute with the value ${value}.`;
  if (type === "number" && !JSON_NUMBER.test(value.trim())) return `${name}: type a number such as 3 or -0.5.`;
  if (type !== "json") return null;
  try {
    JSON.parse(value);
    return null;
  } catch {
    return `${name}: the value is not JSON.`;
  }
}

function valueText({ type, value }: AttributeRow): string {
  if (type === "text") return JSON.stringify(value);
  return type === "boolean" ? (value === "true" ? "true" : "false") : value.trim();
}

function rowOf(name: string, value: unknown): AttributeRow {
  switch (typeof value) {
    case "string":
      return { name, type: "text", value };
    case "number":
      return { name, type: "number", value: String(value) };
    case "boolean":
      return { name, type: "boolean", value: String(value) };
    default:
      return { name, type: "json", value: JSON.stringify(value) };
  }
}
