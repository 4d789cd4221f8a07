/** Read GeoJSON: a geometry, a Feature or a FeatureCollection. */

import { checkPlace, isRecord, ReadError, shown, type PlaceLimits } from "../places/checks.ts";
import type { ReadFile, ReadItem } from "./files.ts";

const GEOMETRIES = [
  "Point",
  "MultiPoint",
  "LineString",
  "MultiLineString",
  "Polygon",
  "MultiPolygon",
  "GeometryCollection",
];

/** Read GeoJSON text; items that cannot be read are problems, and the others are kept. */
export function readGeoJson(text: string, limits: PlaceLimits): ReadFile {
  const value = parseJson(text);
  if (!isRecord(value)) throw new ReadError("", `need a GeoJSON object, got ${shown(value)}`);
  checkCrs(value);
  if (value["type"] !== "FeatureCollection") return { items: [itemOf(value, "", limits)], problems: [] };
  const features = value["features"];
  if (!Array.isArray(features)) throw new ReadError("features", `need a list, got ${shown(features)}`);
  const found: ReadFile = { items: [], problems: [] };
  features.forEach((feature: unknown, k) => {
    try {
      found.items.push(itemOf(feature, `features[${k}]`, limits));
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      found.problems.push(error.message);
    }
  });
  if (features.length === 0) throw new ReadError("features", "the collection is empty");
  return found;
}

function itemOf(value: unknown, where: string, limits: PlaceLimits): ReadItem {
  if (!isRecord(value)) throw new ReadError(where, `need a Feature, got ${shown(value)}`);
  const type = value["type"];
  if (type === "Feature") return featureItem(value, where, limits);
  if (typeof type === "string" && GEOMETRIES.includes(type)) {
    return { name: "", attributes: {}, attribute: "geometry", place: checkPlace(value, where || type, limits) };
  }
  throw new ReadError(below(where, "type"), `need a geometry, Feature or FeatureCollection, got ${shown(type)}`);
}

function featureItem(feature: Record<string, unknown>, where: string, limits: PlaceLimits): ReadItem {
  const properties = feature["properties"] ?? {};
  if (!isRecord(properties)) {
    throw new ReadError(below(where, "properties"), `need an object or null, got ${shown(properties)}`);
  }
  const id = feature["id"];
  const attributes = id === undefined || "id" in properties ? properties : { ...properties, id };
  const geometry = feature["geometry"] ?? null;
  const place = geometry === null ? null : checkPlace(geometry, below(where, "geometry"), limits);
  return { name: nameOf(attributes), attributes, attribute: "geometry", place };
}

function nameOf(attributes: Record<string, unknown>): string {
  const named = [attributes["name"], attributes["id"]].find(
    (value) => typeof value === "string" || typeof value === "number",
  );
  return named === undefined ? "" : String(named);
}

/** GeoJSON of 2008 could name a coordinate system; RFC 7946 has longitude and latitude alone. */
function checkCrs(value: Record<string, unknown>): void {
  const crs = value["crs"];
  if (crs === undefined || crs === null) return;
  const properties = isRecord(crs) && isRecord(crs["properties"]) ? crs["properties"] : {};
  const name = properties["name"];
  const isDegrees = typeof name === "string" && /(CRS:?:?84|EPSG:.*4326)$/i.test(name);
  if (!isDegrees) throw new ReadError("crs", `need longitude and latitude (OGC:CRS84), got ${shown(name ?? crs)}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new ReadError("", `the text is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function below(where: string, member: string): string {
  return where === "" ? member : `${where}.${member}`;
}
