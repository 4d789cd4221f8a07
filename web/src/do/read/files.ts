/** Read dropped files: GeoJSON, WKT and CAP, told apart by how they begin. */

import type { Place } from "../filter/model.ts";
import { readCap } from "./cap.ts";
import { readGeoJson } from "./geojson.ts";
import { ReadError, type PlaceLimits } from "../places/checks.ts";
import { readWkt } from "./wkt.ts";

/** A region or message of a file. `attribute` is the name under which a message has the place. */
export interface ReadItem {
  name: string;
  attributes: Record<string, unknown>;
  attribute: string;
  place: Place | null;
}

/** What a file holds, and what of it could not be read. */
export interface ReadFile {
  items: ReadItem[];
  problems: string[];
}

export const MOST_BYTES = 20_000_000;

/** Read the text of a file; raise a ReadError that begins with the file's name. */
export function readText(name: string, text: string, limits: PlaceLimits): ReadFile {
  try {
    const start = text.replace(/^\uFEFF/, "").trimStart();
    if (start === "") throw new ReadError("", "the file is empty");
    if (start.startsWith("<")) return readCap(text);
    if (start.startsWith("{") || start.startsWith("[")) return readGeoJson(text, limits);
    return { items: [{ name: "", attributes: {}, attribute: "geometry", place: readWkt(text, limits) }], problems: [] };
  } catch (error) {
    if (error instanceof ReadError) throw new ReadError(name, error.message);
    throw error;
  }
}

/** Read a file that was dropped or chosen. */
export async function readFile(file: File, limits: PlaceLimits): Promise<ReadFile> {
  if (file.size > MOST_BYTES) {
    throw new ReadError(file.name, `the file has ${file.size} bytes; the map reads up to ${MOST_BYTES}`);
  }
  return readText(file.name, await file.text(), limits);
}
